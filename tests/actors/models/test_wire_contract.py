"""What both adapters promise of any stream, told over real sockets on loopback with servers that send exactly given bytes."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ModelError
from affidavit.actors.events import Usage
from affidavit.actors.models.limits import CallLimits
from affidavit.actors.models.port import Delta, ModelReply, ModelRequest, ToolCall
from affidavit.actors.models.sse import EventReader
from tests.actors.models.asking import ASK, KEY
from tests.actors.models.dialects import ALL, Dialect
from tests.actors.models.endpoints import Piece, chunked, head, plain, serve

WORDS = "Grüße 🙂 to all."
CALLS = (("call_1", "look", '{"path": "ü", "n": 1.10}'), ("call_2", "look", "{}"))
dialects = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.provider)


def body(dialect: Dialect) -> bytes:
    """An answer with words and calls."""
    return "".join(dialect.events(WORDS, CALLS)).encode()


async def answer(
    dialect: Dialect, *pieces: Piece, request: ModelRequest = ASK, limits: CallLimits | None = None
) -> ModelReply:
    """The reply that the adapter makes of these bytes."""
    async with serve(pieces) as endpoint, dialect.opened(endpoint.url, limits or CallLimits()) as model:
        return await model.generate(request)


async def failure(dialect: Dialect, *pieces: Piece, limits: CallLimits | None = None) -> ModelError:
    """The error that the adapter makes of these bytes: one line that names the endpoint and holds no key."""
    async with serve(pieces) as endpoint, dialect.opened(endpoint.url, limits or CallLimits()) as model:
        with pytest.raises(ModelError) as caught:
            await model.generate(ASK)
    text = str(caught.value)
    assert "127.0.0.1:" in text
    assert "\n" not in text
    assert KEY not in text
    return caught.value


@dialects
async def test_words_calls_cost_and_origin_come_out_whole(dialect: Dialect) -> None:
    """Text and arguments are joined, the cost is counted with all cached input, and who answered is said."""
    reply = await answer(dialect, head(), body(dialect))
    assert reply.text == WORDS
    assert reply.tool_calls == tuple(ToolCall(*call) for call in CALLS)
    assert reply.stop_reason == "tool_use"
    assert reply.usage == Usage(*dialect.usage)
    assert reply.served is not None
    assert reply.served.model == "m-2026"
    assert reply.served.id


@dialects
async def test_bytes_may_come_one_at_a_time(dialect: Dialect) -> None:
    """A stream in pieces of one byte, each read by itself, makes the same reply."""
    whole = "".join(dialect.events("ü🙂", CALLS[:1])).encode()
    reply = await answer(dialect, head(), *(whole[at : at + 1] for at in range(len(whole))))
    assert reply == await answer(dialect, head(), whole)


@dialects
@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_a_cut_at_any_byte_changes_nothing(dialect: Dialect, ending: bytes) -> None:
    """Wherever a stream is cut in two, and however its lines end, the events are the same."""
    whole = body(dialect).replace(b"\n", ending)
    wanted = EventReader(10_000).feed(body(dialect))
    assert len(wanted) > 10
    for at in range(len(whole) + 1):
        reader = EventReader(10_000)
        assert [*reader.feed(whole[:at]), *reader.feed(whole[at:])] == wanted


@dialects
async def test_comments_and_signs_of_life_are_no_content(dialect: Dialect) -> None:
    """Comments, retry hints, ids, empty events and a byte order mark change nothing."""
    noisy = "".join(
        f": keep-alive\n\n{each}retry: 10\nid: 7\n\n" for each in dialect.events(WORDS, CALLS)
    ).encode()
    plain_reply = await answer(dialect, head(), body(dialect))
    assert await answer(dialect, head(), b"\xef\xbb\xbf" + noisy) == plain_reply


@dialects
async def test_the_next_turn_needs_no_new_connection(dialect: Dialect) -> None:
    """The end of the stream is read, so that the connection can be kept."""
    async with (
        serve(chunked(body(dialect)), keep_alive=True) as endpoint,
        dialect.opened(endpoint.url) as model,
    ):
        for _ in range(3):
            assert (await model.generate(ASK)).text == WORDS
    assert (endpoint.connections, len(endpoint.requests)) == (1, 3)


@dialects
async def test_a_body_left_open_after_the_end_is_not_waited_for(
    dialect: Dialect, patient_clock: trio.testing.MockClock
) -> None:
    """The reply stands once its end was said, even if the server never ends the body."""
    assert (await answer(dialect, head(), body(dialect), None)).text == WORDS


@dialects
async def test_a_stream_cut_off_after_any_event_is_no_reply(dialect: Dialect) -> None:
    """A truncated answer is never taken for a whole one, wherever it breaks off."""
    events = dialect.events("Hi", (("c1", "look", "{}"),))
    # The end of a chat is said first with the reason to stop, and then twice more in other ways.
    for count in range(len(events) - (3 if dialect.name == "openai" else 1) + 1):
        error = await failure(dialect, head(), "".join(events[:count]).encode())
        assert (error.fault, error.code) == ("transient", "broken_off"), count


@dialects
async def test_an_event_that_the_end_cuts_off_is_no_event(dialect: Dialect) -> None:
    """The last event counts only with the empty line behind it."""
    events = dialect.events("Hi", ())
    # Of a chat, the chunk with the reason to stop makes the answer whole.
    last = 2 if dialect.name == "openai" else len(events) - 1
    assert "stop" in events[last]
    cut = "".join(events[: last + 1])[:-1]
    assert (await failure(dialect, head(), cut.encode())).code == "broken_off"


@dialects
async def test_a_connection_reset_in_the_middle_is_transient(dialect: Dialect) -> None:
    """A response that promised more than came is worth another attempt."""
    whole = body(dialect)
    error = await failure(dialect, head(length=len(whole)), whole[: len(whole) // 2])
    assert (error.fault, error.code) == ("transient", "broken_off")


@dialects
@pytest.mark.parametrize(
    ("kind", "fault", "code"),
    [
        ("overloaded_error", "transient", "overloaded"),
        ("rate_limit_error", "transient", "rate_limited"),
        ("api_error", "transient", "unavailable"),
        ("invalid_request_error", "terminal", "bad_request"),
        ("authentication_error", "terminal", "unauthorized"),
        ("something_new", "transient", "broken_off"),
    ],
)
async def test_an_error_in_mid_stream_has_its_own_fault(
    dialect: Dialect, kind: str, fault: str, code: str
) -> None:
    """A failure reported after words had come is that failure, and the words are no reply."""
    begun = "".join(dialect.events(WORDS, ())[:5])
    error = await failure(dialect, head(), (begun + dialect.error(kind, f"it is so {KEY}")).encode(), None)
    assert (error.fault, error.code) == (fault, code)


@dialects
async def test_two_answers_in_one_stream_are_refused(dialect: Dialect) -> None:
    """A second answer spliced into the first, at any event, never makes a reply of both; it is worth another attempt."""
    first = dialect.events("One answer.", ())
    second = [each.replace("chatcmpl-1", "chatcmpl-2").replace("msg_1", "msg_2") for each in first]
    # Before the first event, and behind the end, there is one whole answer.
    for at in range(1, len(first) - 1):
        if first[at - 1].startswith("event: ping"):
            continue
        error = await failure(dialect, head(), "".join([*first[:at], *second]).encode(), None)
        assert (error.fault, error.code) == ("transient", "spliced"), at


@dialects
async def test_words_after_the_end_of_the_turn_are_refused(dialect: Dialect) -> None:
    """What comes after the reason to stop is not of this answer."""
    events = dialect.events("Hi", ())
    stop = next(at for at, each in enumerate(events) if 'stop_reason": "' in each or '"stop"' in each)
    words = next(each for each in events if "Hi" in each)
    error = await failure(dialect, head(), "".join([*events[: stop + 1], words]).encode(), None)
    assert (error.fault, error.code) == ("transient", "spliced")


@dialects
@pytest.mark.parametrize("garbage", ["{", "[]", '"x"', "[" * 5000, "nonsense"], ids=lambda text: text[:8])
async def test_garbage_is_refused(dialect: Dialect, garbage: str) -> None:
    """An event that is not of the protocol is no reply, and the connection is closed."""
    begun = "".join(dialect.events(WORDS, ())[:3])
    error = await failure(dialect, head(), f"{begun}data: {garbage}\n\n".encode(), None)
    assert (error.fault, error.code) == ("terminal", "bad_reply")


@dialects
@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8", ""])
async def test_an_answer_of_the_wrong_type_is_refused(dialect: Dialect, kind: str) -> None:
    """What is no stream is not read as one; the sentence says which variable to look at."""
    error = await failure(dialect, head(kind=kind), body(dialect))
    assert (error.fault, error.code) == ("terminal", "bad_reply")
    assert f"{dialect.name.upper()}_BASE_URL" in str(error)


@dialects
@pytest.mark.parametrize(
    ("status", "headers", "code", "wait"),
    [
        ("429 Too Many Requests", "Retry-After: 7\r\n", "rate_limited", 7.0),
        ("429 Too Many Requests", "Retry-After-Ms: 250\r\nRetry-After: 7\r\n", "rate_limited", 0.25),
        (
            "503 Service Unavailable",
            "Date: Mon, 30 Nov 2026 10:00:00 GMT\r\nRetry-After: Mon, 30 Nov 2026 10:01:30 GMT\r\n",
            "unavailable",
            90.0,
        ),
        ("529 Overloaded", "", "overloaded", None),
        ("529 Overloaded", "Retry-After: soon\r\n", "overloaded", None),
        ("500 Internal Server Error", "", "unavailable", None),
    ],
)
async def test_a_busy_endpoint_says_when_to_come_back(
    dialect: Dialect, status: str, headers: str, code: str, wait: float | None
) -> None:
    """Busy is transient, and the wait that was asked for comes with the error."""
    error = await failure(dialect, *plain(status, b'{"error": {"message": "x"}}', headers=headers))
    assert (error.fault, error.code, error.retry_after) == ("transient", code, wait)


@dialects
async def test_a_spent_account_is_not_asked_again(dialect: Dialect) -> None:
    """A spend limit comes with the status of a rate limit, but no wait within a turn ends it."""
    said = (
        b'{"error": {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}}'
    )
    error = await failure(dialect, *plain("429 Too Many Requests", said))
    assert (error.fault, error.code) == ("terminal", "quota_exceeded")


@dialects
async def test_no_answer_at_all_ends_at_the_first_limit(
    dialect: Dialect, patient_clock: trio.testing.MockClock
) -> None:
    """Neither silence, nor a head alone, nor signs of life without content, are waited for longer than that."""
    signs: list[Piece] = []
    for _ in range(30):
        signs += [b": alive\n\n", b'event: ping\ndata: {"type": "ping"}\n\n', 10.0]
    for pieces in ([None], [head(), None], [head(), *signs, None]):
        error = await failure(dialect, *pieces, limits=CallLimits(first_seconds=100.0, gap_seconds=30.0))
        assert (error.fault, error.code) == ("transient", "timeout")
        assert "did not begin to answer within 100 seconds" in str(error)


@dialects
async def test_silence_in_the_middle_ends_at_the_gap_limit(
    dialect: Dialect, patient_clock: trio.testing.MockClock
) -> None:
    """A stream that dies is given up; one that takes its time between events is not."""
    events = [each.encode() for each in dialect.events("Slow.", ())]
    limits = CallLimits(first_seconds=100.0, gap_seconds=30.0)
    error = await failure(dialect, head(), b"".join(events[:4]), None, limits=limits)
    assert "fell silent for 30 seconds" in str(error)
    slow = [piece for each in events for piece in (each, 20.0)]
    assert (await answer(dialect, head(), *slow, limits=limits)).text == "Slow."


@dialects
async def test_a_drip_of_bytes_does_not_renew_the_gap_limit(
    dialect: Dialect, patient_clock: trio.testing.MockClock
) -> None:
    """An event that grows by a byte now and then, and comments without end, are silence."""
    begun = "".join(dialect.events("Slow.", ())[:4]).encode()
    for drip in (b"x", b": alive\n"):
        pieces: list[Piece] = [head(), begun, b"data: "]
        pieces += [piece for _ in range(20) for piece in (drip, 10.0)]
        error = await failure(dialect, *pieces, None, limits=CallLimits(gap_seconds=45.0))
        assert "fell silent" in str(error)


@dialects
async def test_an_answer_that_never_ends_is_cut_at_the_whole_limit(
    dialect: Dialect, patient_clock: trio.testing.MockClock
) -> None:
    """However often an event arrives, the call as a whole has a limit."""
    events = [each.encode() for each in dialect.events("x" * 300, ())]
    slow = [piece for each in events for piece in (each, 10.0)]
    error = await failure(dialect, head(), *slow, limits=CallLimits(whole_seconds=200.0))
    assert "did not end its answer within 200 seconds" in str(error)


@dialects
async def test_a_line_without_end_is_refused(dialect: Dialect) -> None:
    """A line, a comment too, is read up to its bound only."""
    for start in (b"data: ", b": "):
        pieces = [head(), start, *([b"x" * 65536] * 20), None]
        error = await failure(dialect, *pieces, limits=CallLimits(event_bytes=100_000))
        assert (error.fault, error.code) == ("terminal", "reply_too_large")


@dialects
async def test_a_stream_of_nothing_without_end_is_refused(dialect: Dialect) -> None:
    """Even events that mean nothing are read up to a bound only."""
    pieces = [head(), *([b": nothing\n\n" * 5000] * 20), None]
    error = await failure(dialect, *pieces, limits=CallLimits(stream_bytes=100_000))
    assert (error.fault, error.code) == ("terminal", "reply_too_large")


@dialects
async def test_a_large_error_is_read_in_part(dialect: Dialect) -> None:
    """Of an error that never ends only the beginning is read."""
    pieces = [head("500 Internal Server Error"), *([b"x" * 600] * 3), None]
    assert (await failure(dialect, *pieces, limits=CallLimits(error_bytes=1000))).fault == "transient"


@dialects
async def test_who_wants_to_see_is_told_every_piece_in_order(dialect: Dialect) -> None:
    """The pieces make up the text, and the reply is the same with and without a watcher."""
    seen: list[Delta] = []
    request = ModelRequest(ASK.system, ASK.messages, on_delta=seen.append)
    reply = await answer(dialect, head(), body(dialect), request=request)
    assert "".join(each.text for each in seen) == WORDS
    assert len(seen) > 3
    assert reply == await answer(dialect, head(), body(dialect))
    assert request == ASK


@dialects
async def test_cancelling_closes_the_connection(dialect: Dialect) -> None:
    """A cancelled turn hangs up at once, and the model can be asked again."""
    begun = "".join(dialect.events(WORDS, ())[:4]).encode()
    async with (
        serve([head(), begun, None], [head(), body(dialect)]) as endpoint,
        dialect.opened(endpoint.url) as model,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(model.generate, ASK)
            while not endpoint.requests:
                await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
        with trio.fail_after(30):
            await endpoint.hung_up.wait()
        assert (await model.generate(ASK)).text == WORDS
