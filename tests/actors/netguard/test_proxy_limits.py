"""What one proxy puts up with: requests, clients at the same time, silence, and the whole."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from affidavit.actors.netguard.proxy import ProxyLimits, open_proxy
from tests.actors.netguard.netkit import Book, authorization, exchange, forward, open_site


async def test_requests_are_counted_and_the_first_one_too_many_is_on_the_record() -> None:
    """A child that asks without end does not fill the record without end."""
    book = Book()
    limits = ProxyLimits(requests=2)
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.1"), limits=limits) as proxy:
        found = [await exchange(proxy.port, forward(proxy, f"127.0.0.1:{site.port}")) for _ in range(5)]
    assert [answer[9:12] for answer in found] == [b"200", b"200", b"403", b"429", b"429"]
    assert [one.allowed for one in book.decisions] == [True, True, False]
    assert book.decisions[-1].reason == "the call has made its 2 requests"


async def test_more_clients_than_slots_wait_their_turn() -> None:
    """A client that holds its connection keeps others waiting once all slots are taken, and no longer."""
    book = Book()
    limits = ProxyLimits(connections=1)
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.1"), limits=limits) as proxy:
        first = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        await trio.testing.wait_all_tasks_blocked(0.01)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange, proxy.port, forward(proxy, f"127.0.0.1:{site.port}"))
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert book.decisions == []
            await first.aclose()
    assert len(book.decisions) == 1


async def _waits_out(limits: ProxyLimits, request: str, book: Book) -> bytes:
    async with open_proxy(book.guard("127.0.0.0/8"), limits=limits) as proxy:
        return await exchange(proxy.port, request.replace("AUTH\r\n", authorization(proxy.url)))


async def test_a_head_that_does_not_come_is_given_up() -> None:
    """A client that says nothing does not keep its slot."""
    found = await _waits_out(ProxyLimits(head_seconds=0.05), "GET ", Book())
    assert found.startswith(b"HTTP/1.1 408 Request Timeout\r\n")


@pytest.mark.parametrize("limits", [ProxyLimits(idle_seconds=0.05), ProxyLimits(whole_seconds=0.05)])
async def test_a_server_that_does_not_answer_is_given_up(limits: ProxyLimits) -> None:
    """After too long a silence, or when the whole has taken too long, the client is told."""
    book = Book()
    async with open_site(book, lambda head: b"") as site:
        place = f"127.0.0.1:{site.port}"
        found = await _waits_out(
            limits, f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\nAUTH\r\n\r\n", book
        )
    assert found.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")


async def test_silence_on_one_side_is_none_while_the_other_talks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A long download is not cut off because the client says nothing meanwhile."""
    book = Book()

    async def slow(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            await trio.sleep(40)
            await stream.send_all(b".")

    limits = ProxyLimits(idle_seconds=60)
    async with trio.open_nursery() as nursery, open_proxy(book.guard("127.0.0.0/8"), limits=limits) as proxy:
        listeners = await nursery.start(trio.serve_tcp, slow, 0)
        place = f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        assert (await exchange(proxy.port, forward(proxy, place))).endswith(b"..........")
        nursery.cancel_scope.cancel()
