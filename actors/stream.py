"""The one writer of one stream: it alone knows the tip, gives each event its seq and time, and makes it durable.

Order of one append: encode under the next seqs, make durable, advance the tip, tell observers and readers, wake the bus. Between
the durable write and the last of these there is no await, so nothing can be cancelled half-way. A crash after the write leaves
a longer log than any reader was told of, which the next reader finds; a crash before it leaves nothing.

What is appended behind its writer's back takes its place, and is made durable, ahead of all that follows; its writer goes on
meanwhile. Nobody is told of it before it is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, final

import trio

from affidavit.actors.behind import Behind
from affidavit.actors.buses.port import Bus, events_subject
from affidavit.actors.clock import Clock
from affidavit.actors.errors import GuardLost, LogError, WriterFenced
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.gate import Gate
from affidavit.actors.logs.port import Entry, Guard, Log, SubmittingLog
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


# What the log keeps beside a stream's rows is told by these alone.
_INDEXED: Final = TERMINAL_KINDS | {Kind.USER_MESSAGE, Kind.RECORD_SEALED}

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
        self._subject = events_subject(stream_id)
        self._clock = clock
        self._tip = tip
        # The seq given out last; ahead of the tip by what is under way without anybody waiting for it.
        self._given = tip
        self._behind = Behind()
        self._is_telling = False
        # Asked once: to look a protocol up costs more than most of what is done with it.
        self._submitting = log if isinstance(log, SubmittingLog) else None
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

    @trio.lowlevel.enable_ki_protection  # what was made durable, or handed over, is told of whatever the keyboard says
    async def append(
        self,
        *events: Event,
        prepare: Prepare | None = None,
        guard: Guard | None = None,
        joins: bool = False,
    ) -> tuple[Event, ...]:
        """Record events in one append, all or none.

        Args:
            events: In order; their seq, time and actor are assigned here.
            prepare: Called with the events when it is this append's turn, to add to them or refuse by raising, knowing that no
                other append comes between.
            guard: What the events are only right in the light of.
            joins: Whether `prepare` may be called while what `append_behind` took is not durable, and so not told, yet.

        Returns:
            The events as readers will see them; empty if `prepare` left none.

        Raises:
            WriterFenced: Another writer has the stream. Nothing was written.
            GuardLost: The guard's stream has grown. Nothing was written, and the stream goes on.
            LogError: As the log's `append`; or what `append_behind` took was lost, and nothing follows that.

        Cancellation: Cancelled means that nothing was appended.
        """
        async with self._turnstile:
            if not joins:
                await self._behind.settled()
            self._behind.check()
            if prepare is not None:
                events = prepare(events)
            if not events:
                await trio.lowlevel.checkpoint()
                return ()
            committed = self._encode(events)
            outcome = (await self._log.append([self._entry(committed, guard)]))[0]
            if isinstance(outcome, WriterFenced):
                self._behind.check()
                raise outcome if outcome.stream == self._id else GuardLost(outcome.stream)
            self._tip = self._given = outcome
            self._tell(committed)
            return committed.events

    @trio.lowlevel.enable_ki_protection
    def append_behind(
        self, *events: Event, prepare: Prepare, failed: Callable[[Exception], None]
    ) -> tuple[Event, ...] | None:
        """Give events their places, and have them made durable ahead of all that is appended from now on.

        Args:
            events: As for `append`.
            prepare: As for `append`.
            failed: Called if they were lost, and the stream then takes nothing more; or if an observer failed on them.

        Returns:
            The events as readers will see them, empty if `prepare` left none. None if somebody is at an append or is being told
            of one just now, if too much is under way already, or if the log cannot do that: nothing has happened then, and
            `append` will do.

        Raises:
            LogError: The log took nothing; or what was taken earlier was lost.
        """
        if self._submitting is None or self._turnstile.is_held or self._is_telling or self._behind.is_full:
            return None
        self._behind.check()
        events = prepare(events)
        if not events:
            return ()
        committed = self._encode(events)

        def told(outcome: int | WriterFenced | LogError) -> None:
            if isinstance(outcome, LogError):
                self._behind.told(outcome)
                failed(outcome)
                return
            self._behind.told(None)
            self._tip = outcome
            try:
                self._tell(committed)
            except Exception as error:  # there is no caller whom it could reach
                failed(error)

        entry = self._entry(committed, None)
        self._behind.add()
        self._given += len(committed.rows)
        try:
            self._submitting.submit(entry, told)
        except BaseException as error:
            # It took nothing and tells nothing; uncounted, nobody waits for it.
            self._given -= len(committed.rows)
            self._behind.told(error if isinstance(error, LogError) else None)
            raise
        return committed.events

    async def settled(self) -> None:
        """Wait until all that `append_behind` took is durable, and told.

        Raises:
            LogError: Some of it could not be made durable.

        Cancellation: changes nothing.
        """
        await self._behind.settled()
        self._behind.check()

    def _encode(self, events: tuple[Event, ...]) -> Committed:
        now = self._clock.now_ns()
        recorded: list[Event] = []
        rows: list[bytes] = []
        for seq, event in enumerate(map(self._scrub, events) if self._scrub else events, self._given + 1):
            row, seen = _encode_whatever(event, self._id, seq, now)
            rows.append(row)
            recorded.append(seen)
        return Committed(self._id, tuple(recorded), tuple(rows))

    def _entry(self, committed: Committed, guard: Guard | None) -> Entry:
        terminal_seq = sealed_size = None
        for event in committed.events:
            if event.kind not in _INDEXED:
                continue
            if event.kind in TERMINAL_KINDS:
                terminal_seq = event.seq
            elif event.kind == Kind.USER_MESSAGE:
                terminal_seq = 0
            elif event.kind == Kind.RECORD_SEALED:
                size = event.detail.get("size")
                sealed_size = size if isinstance(size, int) else None
        return Entry(self._id, self._given, committed.rows, terminal_seq, sealed_size, guard)

    def _tell(self, committed: Committed) -> None:
        # What an observer recorded meanwhile could be told of ahead of this.
        self._is_telling = True
        try:
            for observer in self._observers:
                observer(committed)
        finally:
            self._is_telling = False
        keep = len(self.readers) > 0
        self._tail.publish(committed.events, sum(map(len, committed.rows)) if keep else 0, keep=keep)
        try:
            self._bus.publish(self._subject)
        except Exception:
            # The event is durable; a reader that was not woken finds it by polling.
            logger.warning("the bus did not take a wake for run %s", self._id, exc_info=True)

    def subscribe(self, after_seq: int = 0) -> AbstractAsyncContextManager[Subscription]:
        """Open a subscription: every event after `after_seq`, the backlog first, then the tail.

        Raises:
            ValueError: `after_seq` is negative.
        """
        return self.readers.subscribe(self._log, self._bus, self._id, after_seq)


def _encode_whatever(event: Event, stream: str, seq: int, time: int) -> tuple[bytes, Event]:
    """Encode an event; if outside text in it has no canonical form, record the repaired and marked form instead."""
    try:
        return record(event, stream=stream, seq=seq, time=time)
    except ProducerError:
        return record(recordable(event), stream=stream, seq=seq, time=time)
