"""A forward proxy for the child processes of one call: the same guard, the same record, for programs that are not ours.

It listens on loopback, or on a unix socket that a sandbox can be handed, and serves whoever knows the credential that was drawn
for this one call; other programs on the machine do not. `CONNECT` and absolute-form HTTP/1.1 are all it speaks, one request on
each connection. It never reads what goes through a tunnel, and sends nothing to a place that is not on the record as allowed.
"""

from __future__ import annotations

import base64
import errno
import hmac
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import trio

from affidavit.actors.netguard.decision import EgressDenied
from affidavit.actors.netguard.guard import Guard, Target
from affidavit.actors.netguard.proxy_head import BadHead, RequestHead, read_request
from affidavit.actors.netguard.proxy_relay import BadServer, relay_exchange, relay_tunnel
from affidavit.actors.netguard.proxy_wire import Check, Gone, Patience, Wire
from affidavit.actors.nurseries import TasksFailed, open_owned_nursery

_USER: Final = "affidavit"
_BACKLOG: Final = 32
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_REASONS: Final = {
    400: "Bad Request",
    403: "Forbidden",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    429: "Too Many Requests",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_ROOM_PAUSE: Final = 0.1
_LINGER_SECONDS: Final = 1.0
_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NO_EXCEPTIONS: Final = "NO_PROXY"


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """What one proxy puts up with.

    Attributes:
        connections: Clients at the same time; the next ones wait to be accepted.
        requests: Requests in all; later ones are refused, the first of them on the record.
        head_seconds: For a client to send its request's head.
        idle_seconds: The longest silence on a connection, both sides taken together.
        whole_seconds: For one connection in all.
    """

    connections: int = 32
    requests: int = 1000
    head_seconds: float = 10.0
    idle_seconds: float = 60.0
    whole_seconds: float = 900.0


_DEFAULT_LIMITS: Final = ProxyLimits()


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy.

    Attributes:
        host: Where it listens: a loopback address, empty where it listens on a unix socket.
        port: Its port; 0 where it listens on a unix socket.
        token: The secret part of its credential.
    """

    host: str
    port: int
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        """Its address with the credential."""
        return self.url_at(self.host, self.port)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a child finds it."""
        return self.environment_at(self.host, self.port)

    def url_at(self, host: str, port: int) -> str:
        """Return the address with the credential for a child that reaches the proxy in another place, such as a sandbox's own."""
        return f"http://{_USER}:{self.token}@{host}:{port}"

    def environment_at(self, host: str, port: int) -> dict[str, str]:
        """Return the variables for a child that reaches the proxy in another place; both spellings, and no exception to it."""
        url = self.url_at(host, port)
        pairs = dict.fromkeys(_VARIABLES, url) | {_NO_EXCEPTIONS: ""}
        return pairs | {name.lower(): value for name, value in pairs.items()}


@asynccontextmanager
async def open_proxy(
    guard: Guard, *, unix_path: str | Path | None = None, limits: ProxyLimits = _DEFAULT_LIMITS
) -> AsyncIterator[Proxy]:
    """Open a proxy for one call; it serves from now until the block is left.

    Args:
        guard: Decides and records, for the goal that the call belongs to.
        unix_path: Where to make a unix socket to listen on, in a directory of the caller's own; None listens on loopback.
        limits: What it puts up with.

    Raises:
        OSError: It cannot listen.
        LogError: A decision could not be recorded, which ends the block.

    Closes: every connection through it, when the block is left.
    """
    listener, path = await _listen(unix_path)
    server = _Server(guard, limits)
    where = ("", 0) if path else listener.socket.getsockname()
    try:
        async with listener, open_owned_nursery() as nursery:
            nursery.start_soon(server.accept, listener, nursery)
            yield Proxy(where[0], where[1], server.token)
    except TasksFailed as failed:
        # The recorder's own error, so that the caller need not look into a group for it.
        raise failed.exceptions[0] from failed
    finally:
        if path:
            path.unlink(missing_ok=True)


@final
class _Server:
    def __init__(self, guard: Guard, limits: ProxyLimits) -> None:
        self._guard = guard
        self._limits = limits
        self._served = 0
        self._slots = trio.Semaphore(limits.connections)
        self.token = secrets.token_urlsafe(24)
        self._credential = b"basic " + base64.b64encode(f"{_USER}:{self.token}".encode())

    async def accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        """Accept clients, never more at once than there are slots: their descriptors are the host's too."""
        while True:
            await self._slots.acquire()
            try:
                stream = await listener.accept()
            except OSError as error:
                self._slots.release()
                if error.errno not in _NO_ROOM:
                    raise
                await trio.sleep(_NO_ROOM_PAUSE)  # noqa: ASYNC120  # the error is dealt with: there is room again later
            else:
                nursery.start_soon(self._client, stream)

    async def _client(self, stream: trio.SocketStream) -> None:
        try:
            patience = Patience(self._limits.idle_seconds)
            client = Wire(stream, patience)
            async with stream:
                with trio.move_on_after(self._limits.whole_seconds), patience.scope:
                    await self._answer(client, patience)
                    return
                await _reply(client, 504, "nothing came for too long")
        finally:
            self._slots.release()

    async def _answer(self, client: Wire, patience: Patience) -> None:
        try:
            await self._serve(client, patience)
        except Gone:
            return
        except BadHead as error:
            refusal = 400, str(error)
        except EgressDenied as error:
            refusal = 403, str(error)
        except BadServer as error:
            refusal = 502, str(error)
        except TimeoutError as error:
            refusal = 504, str(error)
        except OSError as error:
            refusal = 502, str(error)
        else:
            return
        await _reply(client, *refusal)

    async def _serve(self, client: Wire, patience: Patience) -> None:
        head: bytes | None = None
        with trio.move_on_after(self._limits.head_seconds):
            head = await client.head()
        if head is None:
            await _reply(client, 408, "the request did not come in time")
            return
        if not head:
            return
        request = read_request(head)
        scheme, _, rest = request.credential().partition(b" ")
        if not hmac.compare_digest(scheme.lower() + b" " + rest, self._credential):
            await _reply(client, 407, "this proxy serves one call only")
            return
        self._served += 1
        if self._served > self._limits.requests:
            await self._exhausted(client, request)
            return
        await self._pass(request, client, patience)

    async def _exhausted(self, client: Wire, request: RequestHead) -> None:
        most = self._limits.requests
        if self._served == most + 1:
            await self._guard.refuse(request.host, request.port, f"the call has made its {most} requests")
        await _reply(client, 429, f"the call has made its {most} requests")

    async def _pass(self, request: RequestHead, client: Wire, patience: Patience) -> None:
        dialed = await self._guard.reach(request.host, request.port)
        async with dialed.stream:
            server = Wire(dialed.stream, patience, _checker(self._guard, dialed.target))
            if request.is_tunnel:
                await client.send(_ESTABLISHED)
                await relay_tunnel(client, server)
            else:
                await relay_exchange(request, client, server)


def _checker(guard: Guard, target: Target) -> Check:
    """Return a check of one connection that records one refusal, though both directions may meet it."""
    ended = False

    async def check() -> None:
        nonlocal ended
        if ended:
            raise Gone
        if not guard.check(target).allowed:
            ended = True
            await guard.recheck(target)

    return check


async def _reply(client: Wire, status: int, text: str) -> None:
    """Answer in the proxy's own name, if nothing has been sent yet, and let the client read it before the connection goes."""
    if client.has_sent:
        return
    body = f"{text}\n".encode()
    challenge = 'Proxy-Authenticate: Basic realm="affidavit"\r\n' if status == 407 else ""  # noqa: PLR2004
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n{challenge}Connection: close\r\n\r\n"
    )
    with trio.move_on_after(_LINGER_SECONDS), suppress(Gone):
        await client.send(head.encode("ascii") + body)
        await client.end()
        # Closed with something unread, the connection would be reset, and the answer lost with it.
        await client.copy_all(_discard)


async def _discard(data: bytes) -> None:
    """Take bytes and drop them."""


async def _listen(unix_path: str | Path | None) -> tuple[trio.SocketListener, Path | None]:
    if unix_path is None:
        return (await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=_BACKLOG))[0], None
    path = Path(unix_path)
    return trio.SocketListener(trio.socket.from_stdlib_socket(_bound(path))), path


def _bound(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
        # Nobody can connect before it listens, so nobody can be faster than this.
        path.chmod(0o600)
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made
