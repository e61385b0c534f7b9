"""Leaving a session: it waits and seals; or, by exception or cancellation, it parks within the grace and leaves nothing (E1)."""

# ruff: noqa: PT012, SIM117  # what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import LogError, RunParked, SessionFailed
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.nurseries import TasksFailed
from affidavit.actors.reporter import Reporter, UnhurriedReporter
from affidavit.actors.sealer import Sealer, open_sealer
from affidavit.actors.session import open_session
from affidavit.actors.session_ends import PARK_GRACE, STOP_GRACE
from affidavit.actors.subscription import Closed
from tests.actors.fakes import FailingSigner
from tests.actors.mission_kit import SIGNER
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, kinds_of_run
from tests.actors.session_kit import tasks

SEALED = [Kind.RECORD_SEALED, Kind.RECORD_VERIFIED]
PARKED = [Kind.SESSION_STARTED, *SEALED]
ENDED = [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.CONVERGED, *SEALED]


async def test_leaving_normally_waits_for_the_run_and_seals_it(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """The block ends once the terminal event stands under a verified seal, and no task is left."""
    before = tasks()
    runtime = FakeRuntime()
    async with trio.open_nursery() as nursery:
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.submit(runtime, SPEC)

            @nursery.start_soon
            async def converge_later() -> None:
                await trio.sleep(2)
                runtime.converge()

        assert trio.current_time() >= 2
        assert await kinds(log) == ENDED
    assert runtime.stops == []
    assert tasks() == before


class _Own(BaseException):
    """An exception of the caller's that is no Exception."""


@pytest.mark.parametrize(
    "error",
    [ValueError("mine"), KeyboardInterrupt(), SystemExit(3), _Own(), StopAsyncIteration(), LogError("mine")],
    ids=lambda error: type(error).__name__,
)
async def test_the_callers_own_exception_leaves_as_itself(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, error: BaseException
) -> None:
    """The very object, in no group; the run is parked, sealed as it stands, and can be resumed."""
    before = tasks()
    runtime = FakeRuntime()
    runtime.closing = (SPEAK,)
    with pytest.raises(type(error)) as caught:
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.submit(runtime, SPEC)
            raise error
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert runtime.stops == [FaultClass.INTERRUPTED]
    assert await kinds(log) == [Kind.SESSION_STARTED, Kind.ASSISTANT, *SEALED]
    assert tasks() == before
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.resume(runtime, GoalKey(RUN))
        runtime.converge()


async def test_a_group_of_the_callers_own_leaves_as_itself(autojump_clock: MockClock, log: MemoryLog) -> None:
    """A nursery in the caller's block raises its group, and it is not taken for a failure of the session."""
    for group in (ExceptionGroup("mine", [ValueError("a"), KeyError("b")]), TasksFailed("mine", [OSError()])):
        with pytest.raises(ExceptionGroup) as caught:  # noqa: ASYNC401  # the very object is looked at
            async with open_session(log, MemoryBus(), id=RUN):
                raise group
        assert caught.value is group


async def test_a_group_with_cancellation_in_it_leaves_as_the_callers_part(
    autojump_clock: MockClock, log: MemoryLog
) -> None:
    """The cancellation goes to the scope it belongs to; it never leaks out of it."""
    with trio.CancelScope() as scope, pytest.RaisesGroup(ValueError):
        async with open_session(log, MemoryBus(), id=RUN), trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)

            @nursery.start_soon
            async def fail_when_cancelled() -> None:
                try:
                    await trio.sleep_forever()
                finally:
                    raise ValueError("mine")

            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    await trio.lowlevel.checkpoint()


