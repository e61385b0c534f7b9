"""An HTTP client for one endpoint that is made once and serves many runs, each through its own guard and onto its own record.

A model is opened before any run and lives longer than each of them, so its client asks which guard is in force when a request is
sent. The rule it keeps: no connection that was allowed on the record of one run carries a request of another. So connections are
pooled for each guard apart, and given up some seconds after they were last needed.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, cast, final

import httpx2
import trio

from affidavit.actors.netguard.guard import Guard
from affidavit.actors.netguard.http import GuardedTransport
from affidavit.actors.netguard.policy import EgressPolicy
from affidavit.actors.netguard.scope import current_guard

KEEP_SECONDS: Final = 30.0


def run_client(host: str, port: int, *, ssl_context: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """Return a client for an endpoint that the operator named, to be used inside of runs; the caller closes it.

    It has no time limits of its own, follows no redirect, and reads nothing from the environment.

    Args:
        host: The endpoint's host, as written: granted to every run that uses the client, beside the run's own policy.
        port: Its port.
        ssl_context: How the server is verified; None takes the machine's own trusted certificates.

    Raises:
        ConfigurationError: That is no host or no port.
    """
    transport = RunTransport(host, port, ssl_context=ssl_context)
    return httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False, follow_redirects=False)


@dataclass(slots=True)
class _Held:
    transport: GuardedTransport
    busy: int = 0
    used: float = 0.0


@final
class RunTransport(httpx2.AsyncBaseTransport):
    """Sends each request through the guard of the run that it is sent for."""

    def __init__(self, host: str, port: int, *, ssl_context: ssl.SSLContext | None = None) -> None:
        """Take an endpoint; see `run_client`."""
        EgressPolicy().granting(host, port)
        self._endpoint = host, port
        self._ssl_context = ssl_context or httpx2.create_ssl_context(trust_env=False)
        self._held: dict[Guard, _Held] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            EgressDenied: It leads elsewhere than to the endpoint, and the run's policy does not allow that.
            RuntimeError: It is sent outside of any run.
            httpx2.TransportError: As any transport raises it.

        Cancellation: the connection is closed at once.
        """
        guard = current_guard()
        await self._give_up_unused(guard)
        held = self._held.get(guard)
        if held is None:
            made = GuardedTransport(guard.granting(*self._endpoint), ssl_context=self._ssl_context)
            held = self._held[guard] = _Held(made)
        held.busy += 1
        try:
            answer = await held.transport.handle_async_request(request)
        except BaseException:
            _release(held)
            raise
        answer.stream = _Counted(cast("httpx2.AsyncByteStream", answer.stream), held)
        return answer

    async def aclose(self) -> None:
        """Close every connection of every run."""
        while self._held:
            _, held = self._held.popitem()
            await held.transport.aclose()

    async def _give_up_unused(self, asking: Guard) -> None:
        old = trio.current_time() - KEEP_SECONDS
        unused = [
            guard
            for guard, held in self._held.items()
            if guard is not asking and not held.busy and held.used < old
        ]
        for held in [self._held.pop(guard) for guard in unused]:
            await held.transport.aclose()


@final
class _Counted(httpx2.AsyncByteStream):
    """A response's body, which tells its run's connections when it is over."""

    def __init__(self, body: httpx2.AsyncByteStream, held: _Held) -> None:
        self._body = body
        self._held: _Held | None = held

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body.__aiter__()

    async def aclose(self) -> None:
        held, self._held = self._held, None
        try:
            await self._body.aclose()
        finally:
            if held is not None:
                _release(held)


def _release(held: _Held) -> None:
    held.busy -= 1
    held.used = trio.current_time()
