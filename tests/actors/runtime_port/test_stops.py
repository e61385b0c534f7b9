"""A runtime that ignores that it is to stop, fails at it, or says itself how its run ends: within the grace, and by name."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import LogClosed, RunCancelled, RunFinished, RunParked
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.sealer import Sealer
from affidavit.actors.session import open_session
from affidavit.actors.session_ends import CANCEL_GRACE, PARK_GRACE
from tests.actors.runtime_port.open_calls import CALLS, CLOSED, OPENED, closed_properly
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, kinds_of_run, phase
from tests.actors.sealing_kit import record


async def test_a_run_whose_runtime_ignores_a_cancel_ends_all_the_same(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """After the grace the session ends it on the record; what the runtime still reports is refused."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.stop_hold = trio.Event()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(*CALLS)
        asked = trio.current_time()
        terminal = await session.cancel(principal="ada", reason="enough")
        assert trio.current_time() - asked == pytest.approx(CANCEL_GRACE)
        assert terminal.principal == "ada"
        with pytest.raises(RunFinished):
            await session.reporter.report(SPEAK)
        with pytest.raises(RunCancelled):
            await session.wait()
    assert await kinds(log) == [*OPENED, *CLOSED, Kind.GOAL_PHASE, Kind.STALLED]
    await closed_properly(log)
    assert "did not stop within 5 s" in caplog.text


async def test_a_run_whose_runtime_fails_to_stop_is_cancelled_all_the_same(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A cancellation that was asked for does not depend on the good will of what is cancelled; the error is in the host's log."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.stop_failure = OSError("stuck")
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(*CALLS)
        await session.cancel(principal="ada", reason="enough")
    assert (await closed_properly(log))[-1].kind == Kind.STALLED
    assert "stuck" in caplog.text


async def test_a_run_whose_runtime_ignores_a_park_is_left_sealed_with_nothing_begun_open(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, caplog: pytest.LogCaptureFixture
) -> None:
    """Within the grace, with time left for the seal: what had begun is interrupted, and later reports are refused."""
    runtime = FakeRuntime()
    refused: list[LogClosed] = []
    runtime.stop_hold = trio.Event()

    left = 0.0
    with pytest.raises(ZeroDivisionError):
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:

            async def go_on(event: Event) -> None:
                if event.kind == Kind.ACTION_COMPLETED:
                    try:
                        await session.reporter.report(SPEAK)
                    except LogClosed as error:
                        refused.append(error)

            await session.attach(go_on)
            await session.submit(runtime, SPEC)
            await session.reporter.report(*CALLS)
            left = trio.current_time()
            raise ZeroDivisionError
    assert trio.current_time() - left < PARK_GRACE
    with pytest.raises(RunParked):
        await session.wait()
    assert (await kinds_of_run(log))[-2:] == [Kind.ACTION_COMPLETED, Kind.TOOL_RESULT]
    assert (await record(log)).complete is False
    assert (await kinds(log))[-2:] == [Kind.RECORD_SEALED, Kind.RECORD_VERIFIED]
    assert len(refused) == 1
    assert "did not stop within 4 s" in caplog.text


async def test_a_runtime_that_parks_without_closing_its_actions_has_them_closed(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """What must not be repeated is answered, so that whoever resumes the run does not; a call that never began stays open."""
    with pytest.raises(ZeroDivisionError):
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.submit(FakeRuntime(), SPEC)
            await session.reporter.report(*CALLS)
            raise ZeroDivisionError
    told = await kinds_of_run(log)
    assert told == [*OPENED, Kind.ACTION_COMPLETED, Kind.TOOL_RESULT]
    (result,) = [event for event in await history(log, RUN) if event.kind == Kind.TOOL_RESULT]
    assert (result.tool_use_id, result.is_error) == ("t1", True)


OWN_STALL = Event(Kind.STALLED, err="I stop", error_class="cancelled")


@pytest.mark.parametrize(
    "own",
    [
        (phase(Phase.STALLED, "I stop", error_class="cancelled"),),
        (OWN_STALL,),
        (SPEAK, phase(Phase.STALLED, "I stop", error_class="cancelled"), OWN_STALL),
    ],
    ids=["phase", "terminal", "both"],
)
async def test_a_cancellation_that_the_runtime_reports_itself_says_who_asked(
    autojump_clock: MockClock, own: tuple[Event, ...]
) -> None:
    """One end, and it names the person and the reason, whoever was first to record it."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.closing = own
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        terminal = await session.cancel(principal="ada", reason="enough")
    assert (terminal.principal, terminal.err, terminal.error_class) == ("ada", "enough", "cancelled")
    (told,) = [event for event in await history(log, RUN) if event.kind == Kind.GOAL_PHASE]
    assert told.principal == "ada"
    assert (await kinds(log))[-2:] == [Kind.GOAL_PHASE, Kind.STALLED]


async def test_an_end_of_another_kind_that_comes_first_stands(autojump_clock: MockClock) -> None:
    """A runtime that had its answer, or ran out of budget, before it was stopped: that is what happened."""
    for end, expected in (
        (phase(Phase.CONVERGED, "just in time"), Kind.CONVERGED),
        (phase(Phase.STALLED, "out of steps", error_class="budget_exceeded"), Kind.STALLED),
    ):
        log, runtime = MemoryLog(), FakeRuntime()
        runtime.closing = (end,)
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            terminal = await session.cancel(principal="ada", reason="enough")
        assert (terminal.kind, terminal.principal) == (expected, "")


async def test_a_status_that_only_shows_the_cancellation_does_not_hide_who_asked(
    autojump_clock: MockClock,
) -> None:
    """The watcher's poll sees the runtime's own stall while `stop` has not returned yet; the end is left to the cancellation."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.stop_hold = trio.Event()
    async with open_session(log, MemoryBus(), id=RUN) as session, trio.open_nursery() as nursery:
        await session.submit(runtime, SPEC)
        nursery.start_soon(lambda: session.cancel(principal="ada", reason="enough"))
        await trio.testing.wait_all_tasks_blocked()
        runtime.stall("I stop", FaultClass.CANCELLED)
        await trio.sleep(1)
        assert not session.finished
        runtime.stop_hold.set()
    assert (await history(log, RUN))[-1].principal == "ada"
