"""The chat-completions adapter against a real HTTP server: how it fails, and that it never hangs."""

from __future__ import annotations

import json
import socket

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.models.openai import open_openai_model
from affidavit.actors.models.wire import MAX_CALLS
from tests.actors.models.asking import ASK, HELLO, KEY, answer, failure, opened
from tests.actors.models.endpoints import Piece, delta, head, plain, serve, sse


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


async def test_a_redirect_is_not_followed() -> None:
    """The key and the conversation go to the endpoint that was named and to no other."""
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/elsewhere\r\nContent-Length: 0\r\n\r\n"
    async with serve([moved], [head(), HELLO]) as endpoint, opened(endpoint.url) as model:
        with pytest.raises(ModelError, match="redirects elsewhere"):
            await model.generate(ASK)
    assert len(endpoint.requests) == 1


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


async def test_a_reply_of_endless_fragments_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, arguments and calls are bounded together, and the connection is closed at the bound."""
    monkeypatch.setattr("affidavit.actors.models.chat_stream.MAX_REPLY_CHARS", 1000)
    error = await failure(head(), *([sse(delta(content="x" * 300))] * 5), None)
    assert error.code == "bad_reply"
    calls = [{"index": number, "id": str(number)} for number in range(MAX_CALLS + 1)]
    assert "tool calls" in str(await failure(head(), sse(delta(tool_calls=calls)), None))


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
        (f"http://x:{KEY}", KEY, "is not an address$"),
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
