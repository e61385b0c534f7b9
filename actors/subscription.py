"""One reader of one stream: the backlog, then the tail, in seq order, each event once, from one advancing cursor.

It is pulled in the caller's own task and holds no task itself. A wake, from the bus or from the poll floor, says only that the
log may have grown; what it grew by is read from the log past the cursor. So a lost, doubled or merged wake changes nothing but
latency, and a slow reader holds back nobody but itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self, final

import trio

from affidavit.actors.buses.port import Bus, events_subject
from affidavit.actors.codec import decode
from affidavit.actors.errors import LogClosed
from affidavit.actors.events import Event
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, LogReader, Row
from affidavit.crypto.failures import VerificationError


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a subscription ended, and where to take it up again.

    Attributes:
        reason: In plain words.
        cursor: The seq of the last event delivered; subscribe with `after_seq=cursor` to go on.
    """

    reason: str
    cursor: int


@final
class Subscription:
    """An async iterator of events, made by `subscribe` (of a session, a stream or `affidavit.actors.watch`)."""

    def __init__(self, log: LogReader, stream: str, after_seq: int, *, has_floor: bool) -> None:
        """Use `subscribe`; this only sets the cursor."""
        self._log = log
        self._stream = stream
        self._cursor = after_seq
        self._buffer: deque[Event] = deque()
        self._read_through = after_seq
        self._wanted = trio.Event()
        self._reading = False
        self._has_floor = has_floor
        self._ending = ""
        self._closed: Closed | None = None

    @property
    def cursor(self) -> int:
        """The seq of the last event delivered, or where the subscription began."""
        return self._cursor

    @property
    def closed(self) -> Closed | None:
        """Reason and cursor once the iteration has ended, else None."""
        return self._closed

    def wake(self) -> None:
        """Look at the log again. Called by the bus and by the floor; merged with earlier wakes."""
        self._wanted.set()

    def bus_ended(self) -> None:
        """The bus is gone. Without a poll floor nothing would ever wake this reader again, so it ends."""
        if not self._has_floor:
            self.end("the bus ended and there is no poll floor")

    def end(self, reason: str) -> None:
        """End the iteration once everything that is on the log by then has been delivered."""
        self._ending = self._ending or reason
        self._wanted.set()

    def close(self, reason: str) -> None:
        """End the iteration at once; what was read and not delivered comes again to whoever goes on at the cursor."""
        self._closed = self._closed or Closed(reason, self._cursor)
        self._buffer.clear()
        self._wanted.set()

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event, waiting for one if need be.

        Raises:
            StopAsyncIteration: The subscription ended; `closed` says why.
            VerificationError: The next stored row is not one canonical event. Those before it were delivered.
            LogError: The log could not be read.
            trio.BusyResourceError: Another task is waiting in this very subscription.

        Cancellation: no event is lost or repeated; the next call goes on at the same cursor.
        """
        if self._reading:
            raise trio.BusyResourceError(
                "another task is reading this subscription; each reader opens its own"
            )
        self._reading = True
        try:
            while not self._buffer:
                await self._fill()
        finally:
            self._reading = False
        event = self._buffer.popleft()
        self._cursor = event.seq
        return event

    async def _fill(self) -> None:
        """Read one batch past the cursor, or wait until there may be one. One checkpoint at least per batch."""
        if self._closed is not None:
            await trio.lowlevel.checkpoint()
            raise StopAsyncIteration
        # The slot is renewed before the read: a wake that arrives while reading is kept for the next round.
        self._wanted = trio.Event()
        ending = self._ending
        try:
            rows = await self._log.read(self._stream, self._read_through, DEFAULT_READ_LIMIT)
        except LogClosed:
            rows, ending = (), ending or "the log was closed"
        if self._closed is not None:
            # The block was left while this task was reading; its cursor is already told.
            raise StopAsyncIteration
        if rows:
            self._take(rows)
        elif ending:
            self._closed = Closed(ending, self._cursor)
            raise StopAsyncIteration
        elif not self._ending:
            await self._wanted.wait()

    def _take(self, rows: tuple[Row, ...]) -> None:
        """Buffer rows as events, up to the first that is none: that one fails the read that begins with it, and no other."""
        for row in rows:
            try:
                event = decode(row.data)
            except VerificationError:
                if self._buffer:
                    return
                raise
            self._buffer.append(event)
            self._read_through = row.seq


@final
class Readers:
    """The open subscriptions of one stream, so that their owner can tick the poll floor and end them."""

    def __init__(self, *, has_floor: bool) -> None:
        """Make an empty set.

        Args:
            has_floor: Whether the owner calls `tick` from time to time.
        """
        self._open: set[Subscription] = set()
        self._has_floor = has_floor
        self._ended = ""

    def __len__(self) -> int:
        """How many subscriptions are open."""
        return len(self._open)

    def tick(self) -> None:
        """Let every reader look at the log, whether the bus woke it or not."""
        for subscription in self._open:
            subscription.wake()

    def end_all(self, reason: str) -> None:
        """End every subscription, present and future, once it has delivered what is on the log."""
        self._ended = reason
        for subscription in self._open:
            subscription.end(reason)

    @asynccontextmanager
    async def subscribe(
        self, log: LogReader, bus: Bus, stream: str, after_seq: int
    ) -> AsyncIterator[Subscription]:
        """Open a subscription for the length of the block.

        Raises:
            ValueError: `after_seq` is negative. One beyond the tip waits for the stream to get there.
        """
        if after_seq < 0:
            raise ValueError(f"after_seq is a seq, so it is not negative: {after_seq}")
        subscription = Subscription(log, stream, after_seq, has_floor=self._has_floor)
        async with bus.subscribe(events_subject(stream), subscription):
            self._open.add(subscription)
            if self._ended:
                subscription.end(self._ended)
            try:
                yield subscription
            finally:
                self._open.discard(subscription)
                subscription.close("its block was left")
