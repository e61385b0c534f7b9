"""One reader of one stream: the backlog, then the tail, in seq order, each event once, from one advancing cursor.

It is pulled in the caller's own task and holds no task itself. In the owner's process a reader that keeps up is served from
the stream's `Tail`, which the one writer fills; one that has fallen out of its window, and every reader in another process,
reads the log past its cursor. A wake, from the bus or from the poll floor, says only that the log may have grown. So a lost,
doubled or merged wake changes nothing but latency, and a slow reader is slowed, holds back nobody but itself, and loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import trio

from affidavit.actors.codec import decode
from affidavit.actors.errors import LogClosed
from affidavit.actors.events import Event
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, LogReader, Row
from affidavit.actors.tail import Tail
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
class Batches:
    """The same subscription as an async iterator of batches; made by `Subscription.batches`."""

    def __init__(self, subscription: Subscription) -> None:
        """Use `Subscription.batches`."""
        self._subscription = subscription

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> tuple[Event, ...]:
        """Return the next batch, which is never empty; see `Subscription.next_batch`."""
        batch = await self._subscription.next_batch()
        if not batch:
            raise StopAsyncIteration
        return batch


@final
class Subscription:
    """An async iterator of events, made by `subscribe` (of a session, a stream or `affidavit.actors.watch`)."""

    __slots__ = (
        "_at",
        "_batch",
        "_closed",
        "_cursor",
        "_ending",
        "_has_floor",
        "_log",
        "_look",
        "_reading",
        "_stream",
        "_tail",
        "_wanted",
    )

    def __init__(
        self, log: LogReader, stream: str, after_seq: int, *, has_floor: bool, tail: Tail | None = None
    ) -> None:
        """Use `subscribe`; this only sets the cursor."""
        self._log = log
        self._stream = stream
        self._cursor = after_seq
        # What was taken and not delivered yet: from `_at` on, the events of `_batch`.
        self._batch: tuple[Event, ...] = ()
        self._at = 0
        self._tail = tail
        # Where this reader waits while it has no tail, or must be reached alone.
        self._wanted = trio.Event()
        # Whether the log may hold more than the tail says.
        self._look = tail is None
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
        """Look at the log again, if it may hold what this reader was not told of. Called by the bus; merged with earlier wakes.

        A stream with a tail has told its readers of each append before the bus could, so there it does nothing.
        """
        if self._tail is None:
            self._look = True
            self._wanted.set()

    def look(self) -> None:
        """Look at the log at the next chance, whatever the tail says. Called by `Readers`, which then wakes the tail."""
        self._look = True
        self._wanted.set()

    def bus_ended(self) -> None:
        """The bus is gone. Without a poll floor nothing is sure to wake this reader again, so it ends."""
        if not self._has_floor:
            self.end("the bus ended and there is no poll floor")
            self._stir()

    def end(self, reason: str) -> None:
        """End the iteration once everything that is on the log by then has been delivered."""
        self._ending = self._ending or reason
        self.look()

    def close(self, reason: str) -> None:
        """End the iteration at once; what was read and not delivered comes again to whoever goes on at the cursor."""
        self._closed = self._closed or Closed(reason, self._cursor)
        self._batch, self._at = (), 0
        self._wanted.set()
        self._stir()

    def _stir(self) -> None:
        # Whoever leaves its own block waits for nothing, so a thousand that leave do not wake each other.
        if self._reading and self._tail is not None:
            self._tail.wake()

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event, waiting for one if need be. A checkpoint once per batch, and not once per event.

        Raises:
            StopAsyncIteration: The subscription ended; `closed` says why.
            VerificationError: The next stored row is not one canonical event. Those before it were delivered.
            LogError: The log could not be read.
            trio.BusyResourceError: Another task is waiting in this very subscription.

        Cancellation: no event is lost or repeated; the next call goes on at the same cursor.
        """
        if self._at >= len(self._batch) and not await self._fill():
            raise StopAsyncIteration
        event = self._batch[self._at]
        self._at += 1
        self._cursor = event.seq
        return event

    async def next_batch(self) -> tuple[Event, ...]:
        """Return all events that are at hand, waiting until there is one: the cheap way to follow many events.

        Returns:
            The events, in order; none once the subscription has ended, and `closed` says why.

        Raises:
            VerificationError: As for a single event; likewise the other errors.

        Cancellation: as for a single event.
        """
        if self._at >= len(self._batch) and not await self._fill():
            return ()
        batch = self._batch[self._at :] if self._at else self._batch
        self._batch, self._at = (), 0
        self._cursor = batch[-1].seq
        return batch

    def batches(self) -> Batches:
        """Iterate over the same events in batches, each with all that was at hand. It shares this subscription's cursor."""
        return Batches(self)

    async def _fill(self) -> bool:
        """Get the next batch; False if there will be none. At least one checkpoint."""
        if self._reading:
            raise trio.BusyResourceError(
                "another task is reading this subscription; each reader opens its own"
            )
        self._reading = True
        try:
            return await self._next()
        finally:
            self._reading = False

    async def _next(self) -> bool:
        # Whether this task has let others run since it was called.
        rested = False
        while self._closed is None:
            tail = self._tail
            at_hand = None if tail is None or self._look or self._ending else tail.after(self._cursor)
            if at_hand and rested:
                self._batch, self._at = at_hand, 0
                return True
            if at_hand:
                await trio.lowlevel.checkpoint()
            elif tail is not None and at_hand is not None:
                await tail.grown.wait()
            elif await self._read():
                return True
            rested = True
        if not rested:
            await trio.lowlevel.checkpoint()
        return False

    async def _read(self) -> bool:
        """Read the log past the cursor; if it holds nothing there, end, or wait until it may. At least one checkpoint."""
        # Taken before the read: a wake that arrives while reading is kept for the next round.
        self._wanted = trio.Event()
        signal = self._wanted if self._tail is None else self._tail.grown
        self._look, ending = self._tail is None, self._ending
        try:
            rows = await self._log.read(self._stream, self._cursor, DEFAULT_READ_LIMIT)
        except LogClosed:
            rows, ending = (), ending or "the log was closed"
        except BaseException:
            self._look = True
            raise
        if self._closed is not None:
            # The block was left while this task was reading; its cursor is already told.
            return False
        if rows:
            self._take(rows)
            return True
        if ending:
            self._closed = Closed(ending, self._cursor)
        elif not self._ending and (self._tail is None or not self._look):
            await signal.wait()
        return False

    def _take(self, rows: tuple[Row, ...]) -> None:
        """Buffer rows as events, up to the first that is none: that one fails the read that begins with it, and no other."""
        events: list[Event] = []
        # Until a read has shown where the log ends, only the log knows whether there is more, or what is wrong with it.
        self._look = True
        for row in rows:
            try:
                events.append(decode(row.data))
            except VerificationError:
                if not events:
                    raise
                break
        else:
            self._look = self._tail is None or len(rows) == DEFAULT_READ_LIMIT
        self._batch, self._at = tuple(events), 0
