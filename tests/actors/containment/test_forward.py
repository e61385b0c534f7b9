"""The way from a sandbox to the proxy: what a command can make of it, and what it must not cost the process that serves it."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path

import trio
import trio.testing

from affidavit.actors.containment.forward import MOST_CONNECTIONS, forward
from affidavit.actors.containment.port import ProxyRoute

FLOOD = 3 * MOST_CONNECTIONS


def descriptors() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def listening(backlog: int = 4 * MOST_CONNECTIONS) -> trio.SocketListener:
    """A listener on loopback; in place of one inside a sandbox, or of the proxy."""
    return (await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=backlog))[0]


def port_of(listener: trio.SocketListener) -> int:
    """Its port."""
    port: int = listener.socket.getsockname()[1]
    return port


async def test_a_flood_of_connections_is_not_accepted() -> None:
    """A command that opens hundreds takes no more of our descriptors than for the few that are carried; the rest wait."""
    inside, proxy = await listening(), await listening()
    reached = 0

    async def keep(stream: trio.SocketStream) -> None:
        nonlocal reached
        reached += 1
        async with stream:
            assert await stream.receive_some(1) == b"x"
            await stream.send_all(b"y")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, keep, [proxy])
        nursery.start_soon(forward, inside, ProxyRoute(port_of(proxy)))
        before = descriptors()
        clients = [await trio.open_tcp_stream("127.0.0.1", port_of(inside)) for _ in range(FLOOD)]
        while reached < MOST_CONNECTIONS:
            await trio.testing.wait_all_tasks_blocked(0.01)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert reached == MOST_CONNECTIONS
        # Each that is carried has one from the command, one to the proxy, and here the proxy's own end.
        assert descriptors() - before - FLOOD <= 3 * MOST_CONNECTIONS

        for client in clients:  # Each that ends makes room for one that waited.
            async with client:
                await client.send_all(b"x")
                assert await client.receive_some(1) == b"y"
        assert reached == FLOOD
        nursery.cancel_scope.cancel()


async def test_a_proxy_that_takes_nobody_fails_the_connection_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Somebody else has filled the proxy's queue: the command sees its connection end in time, and the call goes on."""
    inside = await listening()
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen(0)
        queue = [socket.socket() for _ in range(4)]
        for waiting in queue:
            waiting.setblocking(False)
            waiting.connect_ex(busy.getsockname())
        async with trio.open_nursery() as nursery:
            serve = partial(forward, inside, ProxyRoute(busy.getsockname()[1]))
            nursery.start_soon(serve)
            for _ in range(2):
                async with await trio.open_tcp_stream("127.0.0.1", port_of(inside)) as client:
                    assert await client.receive_some(1) == b""
            nursery.cancel_scope.cancel()
        for waiting in queue:
            waiting.close()
