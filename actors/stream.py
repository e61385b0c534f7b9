"""The one writer of one stream: it alone knows the tip, gives each event its seq and time, and makes it durable.

Order of one append: encode under the next seqs, make durable, advance the tip, tell observers and readers, wake the bus. Between
the durable write and the last of these there is no await, so nothing can be cancelled half-way. A crash after the write leaves
a longer log than any reader was told of, which the next reader finds; a crash before it leaves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import final

import trio

from affidavit.actors.buses.port import Bus, events_subject
from affidavit.actors.clock import Clock
from affidavit.actors.errors import GuardLost, WriterFenced
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.gate import Gate
from affidavit.actors.leisure import offer
from affidavit.actors.logs.port import Entry, Guard, Log
from affidavit.actors.readers import Readers
from affidavit.actors.recorded import record
from affidavit.actors.subscription import Subscription
from affidavit.actors.tail import Tail
from affidavit.actors.text import recordable
from affidavit.crypto.failures import ProducerError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Committed:
    """Events that have just become durable.

    Attributes:
        stream: Their stream.
        events: As readers will see them.
        rows: Their stored bytes, in the same order.
    """

    stream: str
    events: tuple[Event, ...]
    rows: tuple[bytes, ...]


@final
class _Written:
    """Events on their way to the log: their bytes, and what readers will see once they are durable."""

    __slots__ = ("_as_read", "_committed", "_stream", "events", "rows")

    def __init__(
        self, stream: str, events: tuple[Event, ...], made: list[tuple[bytes, Callable[[], Event]]]
    ) -> None:
        self.events = events
        self.rows = tuple(row for row, _ in made)
        self._as_read = [as_read for _, as_read in made]
        self._stream = stream
        self._committed: Committed | None = None

    def committed(self) -> Committed:
        """Return what readers will see; built once, by whoever asks first."""
        if self._committed is None:
            events = tuple(as_read() for as_read in self._as_read)
            self._committed = Committed(self._stream, events, self.rows)
        return self._committed


Prepare = Callable[[tuple[Event, ...]], tuple[Event, ...]]
Scrub = Callable[[Event], Event]


@final
class Stream:
    """An ordered, durable, replayable channel of events with one writer."""

    def __init__(
        self, log: Log, bus: Bus, stream_id: str, clock: Clock, *, tip: int = 0, has_floor: bool = False
    ) -> None:
        """Take over a stream at its tip.

        Args:
            log: Where events are made durable.
            bus: Where readers are woken.
            stream_id: The stream's id; the caller owns the run.
            clock: The source of event times.
            tip: The seq of the last event on the log.
            has_floor: Whether the owner ticks `readers`.
        """
        self._log = log
        self._bus = bus
        self._id = stream_id
        self._clock = clock
        self._tip = tip
        self._turnstile = Gate()
        self._observers: list[Callable[[Committed], None]] = []
        self._scrub: Scrub | None = None
        self._tail = Tail(tip)
        self.readers = Readers(has_floor=has_floor, tail=self._tail)

    @property
    def id(self) -> str:
        """The stream's id."""
        return self._id

    @property
    def tip(self) -> int:
        """The seq of the last durable event."""
        return self._tip

    def observe(self, observer: Callable[[Committed], None]) -> None:
        """Call `observer` after each append, in commit order. It must not raise, block or await."""
        self._observers.append(observer)

    def scrub_with(self, scrub: Scrub) -> None:
        """Have each event altered by `scrub` before it is recorded, in place of the one named before. It must not raise."""
        self._scrub = scrub

    def as_recorded(self, event: Event) -> Event:
        """Return an event as `scrub_with` would have it recorded now."""
        return self._scrub(event) if self._scrub else event

    async def append(
        self, *events: Event, prepare: Prepare | None = None, guard: Guard | None = None
    ) -> tuple[Event, ...]:
        """Record events in one append, all or none.

        Args:
            events: In order; their seq, time and actor are assigned here.
            prepare: Called with the events when it is this append's turn, to add to them or refuse by raising, knowing that no
                other append comes between.
            guard: What the events are only right in the light of.

        Returns:
            The events as readers will see them; empty if `prepare` left none.

        Raises:
            WriterFenced: Another writer has the stream. Nothing was written.
            GuardLost: The guard's stream has grown. Nothing was written, and the stream goes on.
            LogError: As the log's `append`.

        Cancellation: Cancelled means that nothing was appended.
        """
        async with self._turnstile:
            if prepare is not None:
                events = prepare(events)
            if not events:
                await trio.lowlevel.checkpoint()
                return ()
            written = self._encode(events)
            # The log takes its time, and the loop may have none to lose once it is back.
            offer(written.committed)
            outcome = (await self._log.append([self._entry(written, guard)]))[0]
            if isinstance(outcome, WriterFenced):
                raise outcome if outcome.stream == self._id else GuardLost(outcome.stream)
            self._tip = outcome
            committed = written.committed()
            self._tell(committed)
            return committed.events

    def _encode(self, events: tuple[Event, ...]) -> _Written:
        now = self._clock.now_ns()
        given = tuple(map(self._scrub, events)) if self._scrub else events
        made = [_encode_whatever(event, self._id, seq, now) for seq, event in enumerate(given, self._tip + 1)]
        return _Written(self._id, given, made)

    def _entry(self, written: _Written, guard: Guard | None) -> Entry:
        terminal_seq = sealed_size = None
        for seq, event in enumerate(written.events, self._tip + 1):
            if event.kind in TERMINAL_KINDS:
                terminal_seq = seq
            elif event.kind == Kind.USER_MESSAGE:
                terminal_seq = 0
            elif event.kind == Kind.RECORD_SEALED:
                size = event.detail.get("size")
                sealed_size = size if isinstance(size, int) else None
        return Entry(self._id, self._tip, written.rows, terminal_seq, sealed_size, guard)

    def _tell(self, committed: Committed) -> None:
        for observer in self._observers:
            observer(committed)
        self._tail.publish(committed.events, sum(map(len, committed.rows)), keep=len(self.readers) > 0)
        try:
            self._bus.publish(events_subject(self._id))
        except Exception:
            # The event is durable; a reader that was not woken finds it by polling.
            logger.warning("the bus did not take a wake for run %s", self._id, exc_info=True)

    def subscribe(self, after_seq: int = 0) -> AbstractAsyncContextManager[Subscription]:
        """Open a subscription: every event after `after_seq`, the backlog first, then the tail.

        Raises:
            ValueError: `after_seq` is negative.
        """
        return self.readers.subscribe(self._log, self._bus, self._id, after_seq)


def _encode_whatever(event: Event, stream: str, seq: int, time: int) -> tuple[bytes, Callable[[], Event]]:
    """Encode an event; if outside text in it has no canonical form, record the repaired and marked form instead."""
    try:
        return record(event, stream=stream, seq=seq, time=time)
    except ProducerError:
        return record(recordable(event), stream=stream, seq=seq, time=time)
