"""Following a run from outside its owner: everything, in order, and the owner never notices (S2, S11)."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.session import open_session
from affidavit.actors.subscription import Closed
from affidavit.actors.watch import watch
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, take


async def test_a_watcher_sees_backlog_and_tail_by_the_floor_alone(autojump_clock: MockClock) -> None:
    """No bus joins it to the owner: each new event arrives within one poll."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        async with watch(log, RUN, stream_poll=0.25) as events:
            assert [event.kind for event in await take(events, 1)] == [Kind.SESSION_STARTED]
            for seq in (2, 3):
                await session.reporter.report(SPEAK)
                with trio.fail_after(0.26):
                    assert (await anext(events)).seq == seq
            runtime.converge()
            assert [event.kind for event in await take(events, 2)] == [Kind.GOAL_PHASE, Kind.CONVERGED]
    assert events.closed == Closed("its block was left", 5)
    assert len(await kinds(log)) == 5


async def test_a_watcher_with_the_owners_bus_is_woken_at_once(autojump_clock: MockClock) -> None:
    """Where wakes can be had, the floor is not waited for."""
    log, bus, runtime = MemoryLog(), MemoryBus(), FakeRuntime()
    async with open_session(log, bus, id=RUN) as session, watch(log, RUN, bus=bus, stream_poll=100) as events:
        got: list[Event] = []
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def read() -> None:
                got.extend(await take(events, 2))

            await trio.testing.wait_all_tasks_blocked()
            started = trio.current_time()
            await session.submit(runtime, SPEC)
            await session.reporter.report(SPEAK)
        assert trio.current_time() == started
        assert [event.seq for event in got] == [1, 2]
        runtime.converge()


async def test_a_run_that_does_not_exist_yet_is_waited_for(autojump_clock: MockClock) -> None:
    """Watching comes before the run, and misses nothing of it."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with watch(log, RUN) as events:
        with trio.move_on_after(10) as nothing:
            await anext(events)
        assert nothing.cancelled_caught
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            runtime.converge()
        assert [event.seq for event in await take(events, 3)] == [1, 2, 3]


async def test_a_watcher_comes_back_at_its_cursor(autojump_clock: MockClock) -> None:
    """S2: what it has seen is not repeated."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        runtime.converge()
    async with watch(log, RUN) as events:
        await take(events, 2)
    async with watch(log, RUN, events.cursor) as again:
        assert [event.seq for event in await take(again, 1)] == [3]
    with pytest.raises(ValueError, match="not negative"):
        async with watch(log, RUN, -1):
            pass


async def test_the_watchers_own_exception_leaves_as_itself(autojump_clock: MockClock) -> None:
    """And no task is left behind."""
    before = trio.lowlevel.current_statistics().tasks_living
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught:
        async with watch(MemoryLog(), RUN):
            raise error
    assert caught.value is error
    assert trio.lowlevel.current_statistics().tasks_living == before
