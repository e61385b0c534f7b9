"""Moves bytes between a client and the server it was allowed to reach: a tunnel, or one request and its response.

It gives up at the first doubt and hides no failure: what cannot be handed on whole is broken off, so that neither side takes a
part for the whole. The server's wire checks the policy itself, and may refuse with `EgressDenied` at any byte.
"""

from __future__ import annotations

from typing import Final

import trio

from affidavit.actors.netguard.decision import EgressDenied
from affidavit.actors.netguard.proxy_head import BadHead, RequestHead, ResponseHead, read_response
from affidavit.actors.netguard.proxy_wire import Gone, Send, Wire

_MAX_INTERIM: Final = 10


class BadServer(Exception):
    """The server's response cannot be handed on; the message is fit for the client. Never seen outside the proxy."""


async def relay_tunnel(client: Wire, server: Wire) -> None:
    """Move bytes both ways until both sides have ended, one of them is gone, or the policy no longer allows it."""
    async with trio.open_nursery() as nursery:

        async def one_way(source: Wire, sink: Wire) -> None:
            try:
                await source.copy_all(sink.send)
                await sink.end()
            except (Gone, EgressDenied):
                nursery.cancel_scope.cancel(reason="one side of the tunnel is gone")

        nursery.start_soon(one_way, client, server)
        nursery.start_soon(one_way, server, client)


async def relay_exchange(request: RequestHead, client: Wire, server: Wire) -> None:
    """Hand on one request with its body, and its response.

    Args:
        request: The request.
        client: The client, read up to the body.
        server: The server, on a connection of its own.

    Raises:
        BadHead: The request's body is malformed.
        BadServer: The response is malformed or did not come whole.
        EgressDenied: The policy changed in the middle.
        Gone: The client is gone.
    """
    try:
        await server.send(request.forwarded())
    except Gone as error:
        raise BadServer("the server closed the connection") from error
    failures: list[Exception] = []
    async with trio.open_nursery() as nursery:

        async def upload() -> None:
            try:
                await _body(request, client, server.send)
            except Gone:
                # A server may answer before it has read the whole body, and close: its answer still counts.
                return
            except (BadHead, EgressDenied) as error:
                failures.append(error)
                nursery.cancel_scope.cancel(reason="the request's body cannot be handed on")

        async def download() -> None:
            try:
                await _response(request, client, server)
            except (BadServer, EgressDenied, Gone) as error:
                failures.append(error)
            nursery.cancel_scope.cancel(reason="the response is over")

        nursery.start_soon(upload)
        nursery.start_soon(download)
    if failures:
        raise failures[0]


async def _body(request: RequestHead, client: Wire, send: Send) -> None:
    if request.length is None:
        await client.copy_chunks(send)
    else:
        await client.copy(request.length, send)


async def _response(request: RequestHead, client: Wire, server: Wire) -> None:
    try:
        response = await _final_head(request, client, server)
        if response.length is not None:
            await server.copy(response.length, client.send)
        elif response.chunked:
            await server.copy_chunks(client.send)
        else:
            await server.copy_all(client.send)
    except BadHead as error:
        raise BadServer(f"the server's response is not usable: {error}") from error


async def _final_head(request: RequestHead, client: Wire, server: Wire) -> ResponseHead:
    for _ in range(_MAX_INTERIM):
        head = await server.head()
        if not head:
            raise BadServer("the server closed the connection without a response")
        response = read_response(head, request.method)
        await client.send(response.forwarded())
        if not response.is_interim:
            return response
    raise BadServer("the server sends interim responses without end")
