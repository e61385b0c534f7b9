"""The chat-completions adapter against a real HTTP server: what it sends, what it makes of replies, how it fails."""

from __future__ import annotations

import json
import random
import socket
from contextlib import AbstractAsyncContextManager

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.events import Usage
from affidavit.actors.models import openai
from affidavit.actors.models.chat_stream import MAX_CALLS, Assembly, BadChunk, StreamedFailure
from affidavit.actors.models.openai import OpenAIModel, open_openai_model
from affidavit.actors.models.port import Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from tests.actors.models.endpoints import Piece, chunked, delta, head, plain, serve, sse

KEY = "sk-secret-key-0123456789"
ASK = ModelRequest("Be brief.", (Message("user", "Hello"),))
HELLO = sse(delta(content="Hel"), delta(content="lo"), delta("stop"), "[DONE]")
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}


@pytest.fixture
def patient_clock() -> trio.testing.MockClock:
    """A clock that jumps only once the sockets, which are real, have nothing more to say."""
    return trio.testing.MockClock(autojump_threshold=0.1)


def opened(url: str, key: str = KEY, model: str = "m") -> AbstractAsyncContextManager[OpenAIModel]:
    """The adapter, at that address."""
    return open_openai_model(model, base_url=url, api_key=key)


async def answer(*pieces: Piece, request: ModelRequest = ASK) -> ModelReply:
    """The reply that the adapter makes of these bytes."""
    async with serve(pieces) as endpoint, opened(endpoint.url) as model:
        return await model.generate(request)


async def failure(*pieces: Piece, key: str = KEY) -> ModelError:
    """The error that the adapter makes of these bytes; its text names the endpoint, is one line, and has no key in it."""
    async with serve(pieces) as endpoint, opened(endpoint.url, key) as model:
        with pytest.raises(ModelError) as caught:
            await model.generate(ASK)
    text = str(caught.value)
    assert endpoint.url.split("/")[2] in text
    assert "\n" not in text
    assert KEY not in text
    return caught.value


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
        async with open_openai_model("m") as model:
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


async def test_a_stream_left_open_after_its_end_is_not_waited_for(
    patient_clock: trio.testing.MockClock,
) -> None:
    """After [DONE] the reply stands, even if the server never ends the body."""
    assert (await answer(head(), HELLO, None)).text == "Hello"


