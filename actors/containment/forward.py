"""Carries connections from inside a sandbox to the proxy outside: the sandbox has no network but its own loopback.

The socket that is accepted from here was made inside the sandbox and handed out before the command began, so it belongs to the
sandbox's network while it is served in this process. Bytes are carried and never looked at; what may be reached is for the
proxy to decide.
"""

from __future__ import annotations

from typing import Final

import trio

from affidavit.actors.containment.port import ProxyRoute

MOST_CONNECTIONS: Final = 32
_NO_ROOM_PAUSE: Final = 0.1
_CHUNK: Final = 65536
_CONNECT_SECONDS: Final = 10.0


async def forward(listener: trio.SocketListener, route: ProxyRoute) -> None:
    """Accept connections and carry each to the proxy and back, until cancelled; never more than `MOST_CONNECTIONS` at once.

    Args:
        listener: Listens inside the sandbox; closed on leaving.
        route: Where the proxy is.

    Cancellation: all connections are closed at once.
    """
    slots = trio.Semaphore(MOST_CONNECTIONS)

    async def serve(inside: trio.SocketStream) -> None:
        try:
            async with inside:
                await _carry(inside, route)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return  # Either side went away or is too busy, which fails this connection and not the command.
        finally:
            slots.release()

    async with listener, trio.open_nursery() as nursery:
        while True:
            # Before a connection is taken, since each costs this process descriptors that its other runs need too.
            await slots.acquire()
            try:
                stream = await listener.accept()
            except OSError:
                # Out of descriptors, for instance: the command's connection waits, and the run goes on.
                slots.release()
                await trio.sleep(_NO_ROOM_PAUSE)  # noqa: ASYNC120  # the error is dealt with: there is room again later
            else:
                nursery.start_soon(serve, stream)


async def _carry(inside: trio.SocketStream, route: ProxyRoute) -> None:
    with trio.fail_after(_CONNECT_SECONDS):
        outside = await trio.open_tcp_stream("127.0.0.1", route.port)
    async with outside, trio.open_nursery() as nursery:
        nursery.start_soon(_one_way, inside, outside)
        nursery.start_soon(_one_way, outside, inside)


async def _one_way(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    try:
        while chunk := await source.receive_some(_CHUNK):
            await sink.send_all(chunk)
        await sink.send_eof()
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        # One direction broke: the other must not wait for bytes that nobody will send.
        await trio.aclose_forcefully(source)
        await trio.aclose_forcefully(sink)
