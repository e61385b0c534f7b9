"""The client that serves many runs: each request under its own run's guard, on its own run's record."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
import trio
import trio.testing

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.netguard.decision import EgressDenied
from affidavit.actors.netguard.policy import EgressPolicy
from affidavit.actors.netguard.run_client import KEEP_SECONDS, RunTransport, run_client
from affidavit.actors.netguard.scope import going_out_through
from tests.actors.netguard.netkit import Book, open_site, response


async def get(client: httpx2.AsyncClient, book: Book, url: str, guard: Any = None) -> str:
    """One request in the name of a run."""
    with going_out_through(guard or book.guard()):
        return (await client.get(url)).text


async def test_the_endpoint_is_granted_to_every_run_and_nothing_else() -> None:
    """A run without any rule reaches the model that the operator named, and no other port or host through the same client."""
    book = Book()
    async with open_site(book) as site, open_site(other := Book()) as elsewhere:
        async with run_client("127.0.0.1", site.port) as client:
            assert await get(client, book, f"http://127.0.0.1:{site.port}/") == "reached"
            for place in (f"127.0.0.1:{elsewhere.port}", f"127.0.0.2:{site.port}", "169.254.169.254"):
                with pytest.raises(EgressDenied):
                    await get(client, book, f"http://{place}/")
        assert book.accepted == [("127.0.0.1", site.port)]
    assert [one.allowed for one in book.decisions] == [True, False, False, False]
    assert (book.unexplained, other.accepted) == ([], [])


async def test_no_run_uses_a_connection_that_another_was_allowed() -> None:
    """Two runs that take turns have a connection each, with an allow on each one's own record; a run's own is used again."""
    site_book, one, two = Book(), Book(), Book()
    async with open_site(site_book) as site, run_client("127.0.0.1", site.port) as client:
        first, second = one.guard(), two.guard()
        for _ in range(3):
            for book, guard in ((one, first), (two, second)):
                assert await get(client, book, f"http://127.0.0.1:{site.port}/", guard) == "reached"
        assert len(site.heads) == 6
    assert len(site_book.accepted) == 2
    assert [len(book.decisions) for book in (one, two)] == [1, 1]


async def test_a_grant_outlives_a_change_of_the_policy() -> None:
    """What the operator named stays granted whichever policy comes into force, and what a policy opened does not."""
    book = Book()
    guard = book.guard("127.0.0.2")
    granted = guard.granting("127.0.0.1", 80)
    assert granted.policy.decide("127.0.0.2", "127.0.0.2", 80).allowed
    guard.replace_policy(EgressPolicy(allow=("127.0.0.3",)))
    assert granted.policy.decide("127.0.0.1", "127.0.0.1", 80).allowed
    assert granted.policy.decide("127.0.0.3", "127.0.0.3", 80).allowed
    assert not granted.policy.decide("127.0.0.2", "127.0.0.2", 80).allowed
    assert not guard.policy.decide("127.0.0.1", "127.0.0.1", 80).allowed
    assert granted.for_goal("g").policy == granted.policy


async def test_outside_of_any_run_nothing_is_sent() -> None:
    """There is no policy to decide by and no record to write on."""
    async with open_site(book := Book()) as site, run_client("127.0.0.1", site.port) as client:
        with pytest.raises(RuntimeError, match="outside of a run"):
            await client.get(f"http://127.0.0.1:{site.port}/")
    assert book.accepted == []


async def test_connections_of_runs_that_are_over_are_given_up(autojump_clock: trio.testing.MockClock) -> None:
    """A host that serves run after run does not keep a connection for each; one that is still answering is kept."""
    book = Book()
    held_back = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhalf"
    async with open_site(book) as site:
        site.reply = lambda head: held_back if "/slow" in head else response(b"reached")
        transport = RunTransport("127.0.0.1", site.port)
        url = f"http://127.0.0.1:{site.port}"
        async with httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False) as client:
            with going_out_through(book.guard()):
                slow = await client.send(client.build_request("GET", f"{url}/slow"), stream=True)
            for _ in range(5):
                assert await get(client, book, url) == "reached"
            assert len(transport._held) == 6
            await trio.sleep(KEEP_SECONDS + 1)
            assert await get(client, book, url) == "reached"
            assert len(transport._held) == 2
            await slow.aclose()
        assert transport._held == {}


@pytest.mark.parametrize(("host", "port"), [("", 80), ("a b", 80), ("a.example", 0), ("0.0.0.0", 80)])
def test_an_endpoint_that_is_none_is_refused_at_once(host: str, port: int) -> None:
    """Not when the first turn is asked for."""
    with pytest.raises(ConfigurationError):
        run_client(host, port)


async def test_a_failed_request_leaves_nothing_counted() -> None:
    """Errors are httpx2's own, and a connection that failed does not count as in use for ever."""
    book = Book()
    async with open_site(Book()) as site:
        port = site.port
    transport = RunTransport("127.0.0.1", port)
    async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
        with pytest.raises(httpx2.ConnectError):
            await get(client, book, f"http://127.0.0.1:{port}/")
        assert [held.busy for held in transport._held.values()] == [0]