async def test_cancellation_parks_and_leaves_as_cancellation(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """E1: with push readers and subscribers open too, the surrounding scope catches its own, and nothing else comes out."""
    before = tasks()
    runtime = FakeRuntime()
    got: list[str] = []

    async def handler(event: Event) -> None:
        got.append(event.kind)

    with trio.move_on_after(1) as scope:
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.attach(handler)
            await session.attach(handler)
            await session.submit(runtime, SPEC)
            async with session.subscribe() as events:
                async for _ in events:
                    pass
    assert scope.cancelled_caught
    assert got == [Kind.SESSION_STARTED] * 2
    assert runtime.stops == [FaultClass.INTERRUPTED]
    assert await kinds(log) == PARKED
    assert tasks() == before


async def test_cancellation_while_the_block_waits_for_the_run_parks_it_too(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """Having left the block's last line does not matter: the goal is stopped, and what stands is sealed."""
    runtime = FakeRuntime()
    with trio.move_on_after(1) as scope:
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.submit(runtime, SPEC)
    assert scope.cancelled_caught
    assert runtime.stops == [FaultClass.INTERRUPTED]
    assert await kinds(log) == PARKED


async def test_parking_takes_no_longer_than_the_grace(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """A runtime that never stops costs the grace; everyone who waits for the run is let go all the same."""
    runtime = FakeRuntime()
    runtime.stop_hold = trio.Event()
    outcome: list[BaseException] = []
    async with trio.open_nursery() as nursery:
        with pytest.raises(ValueError, match="mine"):
            async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
                await session.submit(runtime, SPEC)

                @nursery.start_soon
                async def wait() -> None:
                    try:
                        await session.wait()
                    except RunParked as error:
                        outcome.append(error)

                await trio.testing.wait_all_tasks_blocked()
                started = trio.current_time()
                raise ValueError("mine")
        assert trio.current_time() - started <= PARK_GRACE + 0.001
    assert [str(error) for error in outcome] == [f"run {RUN} was parked: the session was closed"]


async def test_what_a_runtime_reports_after_its_grace_is_refused_and_fails_nothing(
    autojump_clock: MockClock, log: MemoryLog
) -> None:
    """It was told to stop and went on: that is no failure of the record, waited for or not, and the run is parked and sealed."""
    runtime, signer = FakeRuntime(), FailingSigner(SIGNER)
    runtime.stop_hold, signer.hold = trio.Event(), trio.Event()

    async def report_late(reporter: Reporter, hold: trio.Event) -> None:
        await trio.sleep(STOP_GRACE + 0.5)
        assert isinstance(reporter, UnhurriedReporter)
        with pytest.raises(LogError, match="has stopped"):
            await reporter.report(SPEAK)
        with pytest.raises(LogError, match="has stopped"):
            reporter.report_behind(SPEAK)
        hold.set()

    async with trio.open_nursery() as nursery, open_sealer(log, signer) as sealer:
        with pytest.raises(ValueError, match="mine"):
            async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
                await session.submit(runtime, SPEC)
                nursery.start_soon(report_late, session.reporter, signer.hold)  # noqa: ASYNC111  # late on purpose
                raise ValueError("mine")
    with pytest.raises(RunParked):
        await session.wait()
    assert await kinds(log) == PARKED


async def test_a_runtime_that_cannot_stop_does_not_hide_the_callers_exception(
    autojump_clock: MockClock, log: MemoryLog
) -> None:
    """Its failure is the session's, and comes second; without one of the caller's it comes out as SessionFailed."""
    runtime = FakeRuntime()
    runtime.stop_failure = OSError("stuck")
    with pytest.raises(ValueError, match="mine"):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            raise ValueError("mine")
    with pytest.raises(SessionFailed, match="stuck") as caught:
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.resume(runtime, GoalKey(RUN))
            runtime.current = GoalStatus(Phase.RUNNING, active=False)
    assert caught.value.__cause__ is runtime.stop_failure


async def test_nothing_is_recorded_once_the_session_has_closed(
    autojump_clock: MockClock, log: MemoryLog
) -> None:
    """A runtime that goes on regardless holds a reporter without ownership: each report is refused by a LogError."""
    runtime = FakeRuntime()
    with pytest.raises(ValueError, match="mine"):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            raise ValueError("mine")
    before = await kinds(log)
    with pytest.raises(LogError, match="has stopped: the session was closed"):
        await session.reporter.report(SPEAK)
    async with open_session(log, MemoryBus(), id=RUN):
        with pytest.raises(LogError):
            await session.reporter.report(SPEAK)
    assert await kinds(log) == before
    with pytest.raises(RunParked):
        await session.wait()
    with pytest.raises(RuntimeError, match="has ended"):
        await session.cancel(principal="ada", reason="late")


async def test_subscriptions_end_when_the_session_closes_with_everything_delivered(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """S4: a reader outside the block gets the terminal event and the seal, then reason and cursor."""
    runtime = FakeRuntime()
    got: list[Event] = []
    async with trio.open_nursery() as nursery:
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:

            @nursery.start_soon
            async def read() -> None:
                async with session.subscribe() as events:
                    async for event in events:
                        got.append(event)  # noqa: PERF401  # the list is read while it grows
                assert events.closed == Closed("the session was closed", len(got))

            await session.submit(runtime, SPEC)
            runtime.converge()
    assert [event.kind for event in got] == ENDED == await kinds(log)


async def test_a_subscriber_that_joins_after_the_terminal_event_gets_everything(
    autojump_clock: MockClock, log: MemoryLog
) -> None:
    """S4: and its subscription does not end there by itself."""
    runtime = FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        runtime.converge()
        await session.wait()
        got: list[str] = []
        with trio.move_on_after(1):
            async with session.subscribe() as events:
                async for event in events:
                    got.append(event.kind)  # noqa: PERF401  # the list is read while it grows
        assert got == await kinds_of_run(log)
        assert events.closed == Closed("its block was left", 3)


async def test_the_floor_alone_carries_a_reader_when_the_bus_is_gone(
    autojump_clock: MockClock, log: MemoryLog
) -> None:
    """The latency is one stream_poll at most; with the floor turned off the subscription ends and says so."""
    runtime = FakeRuntime()
    bus = MemoryBus()
    async with open_session(log, bus, id=RUN, stream_poll=0.25) as session:
        await session.submit(runtime, SPEC)
        bus.close()
        async with session.subscribe(1) as events:
            await session.reporter.report(SPEAK)
            with trio.fail_after(0.26):
                assert (await anext(events)).seq == 2
        runtime.converge()
    async with open_session(log, bus, id=RUN, stream_poll=0) as session, session.subscribe(1) as events:
        assert [event.seq async for event in events] == [2, 3, 4]
        assert events.closed == Closed("the bus ended and there is no poll floor", 4)