@pytest.mark.parametrize(
    ("status", "body", "fault", "code", "said"),
    [
        ("401 Unauthorized", {"error": {"message": "Incorrect"}}, "terminal", "unauthorized", "check OPENAI_API_KEY"),
        ("403 Forbidden", {}, "terminal", "forbidden", "'m'"),
        ("404 Not Found", {"error": {"message": "no model m"}}, "terminal", "model_not_found", "OPENAI_BASE_URL.*: no model m"),
        ("404 Not Found", b"<html>", "terminal", "model_not_found", "has no model 'm'"),
        ("400 Bad Request", {"error": {"message": f"odd\n{KEY}\u202e"}}, "terminal", "bad_request", r"odd \*\*\*$"),
        ("400 Bad Request", {"error": {"code": "context_length_exceeded"}}, "terminal", "context_exceeded", "no longer fits"),
        ("422 Unprocessable", {"detail": [1]}, "terminal", "bad_request", "refuses the request"),
        ("429 Too Many Requests", {"error": {"message": "slow down"}}, "transient", "rate_limited", "too often: slow down"),
        ("429 Too Many Requests", {"error": {"code": "insufficient_quota"}}, "terminal", "quota_exceeded", "quota"),
        ("408 Request Timeout", b"", "transient", "unavailable", "cannot answer now"),
        ("500 Internal Server Error", {"error": "boom"}, "transient", "unavailable", "boom"),
        ("503 Service Unavailable", b"[" * 100_000, "transient", "unavailable", "503"),
        ("307 Temporary Redirect", b"", "terminal", "redirected", "final address"),
        ("204 No Content", b"", "terminal", "bad_request", "204"),
    ],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
async def test_each_refusal_is_one_sentence_with_a_fault(
    status: str, body: object, fault: str, code: str, said: str
) -> None:
    """Every status has a class, a code and a sentence that names the endpoint and what to do, and never the key."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = await failure(*plain(status, b"" if status.startswith("204") else data))
    assert (error.fault, error.code) == (fault, code)
    assert status[:3] in str(error)
    with pytest.raises(ModelError, match=said):
        raise error


async def test_a_refused_key_is_not_quoted_and_a_missing_one_is_asked_for() -> None:
    """The vendor's own text about a key is left out; without a key the sentence says to set one."""
    body = json.dumps({"error": {"message": f"Incorrect API key: {KEY[:12]}..."}}).encode()
    assert KEY[:12] not in str(await failure(*plain("401 Unauthorized", body)))
    assert "set OPENAI_API_KEY" in str(await failure(*plain("401 Unauthorized", body), key=""))


@pytest.mark.parametrize(
    ("pieces", "fault", "code", "said"),
    [
        ([head(), sse(delta(content="Hal"))], "transient", "broken_off", "in the middle"),
        ([head(), b'data: {"choices": [{"del'], "transient", "broken_off", "in the middle"),
        ([head()], "transient", "broken_off", "in the middle"),
        ([head(length=9999), HELLO[:40]], "transient", "broken_off", "broke the connection off"),
        ([b"HTTP/1.1 200"], "transient", "broken_off", "broke the connection off"),
        ([b"SSH-2.0-server\r\n"], "transient", "broken_off", "broke the connection off"),
        ([head(kind="text/html") + b"<html>"], "terminal", "bad_reply", "'text/html'"),
        ([head(kind="application/json") + b"{}"], "terminal", "bad_reply", "is OPENAI_BASE_URL right"),
        ([head(), sse("not json"), None], "terminal", "bad_reply", "not JSON"),
        ([head(), sse("[1]"), None], "terminal", "bad_reply", "not an object"),
        ([head(), sse({"error": {"message": "overloaded"}}), None], "transient", "broken_off", "overloaded"),
        ([head(), sse({"error": {"code": 429, "message": "x"}})], "transient", "rate_limited", "429"),
        ([head(), sse({"error": {"type": "exceed_context_size_error"}})], "terminal", "context_exceeded", "fits"),
    ],
    ids=lambda value: repr(value)[-30:],
)  # fmt: skip
async def test_each_broken_stream_is_one_sentence_with_a_fault(
    pieces: list[Piece], fault: str, code: str, said: str
) -> None:
    """A stream that ends early, is none, is garbage or carries an error never passes for a reply, nor hangs."""
    error = await failure(*pieces)
    assert (error.fault, error.code) == (fault, code)
    assert said in str(error)


# The HTTP client leaves its inner generators to the collector when it refuses an event of its own accord.
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_an_endless_event_is_refused() -> None:
    """A line that never ends is not read for ever."""
    error = await failure(head(), b"data: ", *([b"x" * 65536] * 20), None)
    assert (error.fault, error.code) == ("terminal", "reply_too_large")


async def test_a_reply_of_endless_fragments_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, arguments and calls are bounded together, and the connection is closed at the bound."""
    monkeypatch.setattr("affidavit.actors.models.chat_stream.MAX_REPLY_CHARS", 1000)
    error = await failure(head(), *([sse(delta(content="x" * 300))] * 5), None)
    assert error.code == "bad_reply"
    calls = [{"index": number, "id": str(number)} for number in range(MAX_CALLS + 1)]
    assert "tool calls" in str(await failure(head(), sse(delta(tool_calls=calls)), None))


async def test_a_large_error_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an error that never ends only the beginning is read."""
    monkeypatch.setattr(openai, "MAX_ERROR_BYTES", 1000)
    error = await failure(head("500 Internal Server Error"), *([b"x" * 600] * 3), None)
    assert error.fault == "transient"


async def test_a_refused_connection_is_transient_and_says_what_to_check(unused_tcp_port: int) -> None:
    """Nothing listens: one sentence with host and port."""
    async with opened(f"http://127.0.0.1:{unused_tcp_port}/v1") as model:
        with pytest.raises(ModelError, match=f"cannot connect to 127.0.0.1:{unused_tcp_port}") as caught:
            await model.generate(ASK)
    assert (caught.value.fault, caught.value.code) == ("transient", "connect_failed")


@pytest.fixture
def unused_tcp_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_silent_endpoint_times_out(patient_clock: trio.testing.MockClock) -> None:
    """No answer at all, and an answer that goes silent, are transient timeouts."""
    for pieces in ([None], [head(), sse(delta(content="x")), None]):
        error = await failure(*pieces)
        assert (error.fault, error.code) == ("transient", "timeout")


async def test_a_turn_as_a_whole_has_a_limit(
    monkeypatch: pytest.MonkeyPatch, patient_clock: trio.testing.MockClock
) -> None:
    """However often something arrives, a turn that does not end is given up."""
    monkeypatch.setattr(openai, "TURN_SECONDS", 50.0)
    error = await failure(head(), sse(delta(content="x")), None)
    assert (error.fault, error.code) == ("transient", "timeout")
    assert "50 seconds" in str(error)


async def test_cancelling_closes_the_connection() -> None:
    """A cancelled turn hangs up at once, and the model can be asked again."""
    slow = [head(), sse(delta(content="x")), None]
    async with serve(slow, [head(), HELLO]) as endpoint, opened(endpoint.url) as model:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(model.generate, ASK)
            while not endpoint.requests:
                await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
        with trio.fail_after(30):
            await endpoint.hung_up.wait()
        assert (await model.generate(ASK)).text == "Hello"


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        (None, "", "no key for api.openai.com: set the environment variable OPENAI_API_KEY"),
        ("https://models.example/v1", "", "no key for models.example"),
        ("https://127.0.0.1.example/v1", "", "no key for 127.0.0.1.example"),
        ("ftp://x/v1", KEY, "must look like"),
        ("localhost:8080", KEY, "must look like"),
        ("http://", KEY, "must look like"),
        ("http://[::1", KEY, "is not an address"),
        ("http://x:99999/v1", KEY, "is not an address"),
        (f"https://user:{KEY}@x/v1", "k", "without user"),
        ("https://x/v1?key=1", KEY, "without user, query"),
        (None, "two words", "characters that no key has"),
        (None, "line\nbreak", "characters that no key has"),
        (None, "kéy", "characters that no key has"),
    ],
)
async def test_bad_settings_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, url: str | None, key: str, said: str
) -> None:
    """A missing key or an address that is none is told when the model is opened, and never repeats a key."""
    for name, value in (("OPENAI_BASE_URL", url), ("OPENAI_API_KEY", key)):
        monkeypatch.setenv(name, value or "")
    with pytest.raises(ConfigurationError, match=said) as caught:
        async with open_openai_model("m"):
            pass
    assert KEY not in str(caught.value)


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
    assembly = Assembly()
    for chunk in chunks:
        try:
            assembly.add(chunk)
        except (BadChunk, StreamedFailure):
            break
    reply = assembly.reply()
    assert isinstance(reply.text, str)
    assert reply.stop_reason
