"""The contract of the runtime port: whatever drives a run, it is streamed, watched, parked, resumed, ended and sealed alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from io import BytesIO

import pytest
import trio

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import NotDriven, RunCancelled, RunParked, SessionFailed
from affidavit.actors.events import ACTION_KINDS, TERMINAL_KINDS, Event, FaultClass, Kind
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalKey, GoalSpec, Phase
from affidavit.actors.history import history
from affidavit.actors.host import Host, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Log
from affidavit.actors.projection import Projection, project, reduce
from affidavit.actors.runtime_port import ConversingRuntime
from affidavit.actors.session import open_session
from affidavit.crypto import Tier, verify_record
from tests.actors.fakes import Fault, FaultLog
from tests.actors.mission_kit import check_record
from tests.actors.runtime_port.adapters import ADAPTERS, Adapter, World
from tests.actors.runtimes import RECORD, RUN
from tests.actors.sealing_kit import KEYRING, SIGNER

KEY = GoalKey(RUN)
SPEC = GoalSpec("look once")


@pytest.fixture(params=list(ADAPTERS.values()), ids=list(ADAPTERS))
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Each runtime in turn."""
    found = request.param
    assert isinstance(found, Adapter)
    return found


@asynccontextmanager
async def new_host(log: Log) -> AsyncIterator[Host]:
    """Open a host that seals, and tell of failures."""
    failures: list[Exception] = []
    async with open_host(log, signer=SIGNER, on_failure=lambda _run, error: failures.append(error)) as host:
        yield host
    assert failures == []


async def whole(log: Log, *, complete: bool, rounds: int = 1) -> tuple[Event, ...]:
    """Check what holds of every run, whatever drove it, and return its events without those about the record."""
    events = await history(log, RUN)
    check_record(events)
    status = Projection()
    for event in events:
        status = reduce(status, event)
    assert status == project(events)
    told = [event for event in events if event.kind not in RECORD]
    assert told[0].kind == Kind.SESSION_STARTED
    assert (told[-1].kind in TERMINAL_KINDS) is complete
    assert sum(event.kind in TERMINAL_KINDS for event in told) == (rounds if complete else rounds - 1)
    file = BytesIO()
    await export(log, RUN, file)
    record = verify_record(file.getvalue(), KEYRING)
    assert (record.tier, record.complete) == (Tier.L4, complete)
    return tuple(told)


def begun(events: tuple[Event, ...]) -> set[int]:
    """Return the actions that have begun and not ended."""
    acted = [event for event in events if event.kind in ACTION_KINDS]
    ended = {event.call for event in acted if event.kind != Kind.ACTION_ADMITTED}
    return {event.call for event in acted} - ended


async def test_a_goal_is_driven_to_its_end_and_sealed(adapter: Adapter) -> None:
    """Its answer is the run's, its terminal event stands once and last, and its record verifies at L4 as complete."""
    log, world = MemoryLog(), World(held=False)
    async with new_host(log) as host:
        run = await host.submit(SPEC, partial(adapter.open, log, world), id=RUN)
        assert await run.session.wait() == adapter.answer
        await run.closed()
    events = await whole(log, complete=True)
    assert events[-1].text == adapter.answer
    assert world.done == 1


async def test_a_reader_sees_the_very_events_of_the_record_in_order(adapter: Adapter) -> None:
    """Live or afterwards: one stream, whatever drives the run."""
    log, world, seen = MemoryLog(), World(held=False), []
    async with (
        adapter.open(log, world) as runtime,
        open_session(log, MemoryBus(), id=RUN) as session,
        session.subscribe() as live,
    ):
        await session.submit(runtime, SPEC)
        async for event in live:
            seen.append(event)
            if event.kind in TERMINAL_KINDS:
                break
    assert tuple(seen) == await history(log, RUN)


async def test_the_status_says_how_the_goal_stands(adapter: Adapter) -> None:
    """Driven and not terminal, then converged with its answer and not driven; a goal that it never had is a KeyError."""
    log, world = MemoryLog(), World()
    async with adapter.open(log, world) as runtime, open_session(log, MemoryBus(), id=RUN) as session:
        with pytest.raises(KeyError):
            await runtime.status(KEY)
        assert await session.submit(runtime, SPEC) == KEY
        await world.began.wait()
        status = await runtime.status(KEY)
        assert (status.phase.terminal, status.active) == (False, True)
        world.go.set()
        assert await session.wait() == adapter.answer
        await runtime.stop(KEY, fault=FaultClass.INTERRUPTED)
        status = await runtime.status(KEY)
        assert not status.active
        assert (status.phase, status.message) == (Phase.CONVERGED, adapter.answer)
        with pytest.raises(KeyError):
            await runtime.status(GoalKey("another"))


async def test_stopping_a_goal_that_is_not_driven_is_no_error(adapter: Adapter) -> None:
    """Neither one that it never had, nor one that has ended."""
    log, world = MemoryLog(), World(held=False)
    async with adapter.open(log, world) as runtime, open_session(log, MemoryBus(), id=RUN) as session:
        await runtime.stop(KEY, fault=FaultClass.INTERRUPTED)
        await session.submit(runtime, SPEC)
        await session.wait()
        await runtime.stop(KEY, fault=FaultClass.CANCELLED)
    assert (await history(log, RUN))[-1].kind == Kind.CONVERGED


