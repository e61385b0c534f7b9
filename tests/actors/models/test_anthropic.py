"""The Messages adapter against a real HTTP server: what it sends, what it keeps, and what it refuses to take for an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.events import Usage
from affidavit.actors.models.anthropic import AnthropicModel, open_anthropic_model
from affidavit.actors.models.endpoint import new_client
from affidavit.actors.models.messages_request import request_text
from affidavit.actors.models.messages_stream import MessagesAssembly
from affidavit.actors.models.port import NO_PARAMETERS, Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from affidavit.actors.models.sse import ServerEvent
from affidavit.actors.models.wire import BadChunk, StreamedFailure
from tests.actors.models.asking import ASK, KEY
from tests.actors.models.dialects import START, block, ending, event, text_block, tool_block
from tests.actors.models.endpoints import head, plain, serve

THINKING = {"type": "thinking", "thinking": "", "signature": ""}
SIGNATURE = "EqQBCkYIAh+/=="
HELLO = [START, *text_block(0, "Hello"), *ending("end_turn")]


def stream(*events: str) -> bytes:
    """Events as bytes."""
    return "".join(events).encode()


def assembled(*events: str) -> ModelReply:
    """The reply that these events make."""
    assembly = MessagesAssembly()
    for each in events:
        name, _, data = each.removeprefix("event: ").partition("\ndata: ")
        assembly.add(ServerEvent(name, data.strip()))
    assert assembly.finished
    return assembly.reply()


def thinking_turn(arguments: str = '{"path":"a.txt"}') -> list[str]:
    """A turn that thinks, says something and calls a tool."""
    return [
        START,
        *block(
            0,
            THINKING,
            {"type": "thinking_delta", "thinking": "First "},
            {"type": "thinking_delta", "thinking": "look."},
            {"type": "signature_delta", "signature": SIGNATURE},
        ),
        *block(1, {"type": "redacted_thinking", "data": "AbCd"}),
        *text_block(2, "I will look."),
        *tool_block(3, ("toolu_1", "look", arguments)),
        *ending("tool_use"),
    ]


def test_thinking_and_its_signature_are_kept_whole() -> None:
    """Blocks of every kind, the unknown and the hidden ones too, come out in order and unchanged; thinking is not words."""
    reply = assembled(*thinking_turn())
    assert reply.text == "I will look."
    assert reply.tool_calls == (ToolCall("toolu_1", "look", '{"path":"a.txt"}'),)
    assert json.loads(reply.blocks) == [
        {"type": "thinking", "thinking": "First look.", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "AbCd"},
        {"type": "text", "text": "I will look."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"path": "a.txt"}},
    ]


@pytest.mark.parametrize(
    "arguments",
    ['{"n": 1.10, "big": 123456789012345678901234567890}', '{"a":1,"a":2}', '{ "x" : "\\u00fc" }', "{}"],
)
def test_arguments_are_sent_back_as_they_were_written(arguments: str) -> None:
    """Not even a number's spelling changes on the way."""
    reply = assembled(*thinking_turn(arguments))
    assert reply.tool_calls[0].input == arguments
    assert f'"input":{arguments}}}' in reply.blocks
    message = Message("assistant", reply.text, reply.tool_calls, blocks=reply.blocks)
    sent = request_text("m", ModelRequest("", (Message("user", "x"), message)), NO_PARAMETERS)
    assert reply.blocks in sent


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1]", '{"x": NaN}', "words"])
def test_arguments_that_are_no_object_are_kept_within_one(arguments: str) -> None:
    """The protocol takes objects only: what the model wrote is recorded as it is, and sent back inside of one."""
    reply = assembled(*thinking_turn(arguments))
    assert reply.tool_calls[0].input == arguments
    assert json.loads(reply.blocks)[-1]["input"] == {"INVALID_JSON": arguments}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    """No piece at all means no arguments."""
    reply = assembled(START, *tool_block(0, ("t", "look", "")), *ending("tool_use"))
    assert reply.tool_calls == (ToolCall("t", "look", "{}"),)
    assert json.loads(reply.blocks)[0]["input"] == {}


def test_citations_and_text_that_comes_with_the_start_are_kept() -> None:
    """A block's first piece may stand in its start; citations are gathered."""
    reply = assembled(
        START,
        *block(
            0,
            {"type": "text", "text": "So "},
            {"type": "text_delta", "text": "it is."},
            {"type": "citations_delta", "citation": {"n": 1}},
            {"type": "citations_delta", "citation": {"n": 2}},
        ),
        *ending("end_turn"),
    )
    assert reply.text == "So it is."
    assert json.loads(reply.blocks) == [
        {"type": "text", "text": "So it is.", "citations": [{"n": 1}, {"n": 2}]}
    ]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_reasons_are_translated(given: str, reason: str) -> None:
    """Known words are ours, others the vendor's own."""
    assert assembled(START, *text_block(0, "x"), *ending(given)).stop_reason == reason


