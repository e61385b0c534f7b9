"""Real listeners that remember who came, a recorder that remembers what was decided, and the ways by which a run reaches out."""

from __future__ import annotations

import base64
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httpx2
import pytest
import trio

from affidavit.actors.netguard.decision import Decision, EgressDenied
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.netguard.http import guarded_client
from affidavit.actors.netguard.policy import EgressPolicy
from affidavit.actors.netguard.proxy import Proxy, open_proxy
from affidavit.actors.nurseries import open_owned_nursery

REACHED: Final = "reached"
REFUSED: Final = "refused"
UNASKED: Final = "unasked"
FAILED: Final = "failed"

Place = tuple[str, int]


def _has_six() -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
        return True


HAS_SIX: Final = socket.has_ipv6 and _has_six()
needs_six: Final = pytest.mark.skipif(not HAS_SIX, reason="this machine has no IPv6 loopback address")


@dataclass
class Book:
    """What was decided and who was accepted, in the order in which it happened. It is a `Recorder`."""

    decisions: list[Decision] = field(default_factory=list)
    accepted: list[Place] = field(default_factory=list)
    before: Callable[[Decision], Any] = lambda decision: None
    _allowed: list[Place] = field(default_factory=list)
    unexplained: list[Place] = field(default_factory=list)

    async def record(self, decision: Decision) -> None:
        """Take time to become durable, as a log does, so that a guard that does not wait is seen."""
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        self.before(decision)
        self.decisions.append(decision)
        if decision.allowed:
            self._allowed.append((decision.host, decision.port))

    def note(self, place: Place) -> None:
        """Note a connection that a listener accepted, and whether an allow of its own stands before it."""
        self.accepted.append(place)
        if place in self._allowed:
            self._allowed.remove(place)
        else:
            self.unexplained.append(place)

    @property
    def allowed(self) -> list[Decision]:
        """The allows."""
        return [decision for decision in self.decisions if decision.allowed]

    @property
    def refused(self) -> list[Decision]:
        """The refusals."""
        return [decision for decision in self.decisions if not decision.allowed]

    def guard(self, *allow: str, endpoints: tuple[str, ...] = ()) -> Guard:
        """A guard that records here."""
        return Guard(EgressPolicy(allow=allow, endpoints=endpoints), self, goal="the-goal")


Reply = Callable[[str], bytes]


def hello(head: str) -> bytes:
    """The answer to every request unless a test wants another one."""
    return response(b"reached")


def response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole response that leaves its connection open."""
    lines = "".join(f"{line}\r\n" for line in headers)
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


@dataclass
class Site:
    """A port on every address of this machine that answers HTTP and notes each connection."""

    book: Book
    port: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    reply: Reply = hello

    async def handle(self, stream: trio.SocketStream) -> None:
        """Answer requests until the client ends."""
        self.book.note((str(stream.socket.getsockname()[0]).removeprefix("::ffff:"), self.port))
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    more = await stream.receive_some()
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                self.heads.append(head.decode("latin-1"))
                data = await self._body(head, data, stream)
                await stream.send_all(self.reply(self.heads[-1]))
        except trio.BrokenResourceError:
            return

    async def _body(self, head: bytes, data: bytes, stream: trio.SocketStream) -> bytes:
        fields = dict(line.lower().split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
        if fields.get("transfer-encoding") == "chunked":
            while b"0\r\n\r\n" not in data:
                data += await stream.receive_some()
            body, _, data = data.partition(b"0\r\n\r\n")
            self.bodies.append(body)
            return data
        length = int(fields.get("content-length", 0))
        while len(data) < length:
            data += await stream.receive_some()
        if length:
            self.bodies.append(data[:length])
        return data[length:]


@asynccontextmanager
async def open_site(book: Book, reply: Reply = hello) -> AsyncIterator[Site]:
    """Listen on one port of every address that this machine has, IPv4 and IPv6 alike."""
    site = Site(book, reply=reply)
    async with open_owned_nursery() as nursery:
        listeners = await _listeners()
        site.port = listeners[0].socket.getsockname()[1]
        await nursery.start(trio.serve_listeners, site.handle, listeners)
        yield site


async def _listeners() -> list[trio.SocketListener]:
    while True:
        four = (await trio.open_tcp_listeners(0, host="0.0.0.0"))[0]
        port = four.socket.getsockname()[1]
        if not HAS_SIX:
            return [four]
        try:
            return [four, *await trio.open_tcp_listeners(port, host="::")]
        except OSError as error:
            if error.errno != 98:  # EADDRINUSE: another process has this port on the other family
                return [four]
            await four.aclose()


@dataclass
class Names(trio.abc.HostnameResolver):
    """A resolver that knows what a test tells it; the n-th look-up of a name gets its n-th answer, the last again and again."""

    answers: dict[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def getaddrinfo(self, host: Any, port: Any, family: Any = 0, *more: Any, **named: Any) -> Any:
        name = host.decode("ascii") if isinstance(host, bytes) else str(host)
        await trio.lowlevel.checkpoint()
        known = self.answers.get(name)
        self.asked.append(name)
        if known is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = known[min(self.asked.count(name), len(known)) - 1]
        return [_entry(address, port) for address in addresses]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


def _entry(address: str, port: Any) -> Any:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    place = (address, int(port), 0, 0) if ":" in address else (address, int(port))
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)


@contextmanager
def names(**answers: Sequence[str]) -> Iterator[Names]:
    """Resolve these names only, `_` in them standing for a dot; every look-up of a name gets the same answer."""
    with resolver({name.replace("_", "."): [answer] for name, answer in answers.items()}) as known:
        yield known


@contextmanager
def resolver(answers: dict[str, Sequence[Sequence[str]]]) -> Iterator[Names]:
    """Resolve by a table for as long as the block lasts."""
    known = Names(answers)
    before = trio.socket.set_custom_hostname_resolver(known)
    try:
        yield known
    finally:
        trio.socket.set_custom_hostname_resolver(before)


class Way(Protocol):
    """One way by which a run reaches out; returns what came of it."""

    async def __call__(self, guard: Guard, host: str, port: int) -> str: ...


def in_url(host: str) -> str:
    """The host as it stands in an address."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


