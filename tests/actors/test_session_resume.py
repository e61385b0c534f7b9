"""A run that is taken up again: no second beginning, no second end."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import (
    ResumeRefused,
    RunOwned,
    RunParked,
    Stalled,
    UnknownRun,
)
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.session import open_session
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, new_stream, phase, waiter
from tests.actors.session_kit import ENDED, finish, leave_unfinished


async def test_a_submit_that_is_cancelled_leaves_a_run_that_can_be_resumed(autojump_clock: MockClock) -> None:
    """Nobody waits for it, its runtime is told to stop, and the next owner goes on."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.hold = trio.Event()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        with trio.move_on_after(1):
            await session.submit(runtime, SPEC)
        with pytest.raises(RunParked):
            await session.wait()
    assert runtime.stops == [FaultClass.INTERRUPTED]
    assert await kinds(log) == [Kind.SESSION_STARTED]
    async with open_session(log, MemoryBus(), id=RUN) as session:
        again = FakeRuntime()
        await session.resume(again, GoalKey(RUN))
        again.converge()
        assert await session.wait() == "all settled"
    assert await kinds(log) == ENDED


async def test_resume_writes_no_second_session_started_and_goes_on_at_the_next_seq(
    autojump_clock: MockClock,
) -> None:
    """S1: one stream, dense, opened once."""
    log = MemoryLog()
    await leave_unfinished(log)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.resume(runtime, GoalKey(RUN))
        await session.reporter.report(SPEAK)
        runtime.converge()
    assert await kinds(log) == [
        Kind.SESSION_STARTED,
        Kind.ASSISTANT,
        Kind.ASSISTANT,
        Kind.GOAL_PHASE,
        Kind.CONVERGED,
    ]


async def test_resume_of_a_finished_run_writes_nothing_and_wait_returns_what_stands(
    autojump_clock: MockClock,
) -> None:
    """The runtime is not even asked."""
    log = MemoryLog()
    await finish(log)
    for _ in range(2):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            runtime = FakeRuntime()
            assert session.finished
            await session.resume(runtime, GoalKey(RUN))
            assert await session.wait() == "all settled"
            assert runtime.resumed == 0
    assert await kinds(log) == ENDED


async def test_resume_refuses_what_is_not_this_runs_goal(autojump_clock: MockClock) -> None:
    """An unknown run, another run's key, a goal that is driven already: each by its own error, nothing written."""
    log = MemoryLog()
    async with open_session(log, MemoryBus(), id="other") as session:
        with pytest.raises(UnknownRun):
            await session.resume(FakeRuntime(), GoalKey("other"))
    await leave_unfinished(log)
    before = await kinds(log)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        with pytest.raises(ResumeRefused, match="other"):
            await session.resume(FakeRuntime(), GoalKey("other"))
        runtime = FakeRuntime()
        await session.resume(runtime, GoalKey(RUN))
        second = FakeRuntime()
        with pytest.raises(RuntimeError, match="driven already"):
            await session.resume(second, GoalKey(RUN))
        assert second.resumed == 0
        runtime.current = GoalStatus(Phase.RUNNING, active=False)
    assert await kinds(log) == before


async def test_a_refused_resume_can_be_followed_by_an_accepted_one(autojump_clock: MockClock) -> None:
    """Who waits meanwhile is told that the run is parked; the second attempt renews the waiting."""
    log = MemoryLog()
    await leave_unfinished(log)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        runtime.refusal = ResumeRefused("other tools")
        with pytest.raises(ResumeRefused, match="other tools"):
            await session.resume(runtime, GoalKey(RUN))
        with pytest.raises(RunParked, match="other tools"):
            await session.wait()
        runtime.refusal = None
        await session.resume(runtime, GoalKey(RUN))
        async with waiter(session) as outcome:
            assert outcome == []
            runtime.converge()
        assert outcome == ["all settled"]


async def test_a_goal_that_ended_without_its_terminal_event_gets_it_on_resume_and_nothing_else(
    autojump_clock: MockClock,
) -> None:
    """Another writer's crash between the two: the phase stands, so only the terminal event is missing."""
    for value, last in ((Phase.CONVERGED, Kind.CONVERGED), (Phase.STALLED, Kind.STALLED)):
        log = MemoryLog()
        stream = await new_stream(log)
        await stream.append(Event(Kind.SESSION_STARTED, text="x"), phase(value, "what stands"))
        async with open_session(log, MemoryBus(), id=RUN) as session:
            runtime = FakeRuntime()
            await session.resume(runtime, GoalKey(RUN))
            assert runtime.resumed == 0
            if value is Phase.CONVERGED:
                assert await session.wait() == "what stands"
            else:
                with pytest.raises(Stalled, match="what stands"):
                    await session.wait()
        assert await kinds(log) == [Kind.SESSION_STARTED, Kind.GOAL_PHASE, last]


async def test_a_second_open_of_a_run_is_refused_and_disturbs_nothing(autojump_clock: MockClock) -> None:
    """S11: RunOwned, until the first has let go."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        with pytest.raises(RunOwned):
            async with open_session(log, MemoryBus(), id=RUN):
                pass
        await session.reporter.report(SPEAK)
        runtime.converge()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        assert session.finished


async def test_a_goal_that_nothing_drives_any_more_is_parked(autojump_clock: MockClock) -> None:
    """`wait` raises RunParked, a normal exit writes no terminal event, and resume in the same session waits anew."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        runtime.current = GoalStatus(Phase.RUNNING, active=False)
        with pytest.raises(RunParked, match="nothing drives it"):
            await session.wait()
        assert await kinds(log) == [Kind.SESSION_STARTED]
        await session.resume(runtime, GoalKey(RUN))
        async with waiter(session) as outcome:
            await trio.sleep(1)
            assert outcome == []
            runtime.converge()
        assert outcome == ["all settled"]
    assert await kinds(log) == ENDED


async def test_who_waits_while_a_run_is_let_go_and_taken_up_again_waits_for_the_latest(
    autojump_clock: MockClock,
) -> None:
    """Both in one moment, before the waiting task runs: it is told of neither, and gets the answer."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        async with waiter(session) as outcome:
            session._core.record.release("let go")
            session._core.record.attach(runtime, GoalKey(RUN))
            session._core.watch()
            await trio.sleep(1)
            assert outcome == []
            runtime.converge()
        assert outcome == ["all settled"]