def test_later_counts_replace_earlier_ones() -> None:
    """Each count is the total so far, and the input is all of it, cached or not."""
    last = event(
        "message_delta",
        delta={"stop_reason": "end_turn"},
        usage={"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 12},
    )
    reply = assembled(START, *text_block(0, "x"), last, event("message_stop"))
    assert reply.usage == Usage(5 + 20 + 40, 12, cache_read_tokens=40, cache_write_tokens=20)


@pytest.mark.parametrize(
    "events",
    [
        [*text_block(0, "x")],
        [event("message_stop")],
        [START, *block(0, {"type": "text", "text": ""}, {"type": "novel_delta", "x": 1})],
        [START, *block(0, {"type": "text", "text": ""}, {"type": "thinking_delta", "thinking": "x"})],
        [START, *block(0, {"type": "novel"}, {"type": "text_delta", "text": "x"})],
        [START, *text_block(1, "x")],
        [START, *text_block(0, "x"), *text_block(0, "x")],
        [START, text_block(0, "x")[0], *ending("end_turn")],
        [START, text_block(0, "x")[0], text_block(1, "x")[0]],
        [START, text_block(0, "x")[1]],
        [START, *text_block(0, "x"), text_block(0, "x")[1]],
        [START, START],
    ],
    ids=range(12),
)
def test_what_does_not_fit_into_the_order_is_refused(events: list[str]) -> None:
    """Nothing out of place, and no piece that could not be kept, ends up in a reply."""
    with pytest.raises(BadChunk):
        assembled(*events)


def test_kinds_that_are_not_known_are_left_aside() -> None:
    """The vendor may add kinds of events at any time."""
    assert assembled(START, event("novel", x=1), *HELLO[1:]).text == "Hello"


async def test_the_conversation_is_sent_in_the_protocol_s_words() -> None:
    """System prompt, calls, results, errors, tools and limits reach the endpoint; results of one turn share a message."""
    request = ModelRequest(
        "Be brief.",
        (
            Message("user", "Look"),
            Message(
                "assistant", "", (ToolCall("c1", "look", '{"a": 1}'), ToolCall("run/1/2", "look", "bad"))
            ),
            Message("tool", "seen", tool_use_id="c1"),
            Message("tool", "", tool_use_id="run/1/2", is_error=True),
            Message("assistant", " "),
            Message("user", " "),
        ),
        (ToolSpec("look", "Looks.", '{"type":"object"}'),),
        77,
    )
    async with serve([head(), stream(*HELLO)]) as endpoint, opened(endpoint.url) as model:
        await model.generate(request)
    ours = endpoint.requests[0]["messages"][1]["content"][1]["id"]
    assert ours.isidentifier()
    assert endpoint.requests == [
        {
            "model": "m",
            "max_tokens": 77,
            "stream": True,
            "cache_control": {"type": "ephemeral"},
            "system": "Be brief.",
            "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}},
                        {"type": "tool_use", "id": ours, "name": "look", "input": {"INVALID_JSON": "bad"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "seen"},
                        {"type": "tool_result", "tool_use_id": ours, "is_error": True},
                    ],
                },
                {"role": "user", "content": [{"type": "text", "text": "(nothing)"}]},
            ],
        }
    ]
    sent = endpoint.heads[0].lower()
    assert sent.startswith("post /v1/messages http/1.1")
    assert f"x-api-key: {KEY}" in sent
    assert "anthropic-version: 2023-06-01" in sent
    assert "authorization" not in sent


@asynccontextmanager
async def opened(url: str, name: str = "m") -> AsyncIterator[AnthropicModel]:
    """The adapter, at that address, to be used outside of any run."""
    async with (
        new_client() as client,
        open_anthropic_model(name, base_url=url, api_key=KEY, client=client) as model,
    ):
        yield model


@pytest.mark.parametrize(
    "blocks",
    [
        '{"reasoning_content": "of another protocol"}',
        "no JSON",
        "[" * 5000,
        "[]",
        "[1]",
        '[{"type":"tool_use","id":"another","name":"look","input":{}}]',
        '[{"type":"thinking","thinking":"x","signature":"y"}]',
    ],
    ids=lambda text: text[:20],
)
def test_blocks_that_are_not_this_turn_s_own_are_not_sent(blocks: str) -> None:
    """Another protocol's content, garbage, and blocks that lack the recorded calls are replaced by what is recorded."""
    message = Message("assistant", "Hm.", (ToolCall("c1", "look", "{}"),), blocks=blocks)
    sent = json.loads(request_text("m", ModelRequest("", (message,)), NO_PARAMETERS))
    assert sent["messages"][0]["content"] == [
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ]