async def by_dial(guard: Guard, host: str, port: int) -> str:
    """A raw connection of trio's."""
    try:
        stream = await guard.dial(host, port)
    except EgressDenied:
        return REFUSED
    except OSError:
        return FAILED
    async with stream:
        await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
        return REACHED if b"reached" in await stream.receive_some() else FAILED


async def by_client(guard: Guard, host: str, port: int) -> str:
    """The httpx2 client."""
    try:
        async with guarded_client(guard) as client:
            answer = await client.get(f"http://{in_url(host)}:{port}/")
    except EgressDenied:
        return REFUSED
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        return UNASKED
    except httpx2.HTTPError:
        return FAILED
    return REACHED if answer.text == "reached" else FAILED


async def by_tunnel(guard: Guard, host: str, port: int) -> str:
    """A child of ours that asks the proxy for a tunnel."""
    place = f"{in_url(host)}:{port}"
    async with open_proxy(guard) as proxy, await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
        line = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{authorization(proxy.url)}\r\n"
        await stream.send_all(line.encode())
        status = _status(await stream.receive_some())
        if status != 200:
            return _OUTCOMES.get(status, FAILED)
        await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
        return REACHED if b"reached" in await stream.receive_some() else FAILED


async def by_forward(guard: Guard, host: str, port: int) -> str:
    """A child of ours that hands a whole request to the proxy."""
    place = f"{in_url(host)}:{port}"
    async with open_proxy(guard) as proxy:
        answer = await exchange(
            proxy.port, f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{authorization(proxy.url)}\r\n"
        )
    status = _status(answer)
    if status != 200:
        return _OUTCOMES.get(status, FAILED)
    return REACHED if answer.endswith(b"reached") else FAILED


WAYS: Final = (by_dial, by_client, by_tunnel, by_forward)
_OUTCOMES: Final = {400: UNASKED, 403: REFUSED, 502: FAILED, 504: FAILED}


def authorization(url: str) -> str:
    """The header by which a client proves that it is the proxy's own."""
    parts = urlsplit(url)
    credential = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode("ascii")
    return f"Proxy-Authorization: Basic {credential}\r\n"


def forward(
    proxy: Proxy, place: str, *lines: str, method: str = "GET", path: str = "/", body: str = ""
) -> str:
    """A request in absolute form."""
    head = [f"{method} http://{place}{path} HTTP/1.1", f"Host: {place}", *lines]
    return "\r\n".join(head) + "\r\n" + authorization(proxy.url) + "\r\n" + body


async def exchange(port: int, request: str | bytes) -> bytes:
    """Send bytes to a port on loopback and return all that comes back until the other side ends."""
    answer = b""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(request.encode() if isinstance(request, str) else request)
        try:
            while more := await stream.receive_some():
                answer += more
        except trio.BrokenResourceError:
            return answer
    return answer


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
