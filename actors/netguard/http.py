"""HTTP for a run: an httpx2 transport whose every connection comes from the guard, and is checked again before each use.

TLS verifies the name that was asked for while the literal address is dialed. A connection that was kept open is judged by the
policy in force each time that bytes go over it, so it cannot outlive the policy that allowed it. Nothing is read from the
environment: no proxy, no certificate setting.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast, final

import httpcore2
import httpx2
import trio

from affidavit.actors.netguard.guard import DIAL_SECONDS, Guard, Target

MAX_REDIRECTS: Final = 5
SILENCE_SECONDS: Final = 60.0
_MAX_CONNECTIONS: Final = 20
_KEEP_SECONDS: Final = 5.0
# httpcore2 takes `ws` and `wss` for them, which nobody here speaks.
_SCHEMES: Final = ("http", "https")


def guarded_client(
    guard: Guard,
    *,
    ssl_context: ssl.SSLContext | None = None,
    timeout: httpx2.Timeout | None = None,
    follow_redirects: bool = False,
) -> httpx2.AsyncClient:
    """Return a client that connects through the guard alone; the caller closes it.

    Args:
        guard: Decides and records.
        ssl_context: How servers are verified; None takes the machine's own trusted certificates.
        timeout: The client's time limits; None allows `DIAL_SECONDS` to connect and `SILENCE_SECONDS` between bytes.
        follow_redirects: Whether to follow up to `MAX_REDIRECTS`. Each is a request like any other, so it is decided on anew.
    """
    return httpx2.AsyncClient(
        transport=GuardedTransport(guard, ssl_context=ssl_context),
        timeout=timeout or httpx2.Timeout(SILENCE_SECONDS, connect=DIAL_SECONDS),
        trust_env=False,
        follow_redirects=follow_redirects,
        max_redirects=MAX_REDIRECTS,
    )


@final
class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that the guard made. A refusal is raised as `EgressDenied`, not as an httpx2 error."""

    def __init__(self, guard: Guard, *, ssl_context: ssl.SSLContext | None = None) -> None:
        """Make a pool of connections, empty at first.

        Args:
            guard: Decides and records.
            ssl_context: How servers are verified; None takes the machine's own trusted certificates.
        """
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context or httpx2.create_ssl_context(trust_env=False),
            max_connections=_MAX_CONNECTIONS,
            max_keepalive_connections=_MAX_CONNECTIONS,
            keepalive_expiry=_KEEP_SECONDS,
            network_backend=GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            EgressDenied: The policy refuses the destination, or no longer allows the connection that was kept open to it.
            httpx2.TransportError: As any transport raises it; for a scheme other than http and https too.

        Cancellation: the connection is closed at once.
        """
        url = request.url
        if url.scheme not in _SCHEMES:
            raise httpx2.UnsupportedProtocol(f"only {' and '.join(_SCHEMES)} are spoken", request=request)
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=cast("AsyncIterable[bytes]", request.stream),
            extensions=request.extensions,
        )
        with _as_httpx2():
            answer = await self._pool.handle_async_request(asked)
        body = _Body(cast("AsyncIterable[bytes]", answer.stream))
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=body, extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


@final
class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Makes connections for httpcore2, through the guard and in no other way."""

    def __init__(self, guard: Guard) -> None:
        """Take the guard, which decides and records."""
        self._guard = guard

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the port's own parameter
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect, if the policy allows it.

        Raises:
            EgressDenied: It does not; that is on the record.
            httpcore2.ConnectError: Or ConnectTimeout: it does, but there was no connection.
        """
        try:
            dialed = await self._guard.reach(host, port, seconds=min(DIAL_SECONDS, timeout or DIAL_SECONDS))
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        return _GuardedStream(dialed.stream, self._guard, dialed.target)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  # the port's own parameter
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no policy names a unix socket.

        Raises:
            EgressDenied: Always; it is on the record.
        """
        await self._guard.refuse(f"unix:{path}", 0, "a unix socket is never dialed")

    async def sleep(self, seconds: float) -> None:
        """Wait on trio's clock."""
        await trio.sleep(seconds)


@final
class _GuardedStream(httpcore2.AsyncNetworkStream):
    """A connection, with or without TLS, whose destination is checked whenever bytes go over it."""

    def __init__(self, stream: trio.abc.Stream, guard: Guard, target: Target) -> None:
        self._stream = stream
        self._guard = guard
        self._target = target

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # the port's own
        await self._check()
        with _as_httpcore2(httpcore2.ReadTimeout, httpcore2.ReadError), trio.fail_after(_seconds(timeout)):
            data = bytes(await self._stream.receive_some(max_bytes))
        # It may have come long after the check: what came under another policy is not handed on.
        await self._check()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # the port's own
        await self._check()
        with _as_httpcore2(httpcore2.WriteTimeout, httpcore2.WriteError), trio.fail_after(_seconds(timeout)):
            await self._stream.send_all(buffer)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # the port's own parameter
    ) -> httpcore2.AsyncNetworkStream:
        secured = trio.SSLStream(
            self._stream, ssl_context, server_hostname=server_hostname, https_compatible=True
        )
        try:
            with _as_httpcore2(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                with trio.fail_after(_seconds(timeout)):
                    await secured.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(secured)  # noqa: ASYNC102, ASYNC120  # never blocks: it is cancelled from the start
            raise
        return _GuardedStream(secured, self._guard, self._target)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # the port's own type
        raw = self._stream
        while isinstance(raw, trio.SSLStream):
            raw = raw.transport_stream
        made = cast("trio.SocketStream", raw).socket
        match info:
            case "server_addr":
                return made.getpeername()
            case "client_addr":
                return made.getsockname()
            case "is_readable":
                return made.is_readable()
            case "socket":
                return made
        return None

    async def _check(self) -> None:
        if self._guard.check(self._target).allowed:
            return
        try:
            await self._guard.recheck(self._target)
        finally:
            # Whether or not the refusal could be recorded, nothing more goes over this connection.
            await trio.aclose_forcefully(self._stream)  # noqa: ASYNC102  # never blocks: it is cancelled from the start


@final
class _Body(httpx2.AsyncByteStream):
    """A response's body, with httpcore2's errors as httpx2's."""

    def __init__(self, parts: AsyncIterable[bytes]) -> None:
        self._parts = parts

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Parts(self._parts.__aiter__())

    async def aclose(self) -> None:
        close = getattr(self._parts, "aclose", None)
        if close is not None:
            await close()


@final
class _Parts(AsyncIterator[bytes]):
    """The parts of a body, in order; no generator, so that nothing is left to finish when a reader stops early."""

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts

    async def __anext__(self) -> bytes:
        with _as_httpx2():
            return await anext(self._parts)


@contextmanager
def _as_httpx2() -> Iterator[None]:
    """Raise httpcore2's errors as httpx2's, which have the same names; the rest, a refusal above all, stays itself."""
    try:
        yield
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        httpcore2.TimeoutException,
        httpcore2.UnsupportedProtocol,
    ) as error:
        named = getattr(httpx2, type(error).__name__, httpx2.TransportError)
        raise named(str(error)) from error


@contextmanager
def _as_httpcore2(slow: type[Exception], broken: type[Exception]) -> Iterator[None]:
    """Raise trio's errors as the given ones of httpcore2."""
    try:
        yield
    except trio.TooSlowError as error:
        raise slow("no answer within the time") from error
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise broken(str(error.__cause__ or error)) from error


def _seconds(timeout: float | None) -> float:
    return math.inf if timeout is None else timeout