async def test_parameters_are_asked_for_and_tell_models_apart() -> None:
    """What the operator chose goes out with every request, and is part of the digest and of what is recorded."""
    names = ["m", "m?temperature=0.5", "m?thinking=2048&max_output_tokens=4096", "m?thinking=adaptive"]
    digests = set()
    async with serve([head(), stream(*HELLO)]) as endpoint:
        for name in names:
            async with opened(endpoint.url, name) as model:
                await model.generate(ModelRequest("", ASK.messages, (), 9000))
                digests.add(model.digest)
        async with opened(endpoint.url, names[2]) as model:
            assert model.parameters == {"thinking": 2048, "max_output_tokens": 4096}
            with pytest.raises(ModelError, match="cannot think with 2048 tokens"):
                await model.generate(ASK)
    assert len(digests) == len(names)
    assert endpoint.requests[1]["temperature"] == 0.5
    assert endpoint.requests[2]["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert endpoint.requests[2]["max_tokens"] == 4096
    assert endpoint.requests[3]["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize("name", ["", "?temperature=1", "m?seed=1", "m?thinking=5"])
async def test_a_name_that_cannot_be_asked_is_refused(name: str) -> None:
    """No name, and parameters that the protocol has no word for, are one sentence."""
    with pytest.raises(ConfigurationError):
        async with opened("http://127.0.0.1:1", name):
            pass


async def test_an_address_may_name_the_version_itself() -> None:
    """`.../v1` and `...` lead to the same place."""
    async with serve([head(), stream(*HELLO)]) as endpoint:
        for url in (endpoint.url, endpoint.url.removesuffix("/v1")):
            async with opened(url) as model:
                assert (await model.generate(ASK)).text == "Hello"
    assert {line.split()[1] for line in endpoint.heads} == {"/v1/messages"}


@pytest.mark.parametrize(
    ("status", "kind", "message", "code", "said"),
    [
        ("401 Unauthorized", "authentication_error", KEY, "unauthorized", "check ANTHROPIC_API_KEY"),
        ("402 Payment Required", "billing_error", "", "quota_exceeded", "used up"),
        ("404 Not Found", "not_found_error", "model: m", "model_not_found", "an Anthropic service: model: m"),
        ("413 Too Large", "request_too_large", "", "request_too_large", "too large"),
        (
            "400 Bad",
            "invalid_request_error",
            "prompt is too long: 9 > 8",
            "context_exceeded",
            "no longer fits",
        ),
        ("400 Bad", "invalid_request_error", "odd", "bad_request", "refuses the request: odd"),
    ],
)
async def test_each_refusal_is_one_sentence_with_a_fault(
    status: str, kind: str, message: str, code: str, said: str
) -> None:
    """The vendor's own kinds of errors have a class, a code and a sentence that never holds the key."""
    error = {"type": kind, "message": message}
    body = json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()
    async with serve(plain(status, body)) as endpoint, opened(endpoint.url) as model:
        with pytest.raises(ModelError, match=said) as caught:
            await model.generate(ASK)
    assert (caught.value.fault, caught.value.code) == ("terminal", code)
    assert KEY not in str(caught.value)


WORDS = "type message index content_block delta text thinking signature partial_json usage stop_reason input id name"
KINDS = (
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping error text "
    "thinking tool_use text_delta thinking_delta signature_delta input_json_delta citations_delta"
)
LEAF = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(KINDS.split())
DATA = st.recursive(
    LEAF,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(WORDS.split()), inner),
    max_leaves=20,
)


@given(st.lists(st.text() | DATA.map(json.dumps) | st.sampled_from(thinking_turn()), max_size=20))
def test_no_stream_makes_anything_else_come_out(events: list[str]) -> None:
    """Whatever an endpoint sends, there is a reply or one of the two errors, and blocks are always JSON."""
    assembly = MessagesAssembly()
    for each in events:
        try:
            assembly.add(ServerEvent("", each.rpartition("data: ")[2].strip()))
        except (BadChunk, StreamedFailure):
            break
    reply = assembly.reply()
    assert isinstance(reply.text, str)
    assert reply.stop_reason
    if reply.blocks:
        assert isinstance(json.loads(reply.blocks), list)
