"""Log, bus, stream and readers together, against a plain list (S1, S2, S3, S5, S6, S12, by any sequence of what can happen).

The model is the list of texts that are on the record. Whatever the order of appends, failed and cancelled appends, lost wakes,
slow reads, drops, reconnects, new owners and jumps of the clock: each reader has exactly published[n:], seqs are dense from 1,
and what failed without being written never existed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

import pytest
import trio
import trio.testing
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus
from affidavit.actors.errors import LogClosed, LogError, WriterFenced
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.stream import Stream
from affidavit.actors.subscription import Subscription
from tests.actors.fakes import BrokenBus, DoublingBus, Fault, JumpingClock, LateLog, SilentBus
from tests.actors.runtimes import RUN, available
from tests.environment import MACHINE_EXAMPLES

T = TypeVar("T")


class Loop:
    """A trio run in a thread, in which a synchronous test takes one step after another."""

    def __init__(self) -> None:
        self._ready: SimpleQueue[tuple[trio.lowlevel.TrioToken, trio.Event]] = SimpleQueue()
        self._thread = Thread(target=trio.run, args=(self._main,))
        self._thread.start()
        self._token, self._over = self._ready.get()

    async def _main(self) -> None:
        over = trio.Event()
        self._ready.put((trio.lowlevel.current_trio_token(), over))
        await over.wait()

    def do(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run one step to its end."""
        return trio.from_thread.run(step, trio_token=self._token)

    def close(self) -> None:
        """End the run."""
        trio.from_thread.run_sync(self._over.set, trio_token=self._token)
        self._thread.join()


@dataclass
class Reader:
    """One subscription, and what it has delivered.

    Attributes:
        after: The cursor it was first opened with.
        got: The texts it delivered, over all its connections.
        events: The open subscription.
        stack: Closes it.
    """

    after: int
    events: Subscription
    stack: AsyncExitStack
    got: list[str] = field(default_factory=list)


async def tick(stream: Stream, tip: int) -> None:
    """Do what the poll floor does."""
    stream.readers.check(tip)


def _as_given(events: tuple[Event, ...]) -> tuple[Event, ...]:
    return events


