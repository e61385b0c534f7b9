"""A real HTTP endpoint on loopback that answers with exactly the bytes a test wants, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio
import trio.testing

Piece = bytes | float | None
"""Bytes to send; a number of seconds to be silent on the loop's clock; None waits until the client hangs up."""


@dataclass
class Endpoint:
    """What a running endpoint knows."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    hung_up: trio.Event = field(default_factory=trio.Event)


@asynccontextmanager
async def serve(*replies: Sequence[Piece], keep_alive: bool = False) -> AsyncIterator[Endpoint]:
    """Answer the n-th request with the n-th reply, the last one again and again."""
    endpoint = Endpoint()

    async def handle(stream: trio.SocketStream) -> None:
        endpoint.connections += 1
        while await _request(stream, endpoint):
            pieces = replies[min(len(endpoint.requests), len(replies)) - 1]
            try:
                await _answer(stream, pieces, endpoint)
            except trio.BrokenResourceError:
                endpoint.hung_up.set()
                return
            if not keep_alive:
                return

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, handle, 0)
        port = listeners[0].socket.getsockname()[1]
        endpoint.url = f"http://127.0.0.1:{port}/v1"
        yield endpoint
        nursery.cancel_scope.cancel()


async def _request(stream: trio.SocketStream, endpoint: Endpoint) -> bool:
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.receive_some()
        if not more:
            return False
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
    while len(body) < int(fields.get("content-length", 0)):
        body += await stream.receive_some()
    endpoint.heads.append(head.decode())
    endpoint.bodies.append(body)
    endpoint.requests.append(json.loads(body) if body else {})
    return True


async def _answer(stream: trio.SocketStream, pieces: Sequence[Piece], endpoint: Endpoint) -> None:
    for piece in pieces:
        if piece is None:
            if not await stream.receive_some():
                endpoint.hung_up.set()
        elif isinstance(piece, float):
            await trio.sleep(piece)
        else:
            await stream.send_all(piece)
            # Lets the client see this piece by itself.
            await trio.testing.wait_all_tasks_blocked(0.0005)


def head(status: str = "200 OK", kind: str = "text/event-stream", length: int | None = None) -> bytes:
    """The head of a response; without a length its body ends with the connection."""
    ending = "Connection: close" if length is None else f"Content-Length: {length}"
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{ending}\r\n\r\n".encode()


def plain(status: str, body: bytes = b"", kind: str = "application/json", headers: str = "") -> list[Piece]:
    """A whole response that is no stream; further headers end with a line break each."""
    start, _, rest = head(status, kind, len(body)).partition(b"\r\n")
    return [start + b"\r\n" + headers.encode() + rest + body]


def sse(*chunks: Any) -> bytes:
    """Chunks as server-sent events; a string stands as it is."""
    lines = (chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk of a streamed completion."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def chunked(*parts: bytes) -> list[Piece]:
    """A streamed response in HTTP's own chunks, which leaves its connection open."""
    frames = [f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts]
    start = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [start, *frames, b"0\r\n\r\n"]
