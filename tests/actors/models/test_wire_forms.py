"""Further promises of every adapter over real sockets: forms of one stream, beginnings that come twice, and ways to nowhere."""

from __future__ import annotations

from importlib.util import find_spec

import httpx2
import pytest

from affidavit.actors.errors import ModelError
from affidavit.actors.models.limits import CallLimits
from tests import environment
from tests.actors.models.asking import ASK, KEY
from tests.actors.models.dialects import ALL, Dialect
from tests.actors.models.endpoints import head, plain, serve
from tests.actors.models.test_wire_contract import CALLS, WORDS, answer, body, dialects, failure

PING = 'event: ping\ndata: {"type": "ping"}\n\n'


@dialects
@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
async def test_lines_may_end_in_any_of_three_ways(dialect: Dialect, ending: bytes) -> None:
    """Over the wire in pieces of seven bytes, so that a CR and its LF come apart too."""
    whole = body(dialect).replace(b"\n", ending)
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    if ending == b"\r\n":
        assert any(piece.endswith(b"\r") for piece in pieces)
    assert await answer(dialect, head(), *pieces) == await answer(dialect, head(), body(dialect))


@dialects
async def test_keep_alives_between_any_two_events_change_nothing(dialect: Dialect) -> None:
    """Comments, pings and empty lines, before the first event and behind each."""
    for sign in (": alive\n\n", PING, "\n\n", ":\n"):
        kept = sign + "".join(f"{each}{sign}" for each in dialect.events(WORDS, CALLS))
        assert await answer(dialect, head(), kept.encode()) == await answer(dialect, head(), body(dialect))


@dialects
async def test_an_answer_that_begins_again_is_refused(dialect: Dialect) -> None:
    """Under the same id too: once words have come, a second beginning at any event never makes a reply with words twice."""
    events = dialect.events("One answer.", ())
    words = next(at for at, each in enumerate(events) if "One" in each)
    # The last events of a chat only repeat that it is over.
    last = len(events) - (3 if dialect.name == "openai" else 1)
    assert last > words + 3
    for at in range(words + 1, last + 1):
        error = await failure(dialect, head(), "".join([*events[:at], *events]).encode(), None)
        assert (error.fault, error.code) == ("transient", "spliced"), at


@dialects
async def test_a_call_that_begins_again_is_refused(dialect: Dialect) -> None:
    """Arguments are never joined from two beginnings of the whole answer."""
    events = dialect.events("", CALLS[:1])
    for at in range(3, len(events) - 3):
        error = await failure(dialect, head(), "".join([*events[:at], *events]).encode(), None)
        assert (error.fault, error.code) == ("transient", "spliced"), at


@dialects
async def test_an_endpoint_that_is_never_reached_ends_at_the_limit_for_that(dialect: Dialect) -> None:
    """The limit for connecting goes to the client with each request, and its running out is worth another attempt."""
    limits: list[object] = []

    class Nowhere(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            limits.append(request.extensions["timeout"])
            raise httpx2.ConnectTimeout("so long", request=request)

    async with (
        httpx2.AsyncClient(transport=Nowhere(), trust_env=False) as client,
        dialect.open(
            "m",
            base_url="http://127.0.0.1:9/v1",
            api_key=KEY,
            client=client,
            limits=CallLimits(connect_seconds=4.5),
        ) as model,
    ):
        with pytest.raises(ModelError, match="did not answer in time") as caught:
            await model.generate(ASK)
    assert (caught.value.fault, caught.value.code) == ("transient", "timeout")
    assert [each["connect"] for each in limits if isinstance(each, dict)] == [4.5]


@dialects
async def test_no_redirect_and_no_proxy_is_followed(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key and conversation go to the endpoint that was named and to no other."""
    async with serve([head(), body(dialect)]) as other:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, other.url)
        error = await failure(dialect, *plain("307 Temporary Redirect", headers=f"Location: {other.url}\r\n"))
    assert (error.fault, error.code) == ("terminal", "redirected")
    assert other.connections == 0


def test_every_way_to_ask_a_vendor_is_held_to_this() -> None:
    """Both wire formats, each by our own client and by the vendor's."""
    if find_spec("openai") is None or find_spec("anthropic") is None:
        environment.absent("the packages openai and anthropic are not installed")
    assert {each.provider for each in ALL} == {"openai", "anthropic", "openai-sdk", "anthropic-sdk"}