class StreamMachine(RuleBasedStateMachine):
    """See the module's docstring."""

    readers = Bundle("readers")

    def __init__(self) -> None:
        super().__init__()
        self.loop = Loop()
        self.log = LateLog(MemoryLog())
        self.failures: list[Exception] = []
        self.lost: list[Stream] = []
        self.clock = JumpingClock()
        self.published: list[str] = []
        self.open: list[Reader] = []
        self.former: list[Stream] = []
        self.said = 0

    @initialize(bus=st.sampled_from([MemoryBus, SilentBus, DoublingBus, BrokenBus]))
    def begin(self, bus: Callable[[], Bus]) -> None:
        """Open the stream over one kind of bus."""
        self.bus = bus()
        self.stream = Stream(self.log, self.bus, RUN, self.clock, has_floor=True)

    def new_events(self, count: int) -> list[Event]:
        """Return events with texts that were never used before."""
        self.said += count
        return [Event(Kind.ASSISTANT, text=str(number)) for number in range(self.said - count, self.said)]

    @rule(count=st.integers(1, 3))
    @precondition(lambda self: not self.log.closed)
    def append(self, count: int) -> None:
        """The owner records something."""
        events = self.new_events(count)
        recorded = self.loop.do(lambda: self.stream.append(*events))
        tip = len(self.published)
        self.published += [event.text for event in events]
        assert [event.seq for event in recorded] == list(range(tip + 1, tip + 1 + count))

    @rule(joins=st.booleans(), count=st.integers(1, 3))
    @precondition(lambda self: not self.log.closed)
    def append_behind(self, joins: bool, count: int) -> None:
        """The owner goes on before something is durable, and records more, in the same turn or once it is."""
        ahead, after = self.new_events(count), self.new_events(1)

        async def both() -> list[Event]:
            given = self.stream.append_behind(*ahead, prepare=_as_given, failed=self.failures.append)
            assert given is not None
            assert self.stream.tip == len(self.published), "nobody is told of what is not durable"
            return [*given, *await self.stream.append(*after, joins=joins)]

        recorded = self.loop.do(both)
        assert [event.seq for event in recorded] == list(
            range(len(self.published) + 1, len(self.published) + count + 2)
        )
        self.published += [event.text for event in recorded]

    @rule(fault=st.sampled_from(list(Fault)), joins=st.booleans())
    @precondition(lambda self: not self.log.closed)
    def append_behind_that_fails(self, fault: Fault, joins: bool) -> None:
        """Its owner hears of it, nothing follows it, and a new owner goes on from what stands."""
        (event,) = self.new_events(1)
        (after,) = self.new_events(1)
        before = len(self.failures)

        async def fail() -> None:
            self.log.fail_next(fault)
            self.stream.append_behind(event, prepare=_as_given, failed=self.failures.append)
            with pytest.raises(LogError):
                await self.stream.append(after, joins=joins)
            with pytest.raises(LogError):
                await self.stream.settled()

        self.loop.do(fail)
        assert len(self.failures) == before + 1
        if fault is Fault.WRITTEN:
            self.published.append(event.text)
        self.lost.append(self.stream)
        self.new_owner()

    @rule(fault=st.sampled_from(list(Fault)))
    @precondition(lambda self: not self.log.closed)
    def append_that_fails(self, fault: Fault) -> None:
        """The log fails, with or without having written."""
        events = self.new_events(2)
        self.log.fail_next(fault)
        with pytest.raises(LogError):
            self.loop.do(lambda: self.stream.append(*events))
        if fault is Fault.WRITTEN:
            self.published += [event.text for event in events]

    @rule()
    @precondition(lambda self: not self.log.closed)
    def append_that_is_cancelled(self) -> None:
        """Cancelled means that nothing was appended."""
        events = self.new_events(1)

        async def cancelled() -> bool:
            with trio.CancelScope() as scope:
                scope.cancel()
                await self.stream.append(*events)
            return scope.cancelled_caught

        assert self.loop.do(cancelled)

    @rule()
    def new_owner(self) -> None:
        """A new owner opens the log and goes on; the old one may still be there and want to write."""
        self.log.reopen()
        self.former.append(self.stream)
        tip = len(self.loop.do(lambda: history(self.log, RUN)))
        self.stream = Stream(self.log, self.bus, RUN, self.clock, tip=tip, has_floor=True)

    @rule(data=st.data())
    @precondition(lambda self: self.former and not self.log.closed)
    def former_owner_writes(self, data: st.DataObject) -> None:
        """It is fenced, unless nobody has written since it lost the run: then it may go on, as no harm is done."""
        former = data.draw(st.sampled_from(self.former))
        events = self.new_events(1)
        if former.tip == len(self.published) and former not in self.lost:
            return
        # One that has lost something writes nothing more, whoever has the stream by now.
        with pytest.raises(LogClosed if former in self.lost else WriterFenced):
            self.loop.do(lambda: former.append(*events))

    @rule(now=st.integers(-(2**63), 2**63 - 1))
    def clock_jumps(self, now: int) -> None:
        """The wall clock says anything."""
        self.clock.now = now

    async def connect(self, after: int) -> tuple[Subscription, AsyncExitStack]:
        """Open a subscription that outlives this step."""
        stack = AsyncExitStack()
        return await stack.enter_async_context(self.stream.subscribe(after)), stack

    @rule(target=readers, after=st.integers(0, 30))
    def subscribe(self, after: int) -> Reader:
        """Someone begins to read, at any cursor."""
        reader = Reader(after, *self.loop.do(lambda: self.connect(after)))
        self.open.append(reader)
        return reader

    @rule(reader=readers, most=st.integers(1, 4))
    def read_slowly(self, reader: Reader, most: int) -> None:
        """A reader takes a few events at most; one whose log has closed is told so, and comes back at its cursor."""
        if reader not in self.open:
            return
        reader.got += [event.text for event in self.loop.do(lambda: available(reader.events, most))]
        closed = reader.events.closed
        if closed is not None:
            assert closed.reason == "the log was closed"
            self.come_back(reader)

    @rule()
    @precondition(lambda self: not self.log.closed)
    def floor(self) -> None:
        """The poll floor of the streams finds what nobody was told of."""
        for stream in (self.stream, *self.former):
            self.loop.do(partial(tick, stream, len(self.published)))

    @rule(reader=readers)
    def come_back(self, reader: Reader) -> None:
        """A reader drops and connects again at its cursor, to whichever stream is there now."""
        if reader not in self.open:
            return
        self.loop.do(reader.stack.aclose)
        assert reader.events.closed is not None
        assert reader.events.closed.cursor == reader.events.cursor
        reader.events, reader.stack = self.loop.do(lambda: self.connect(reader.events.cursor))

    @rule(reader=consumes(readers))
    def leave(self, reader: Reader) -> None:
        """A reader leaves for good."""
        if reader in self.open:
            self.open.remove(reader)
            self.loop.do(reader.stack.aclose)

    @invariant()
    def each_reader_has_exactly_what_was_published(self) -> None:
        """No gap and no duplicate, at any time."""
        for reader in self.open:
            wanted = self.published[reader.after :]
            assert reader.got == wanted[: len(reader.got)]

    @invariant()
    def the_record_is_what_was_published(self) -> None:
        """Dense from 1, nothing lost, nothing that failed."""
        if not self.log.closed:
            events = self.loop.do(lambda: history(self.log, RUN))
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert [event.text for event in events] == self.published

    def teardown(self) -> None:
        """In the end each reader, woken by the floor alone, has all of it."""
        try:
            self.log.reopen()
            for stream in (self.stream, *self.former):
                self.loop.do(partial(tick, stream, len(self.published)))
            for reader in self.open:
                if reader.events.closed is None:
                    reader.got += [event.text for event in self.loop.do(partial(available, reader.events))]
                    assert reader.got == self.published[reader.after :]
                self.loop.do(reader.stack.aclose)
        finally:
            self.loop.close()


StreamMachine.TestCase.settings = settings(
    deadline=None, max_examples=MACHINE_EXAMPLES, stateful_step_count=40
)
TestStreamMachine = StreamMachine.TestCase
