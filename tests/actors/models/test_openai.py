"""The chat-completions adapter against a real HTTP server: what it sends, and what it makes of replies."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.events import Usage
from affidavit.actors.models.chat_request import request_body
from affidavit.actors.models.chat_stream import ChatAssembly
from affidavit.actors.models.openai import open_openai_model
from affidavit.actors.models.port import Message, ModelReply, ModelRequest, Served, ToolCall, ToolSpec
from affidavit.actors.models.sse import ServerEvent
from affidavit.actors.models.wire import BadChunk, StreamedFailure
from tests.actors.models.asking import ASK, HELLO, KEY, answer, failure, opened
from tests.actors.models.endpoints import chunked, delta, head, serve, sse

USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}


async def test_a_streamed_reply_is_put_together() -> None:
    """Fragments of text are joined, the reason and the token cost are translated."""
    usage = {"choices": [], "usage": USAGE}
    reply = await answer(
        head(), sse(delta(role="assistant", content=""), delta(content="Hi"), delta("stop"), usage, "[DONE]")
    )
    assert reply == ModelReply("Hi", (), "end_turn", Usage(9, 2, 4, 0))


async def test_fragments_may_be_cut_anywhere() -> None:
    """Pieces of any size, through letters of several bytes, line ends and JSON, make the same reply."""
    body = sse(
        delta(content="Grüße 🙂 "),
        delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"pa'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": 'th": "ü"}'}}]),
        delta("tool_calls"),
        "[DONE]",
    ).replace(b"\\u00fc", "ü".encode())
    whole = await answer(head(), body)
    assert whole == ModelReply("Grüße 🙂 ", (ToolCall("c1", "look", '{"path": "ü"}'),), "tool_use", None)
    chance = random.Random(7)
    for most in (1, 3, 40):
        pieces, at = [], 0
        while at < len(body):
            size = chance.randint(1, most)
            pieces.append(body[at : at + size])
            at += size
        assert await answer(head(), *pieces) == whole
    assert await answer(head(), body.replace(b"\n", b"\r\n")) == whole
    assert await answer(head(), b": a comment\n\n" + body.replace(b"data: ", b"event: x\ndata:")) == whole


async def test_the_stream_is_read_as_utf_8_whatever_it_calls_itself() -> None:
    """Server-sent events are UTF-8 by their definition; bytes that are not are replaced."""
    body = 'data: {"choices": [{"delta": {"content": "ü'.encode() + b'\xff"}, "finish_reason": "stop"}]}\n\n'
    assert (await answer(head(kind="text/event-stream; charset=latin-1"), body)).text == "ü\ufffd"


async def test_several_calls_keep_their_order_and_their_fragments_apart() -> None:
    """Fragments that alternate between calls end up in the right one; raw text that is no JSON is kept."""
    reply = await answer(
        head(),
        sse(
            delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "two", "arguments": "{"}}]),
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}}]),
            delta(
                tool_calls=[
                    {"index": 1, "function": {"arguments": "oops"}},
                    {"index": 0, "function": {"arguments": "{}"}},
                ]
            ),
            delta("tool_calls"),
        ),
    )
    assert reply.tool_calls == (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{oops"))


async def test_calls_without_an_index_are_told_apart_by_their_id() -> None:
    """Some services send whole calls without an index; a new id begins a new call."""
    reply = await answer(
        head(),
        sse(
            delta(tool_calls=[{"id": "a", "function": {"name": "one", "arguments": "{}"}}]),
            delta(tool_calls=[{"id": "b", "function": {"name": "two", "arguments": "{"}}]),
            delta(tool_calls=[{"function": {"arguments": "}"}}]),
            delta("stop"),
        ),
    )
    assert reply.tool_calls == (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{}"))
    assert reply.stop_reason == "tool_use"


async def test_calls_that_are_all_numbered_nought_are_told_apart() -> None:
    """A new id with a name begins a new call, whatever its number; what follows without an id belongs to the last one."""
    reply = await answer(
        head(),
        sse(
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": "}"}}]),
            delta(tool_calls=[{"index": 0, "id": "b", "function": {"name": "two", "arguments": "{"}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": "}"}}]),
            delta(tool_calls=[{"index": 0, "id": "b", "function": {"name": "two", "arguments": " "}}]),
            delta("tool_calls"),
        ),
    )
    assert reply.tool_calls == (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{} "))


async def test_an_id_that_changes_in_the_middle_of_a_call_is_refused() -> None:
    """Arguments of two calls are never joined into one: that is worth another attempt."""
    error = await failure(
        head(),
        sse(
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}}]),
            delta(tool_calls=[{"index": 0, "id": "b", "function": {"arguments": "}"}}]),
        ),
        None,
    )
    assert (error.fault, error.code) == ("transient", "spliced")


async def test_chunks_without_an_id_belong_to_any_answer() -> None:
    """Some services give an id now and then, or only in the end."""
    first, last = delta(content="Hi"), delta("stop")
    reply = await answer(head(), sse(first, {**delta(content="!"), "id": "x"}, {**last, "id": ""}, "[DONE]"))
    assert reply.text == "Hi!"
    assert reply.served == Served(id="x")


async def test_thinking_is_kept_apart_and_sent_back_with_its_calls_alone() -> None:
    """It is no word of the answer; an endpoint that thinks wants it back where tools were called, and refuses it elsewhere."""
    call = {"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}
    reply = await answer(
        head(),
        sse(delta(reasoning_content="Hm, "), delta(reasoning="so."), delta(tool_calls=[call]), delta("stop")),
    )
    assert (reply.text, reply.blocks) == ("", '{"reasoning_content": "Hm, so."}')
    asked = (
        Message("assistant", "", reply.tool_calls, blocks=reply.blocks),
        Message("assistant", "Done.", blocks=reply.blocks),
        Message("assistant", "", reply.tool_calls, blocks='[{"type": "text"}]'),
    )
    body = request_body("m", ModelRequest("", asked), limit_key="n", settings={})
    assert ["reasoning_content" in each for each in body["messages"]] == [True, False, False]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("content_filter", "content_filter"),
    ],
)
async def test_reasons_are_translated(finish: str, reason: str) -> None:
    """Known words are ours, others the vendor's own."""
    assert (await answer(head(), sse(delta(finish, content="x")))).stop_reason == reason