async def test_nothing_runs_once_a_goal_was_stopped_and_it_can_be_taken_up_again(
    adapter: Adapter,
) -> None:
    """The deed was cancelled by the time `stop` returns, nothing is reported after it; the same runtime then goes on with it."""
    log, world = MemoryLog(), World()
    async with adapter.open(log, world) as runtime, open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await world.began.wait()
        await runtime.stop(KEY, fault=FaultClass.INTERRUPTED)
        assert (world.stopped, world.done) == (1, 0)
        stopped = await history(log, RUN)
        status = await runtime.status(KEY)
        assert (status.phase.terminal, status.active) == (False, False)
        with pytest.raises(RunParked, match="nothing drives it any more"):
            await session.wait()
        assert await history(log, RUN) == stopped
        world.go.set()
        await session.resume(runtime, KEY)
        assert await session.wait() == adapter.answer
    assert world.done == 1
    check_record(await history(log, RUN))


async def test_a_run_that_is_left_is_parked_and_goes_on_elsewhere(adapter: Adapter) -> None:
    """Sealed as it stands, incomplete, with nothing begun that has no end; another runtime drives it to the same answer."""
    log, world = MemoryLog(), World()
    async with new_host(log) as host:
        await host.submit(SPEC, partial(adapter.open, log, world), id=RUN)
        await world.began.wait()
    assert (world.stopped, world.done) == (1, 0)
    assert begun(await whole(log, complete=False)) == set()
    later = World(held=False)
    async with new_host(log) as host:
        run = await host.resume(RUN, partial(adapter.open, log, later))
        assert await run.session.wait() == adapter.answer
        await run.closed()
    events = await whole(log, complete=True)
    assert [event.kind for event in events].count(Kind.SESSION_STARTED) == 1
    assert later.done == 1


async def test_a_conversation_goes_on_where_the_runtime_can(adapter: Adapter) -> None:
    """After the end, in another session: the words stand on the record, and the same deed is not done again; or it is refused."""
    log, world = MemoryLog(), World(held=False)
    opening = partial(adapter.open, log, world)
    async with new_host(log) as host:
        run = await host.submit(SPEC, opening, id=RUN)
        await run.closed()
        async with adapter.open(log, world) as runtime:
            can = isinstance(runtime, ConversingRuntime)
        if can:
            run = await host.say(RUN, opening, "And again?", principal="ada")
            assert await run.session.wait() == adapter.answer
            await run.closed()
        else:
            with pytest.raises(NotDriven, match="it has no `say`"):
                await host.say(RUN, opening, "And again?", principal="ada")
    assert [event.kind for event in await whole(log, complete=True, rounds=1 + can)].count(
        Kind.USER_MESSAGE
    ) == can
    assert world.done == 1


async def test_a_cancel_reaches_what_is_going_on_before_the_run_ends(adapter: Adapter) -> None:
    """The deed was cancelled when the terminal event stands, every call is answered, and it says who asked and why."""
    log, world = MemoryLog(), World()
    stopped: list[int] = []
    async with new_host(log) as host:
        run = await host.submit(SPEC, partial(adapter.open, log, world), id=RUN)
        await world.began.wait()

        async def note(event: Event) -> None:
            await trio.lowlevel.checkpoint()
            if event.kind in TERMINAL_KINDS:
                stopped.append(world.stopped)

        await run.session.attach(note)
        await host.cancel(RUN, principal="ada", reason="no longer wanted")
        with pytest.raises(RunCancelled, match="no longer wanted"):
            await run.session.wait()
        await run.closed()
    assert (stopped, world.done) == ([1], 0)
    events = await whole(log, complete=True)
    assert begun(events) == set()
    assert (events[-1].principal, events[-1].error_class) == ("ada", "cancelled")


async def test_a_runtime_that_is_closed_leaves_nothing_running(adapter: Adapter) -> None:
    """Its goals stop with its block, and their run can be resumed."""
    log, world = MemoryLog(), World()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        async with adapter.open(log, world) as runtime:
            await session.submit(runtime, SPEC)
            await world.began.wait()
        assert (world.stopped, world.done) == (1, 0)
    assert not session.finished


async def test_whichever_append_fails_the_run_goes_on_from_what_stands(adapter: Adapter) -> None:
    """As after a kill between any two appends: a new runtime over the same log comes to the same answer, and repeats no end."""
    at = 1
    while True:
        at += 1
        log, world = FaultLog(MemoryLog(), at={at}, fault=Fault.LOST), World(held=False)
        try:
            assert await _drive(log, adapter, world, resume=False) == adapter.answer
        except SessionFailed:
            log.reopen()
            assert await _drive(log, adapter, World(held=False), resume=True) == adapter.answer
        check_record(await history(log, RUN))
        if not log.faults:
            break
    assert at > 2


async def _drive(log: Log, adapter: Adapter, world: World, *, resume: bool) -> str:
    async with adapter.open(log, world) as runtime, open_session(log, MemoryBus(), id=RUN) as session:
        if resume:
            await session.resume(runtime, KEY)
        else:
            await session.submit(runtime, SPEC)
        return await session.wait()
    raise AssertionError("the block keeps no exception to itself")
