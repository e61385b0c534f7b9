"""One call: sends one request and reads its streamed answer within the limits. The same for every wire format.

One call is one attempt: retrying is its caller's affair. Whatever goes wrong comes out as a `ModelError` with a fault class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

import httpx2
import trio

from affidavit.actors.errors import ModelError
from affidavit.actors.models.call_errors import ended_early, refused, reported, timed_out, unreachable
from affidavit.actors.models.endpoint import Endpoint
from affidavit.actors.models.limits import CallLimits
from affidavit.actors.models.port import ModelReply
from affidavit.actors.models.sse import EventReader, EventTooLarge
from affidavit.actors.models.wire import Assembly, BadChunk, Spliced, StreamedFailure
from affidavit.actors.netguard.decision import EgressDenied

# After the end was said: the body's own end comes at once from most servers and leaves the connection fit for the next turn.
END_SECONDS = 2.0
# No compression, so that what is read is bounded as it arrives.
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        endpoint: Whom to ask.
        model: The model's name there.
        path: The path below the endpoint's address.
        headers: What the wire format wants beside the common headers; the key among them.
        body: The JSON text.
        scrub: Takes secrets out of what the endpoint said, before it is shortened.
    """

    endpoint: Endpoint
    model: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    scrub: Callable[[str], str] = field(default=str, repr=False)


class Carrier(Protocol):
    """What sends a request and lends its answer: an HTTP client, or what stands before one."""

    def stream(
        self, method: str, url: str, *, content: bytes, headers: Mapping[str, str], timeout: httpx2.Timeout
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        """Lend the answer to a request for as long as the block lasts, its body unread.

        Raises:
            httpx2.RequestError: There is no answer.
        """
        ...


async def exchange(client: Carrier, call: Call, assembly: Assembly, limits: CallLimits) -> ModelReply:
    """Ask, and put the answer together.

    Raises:
        ModelError: Transient for an endpoint that is busy, silent, out of reach or breaks off; terminal for a refused key, an
            unknown model, a refused request, or a reply that is not of this protocol; forbidden where no connection is allowed.

    Cancellation: the connection is closed at once.
    """
    where = call.endpoint.where
    try:
        return await _Exchange(client, call, assembly, limits).run()
    except httpx2.RequestError as error:
        raise unreachable(call.endpoint, error) from error
    except EgressDenied as error:
        raise ModelError(str(error), fault=error.fault, code=error.code) from error
    except Spliced as error:
        raise ModelError(f"{where} sent {error}", fault="transient", code="spliced") from error
    except EventTooLarge as error:
        raise ModelError(f"{where} sent {error}", code="reply_too_large") from error
    except BadChunk as error:
        raise ModelError(f"{where} sent {error}", code="bad_reply") from error
    except StreamedFailure as error:
        raise reported(call.endpoint, call.model, error.error, call.scrub) from error


class _Exchange:
    """The one call while it lasts, and its clocks."""

    def __init__(self, client: Carrier, call: Call, assembly: Assembly, limits: CallLimits) -> None:
        self._client = client
        self._call = call
        self._assembly = assembly
        self._limits = limits
        self._first = trio.CancelScope()
        self._failure: Exception | None = None
        self._read = 0

    async def run(self) -> ModelReply:
        endpoint, limits = self._call.endpoint, self._limits
        with trio.move_on_after(limits.whole_seconds) as whole, self._first:
            self._first.deadline = trio.current_time() + limits.first_seconds
            return await self._ask()
        if whole.cancelled_caught:
            raise timed_out(endpoint, f"did not end its answer within {limits.whole_seconds:g} seconds")
        raise timed_out(endpoint, f"did not begin to answer within {limits.first_seconds:g} seconds")

    async def _ask(self) -> ModelReply:
        call = self._call
        url = f"{call.endpoint.base_url}{call.path}"
        # Reading has no limit of the client's: a drip of bytes would renew it for ever.
        timeout = httpx2.Timeout(None, connect=self._limits.connect_seconds, write=self._limits.gap_seconds)
        headers = {**_HEADERS, **call.headers}
        async with self._client.stream(
            "POST", url, content=call.body, headers=headers, timeout=timeout
        ) as response:
            if response.status_code != httpx2.codes.OK:
                start = await beginning(response, self._limits.error_bytes)
                raise refused(
                    call.endpoint, call.model, response.status_code, start, response.headers, call.scrub
                )
            kind = response.headers.get("content-type", "").partition(";")[0].strip()
            if kind.lower() != "text/event-stream":
                shown = call.scrub(kind)[:60] or "no type"
                raise BadChunk(f"{shown!r} and not a stream: is {call.endpoint.vendor.url_variable} right?")
            await self._take_in(response)
        if not self._assembly.finished:
            raise ended_early(call.endpoint)
        return self._assembly.reply()

    # The client's stream is a chain of generators that only an end or an exception from within finishes. So neither loop below
    # is ever broken out of: they cancel the next read, which comes up through the whole chain.

    async def _take_in(self, response: httpx2.Response) -> None:
        reader = EventReader(self._limits.event_bytes)
        with trio.CancelScope() as scope:
            async for chunk in response.aiter_raw():
                if self._failure is None and not self._assembly.ended:
                    try:
                        self._feed(reader, chunk, scope)
                    except (BadChunk, StreamedFailure, EventTooLarge) as error:
                        self._failure = error
                        scope.cancel(reason="the stream is of no more use")
        if self._failure is not None:
            raise self._failure
        if scope.cancelled_caught and not self._assembly.ended:
            raise timed_out(
                self._call.endpoint, f"fell silent for {self._limits.gap_seconds:g} seconds in its answer"
            )

    def _feed(self, reader: EventReader, chunk: bytes, scope: trio.CancelScope) -> None:
        self._read += len(chunk)
        if self._read > self._limits.stream_bytes:
            raise EventTooLarge(f"a stream of more than {self._limits.stream_bytes} bytes")
        events = reader.feed(chunk)
        for event in events:
            self._assembly.add(event)
            if self._assembly.ended:
                scope.deadline = trio.current_time() + END_SECONDS
                self._first.deadline = math.inf
                return
        if events and self._assembly.begun:
            self._first.deadline = math.inf
            scope.deadline = trio.current_time() + self._limits.gap_seconds


async def beginning(response: httpx2.Response, most: int) -> bytes:
    """Return the first bytes of an answer's body, however long it is; the answer is then to be closed.

    Raises:
        httpx2.RequestError: The connection broke.

    Cancellation: at any point; the answer is still its caller's to close.
    """
    body = b""
    with trio.CancelScope() as scope:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > most:
                scope.cancel(reason="enough of the error was read")
    return body[:most]