async def test_a_refusal_is_text_with_a_reason_of_its_own() -> None:
    """A model that declines is not taken for one that finished."""
    reply = await answer(
        head(), sse(delta(refusal="I will "), delta(refusal="not."), delta("stop"), "[DONE]")
    )
    assert (reply.text, reply.stop_reason) == ("I will not.", "refusal")


async def test_the_conversation_is_sent_in_the_protocol_s_words() -> None:
    """System prompt, calls, results, tools, limits and the wish for a stream with its cost all reach the endpoint."""
    request = ModelRequest(
        "Be brief.",
        (
            Message("user", "Look"),
            Message(
                "assistant", "", (ToolCall("c1", "look", '{"a": 1}'), ToolCall("c2", "look", "not json"))
            ),
            Message("tool", "seen", tool_use_id="c1"),
            Message("tool", "bad \udc80", tool_use_id="c2", is_error=True),
            Message("assistant", "Done."),
        ),
        (ToolSpec("look", "Looks.", '{"type":"object"}'),),
        77,
    )
    async with serve([head(), HELLO]) as endpoint, opened(endpoint.url) as model:
        await model.generate(request)
    assert endpoint.requests == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Look"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "look", "arguments": '{"a": 1}'},
                        },
                        {
                            "id": "c2",
                            "type": "function",
                            "function": {"name": "look", "arguments": '"not json"'},
                        },
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "seen"},
                {"role": "tool", "tool_call_id": "c2", "content": "bad \udc80"},
                {"role": "assistant", "content": "Done."},
            ],
            "max_tokens": 77,
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
                }
            ],
        }
    ]
    assert endpoint.heads[0].startswith("POST /v1/chat/completions HTTP/1.1")
    assert f"Authorization: Bearer {KEY}" in endpoint.heads[0]


async def test_loopback_needs_no_key_and_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on this machine is asked without a key when there is none."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with serve([head(), HELLO]) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url + "/")
        async with opened(None, None) as model:
            assert (await model.generate(ASK)).text == "Hello"
            assert model.name == "openai:m"
            assert model.supports_tools
    assert "authorization" not in endpoint.heads[0].lower()
    assert endpoint.heads[0].startswith("POST /v1/chat/completions ")


async def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint that was named is the one that is asked."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await answer(head(), HELLO)).text == "Hello"


async def test_turns_share_a_connection() -> None:
    """The end of the stream is read, so that the next turn needs no new connection."""
    async with serve(chunked(HELLO), keep_alive=True) as endpoint, opened(endpoint.url) as model:
        for _ in range(3):
            assert (await model.generate(ASK)).text == "Hello"
    assert (endpoint.connections, len(endpoint.requests)) == (1, 3)


async def test_the_digest_tells_models_and_endpoints_apart() -> None:
    """The same name at the same address is the same model; the key does not count and is nowhere in sight."""
    digests = []
    cases = [("http://a/v1", "m"), ("http://a/v1/", "m"), ("http://b/v1", "m"), ("http://a/v1", "n")]
    for number, (url, model) in enumerate(cases):
        key = f"{KEY}-{number}"
        async with open_openai_model(model, base_url=url, api_key=key) as made:
            digests.append(made.digest)
            assert len(made.digest) == 32
            assert key not in repr(made._endpoint)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


WORDS = "choices delta content tool_calls function index id name arguments finish_reason usage error refusal prompt_tokens"
LEAF = st.none() | st.booleans() | st.integers() | st.text()
CHUNK = st.recursive(
    LEAF,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(WORDS.split()), inner),
    max_leaves=20,
)


@given(st.lists(st.text() | CHUNK.map(json.dumps)))
def test_no_stream_makes_anything_else_come_out(chunks: list[str]) -> None:
    """Whatever an endpoint sends, there is a reply or one of the two errors."""
    assembly = ChatAssembly()
    for chunk in chunks:
        try:
            assembly.add(ServerEvent("", chunk))
        except (BadChunk, StreamedFailure):
            break
    reply = assembly.reply()
    assert isinstance(reply.text, str)
    assert reply.stop_reason
