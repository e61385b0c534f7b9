"""A session from submit to its terminal event, which is written exactly once."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import (
    RunFinished,
    Stalled,
)
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.session import open_session
from tests.actors.fakes import FaultLog
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, phase, waiter
from tests.actors.session_kit import ENDED, leave_unfinished


async def test_submit_records_session_started_once_and_names_the_goal_after_the_session(
    autojump_clock: MockClock,
) -> None:
    """Objective, spec and what the runtime says of itself stand on one event; the key is the run's id."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        key = await session.submit(runtime, SPEC)
        assert key == GoalKey(RUN)
        (started,) = await history(log, RUN)
        assert (started.kind, started.text, started.actor) == ("session.started", SPEC.objective, "system")
        assert started.detail["model"] == "fake"
        spec = started.detail["spec"]
        assert isinstance(spec, dict)
        assert spec["name"] == RUN
        with pytest.raises(RuntimeError, match="opened already"):
            await session.submit(runtime, SPEC)
        assert await kinds(log) == [Kind.SESSION_STARTED]
        runtime.converge()
        assert await session.wait() == "all settled"
    assert await kinds(log) == ENDED


async def test_a_session_without_an_id_gets_a_fresh_one(autojump_clock: MockClock) -> None:
    """Two sessions never share an id by default, and a chosen one must be a token."""
    async with open_session(MemoryLog(), MemoryBus()) as one, open_session(MemoryLog(), MemoryBus()) as two:
        assert one.id != two.id
    with pytest.raises(ValueError, match="a run id is"):
        async with open_session(MemoryLog(), MemoryBus(), id="a.b"):
            pass


async def test_opening_a_session_and_leaving_writes_nothing(autojump_clock: MockClock) -> None:
    """Neither a new id nor one that exists is touched by looking."""
    log = MemoryLog()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        assert not session.finished
    assert await log.list() == ()
    await leave_unfinished(log)
    before = await kinds(log)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        assert session.projection.objective == SPEC.objective
    assert await kinds(log) == before


async def test_a_submit_that_fails_stalls_the_run_and_raises_the_runtimes_error(
    autojump_clock: MockClock,
) -> None:
    """The record says why, `wait` raises it, and the error leaves submit and the session as itself."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.refusal, runtime.hold = LookupError("no such model"), trio.Event()
    outcome: list[str | Exception] = []
    with pytest.raises(LookupError, match="no such model"):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            async with trio.open_nursery() as nursery:

                @nursery.start_soon
                async def submit() -> None:
                    with pytest.raises(LookupError, match="no such model"):
                        await session.submit(runtime, SPEC)

                await trio.testing.wait_all_tasks_blocked()
                async with waiter(session) as outcome:
                    runtime.hold.set()
            raise runtime.refusal
    assert [(type(error), str(error)) for error in outcome] == [
        (Stalled, "the goal could not be started: no such model")
    ]
    assert runtime.stops == []
    assert await kinds(log) == [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.STALLED]
    assert (await history(log, RUN))[-1].err == "the goal could not be started: no such model"


async def test_phase_and_terminal_event_are_one_append_when_the_runtime_reports(
    autojump_clock: MockClock,
) -> None:
    """The reported terminal phase brings the terminal event with it, and the watcher's poll adds no second one."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        before = log.appends
        recorded = await session.reporter.report(phase(Phase.CONVERGED, "done"))
        assert [event.kind for event in recorded] == [Kind.GOAL_PHASE, Kind.CONVERGED]
        assert log.appends == before + 1
        runtime.converge("done")
        await trio.sleep(1)
        assert await session.wait() == "done"
    assert await kinds(log) == ENDED
    assert log.appends == before + 1


async def test_phase_and_terminal_event_are_one_append_when_only_the_poll_sees_the_end(
    autojump_clock: MockClock,
) -> None:
    """A runtime that reports no phases is watched: within one poll the end stands, steps and message with it."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN, poll_interval=0.05) as session:
        await session.submit(runtime, SPEC)
        before = log.appends
        runtime.stall("out of steps", FaultClass.BUDGET_EXCEEDED)
        with trio.fail_after(0.051), pytest.raises(Stalled) as caught:
            await session.wait()
        assert (caught.value.reason, caught.value.error_class) == ("out of steps", "budget_exceeded")
    assert log.appends == before + 1
    assert await kinds(log) == [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.STALLED]
    assert (await history(log, RUN))[1].detail == {"phase": "stalled", "message": "out of steps", "steps": 1}


async def test_a_terminal_event_of_the_runtimes_own_is_kept_and_not_doubled(
    autojump_clock: MockClock,
) -> None:
    """With or without a phase beside it, in whatever order: one terminal event, and it stands last."""
    own = Event(Kind.CONVERGED, text="mine")
    done = phase(Phase.CONVERGED, "other")
    for report in ((own,), (done, own), (own, done), (own, SPEAK, Event(Kind.STALLED, err="and no"))):
        log, runtime = MemoryLog(), FakeRuntime()
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            recorded = await session.reporter.report(*report)
            assert recorded[-1].text == "mine"
            runtime.converge("other")
            await trio.sleep(1)
            assert await session.wait() == "mine"
        written = await kinds(log)
        assert written[-1] == Kind.CONVERGED
        assert len([kind for kind in written if kind in {Kind.CONVERGED, Kind.STALLED}]) == 1


async def test_a_childs_terminal_phase_does_not_end_the_run(autojump_clock: MockClock) -> None:
    """Only the root's phase does, and only a terminal one."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        child = Event(Kind.GOAL_PHASE, goal="child-1", detail={"phase": "converged"})
        odd = Event(Kind.GOAL_PHASE, detail={"phase": ["converged"]})
        await session.reporter.report(child, odd, Event(Kind.GOAL_PHASE, detail={"phase": "running"}))
        assert not session.finished
        runtime.converge()
        await session.wait()


async def test_reports_after_the_terminal_event_are_refused_and_write_nothing(
    autojump_clock: MockClock,
) -> None:
    """Whatever it is, and in whatever company."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(phase(Phase.CONVERGED, "done"))
        before = log.appends
        for late in (
            SPEAK,
            phase(Phase.STALLED),
            Event(Kind.STALLED, err="no"),
            Event("provenance.declared"),
        ):
            with pytest.raises(RunFinished):
                await session.reporter.report(late)
        assert log.appends == before
        assert await session.wait() == "done"
    assert await kinds(log) == ENDED


async def test_what_the_session_alone_writes_cannot_be_reported(autojump_clock: MockClock) -> None:
    """A runtime can neither open nor reopen a run, nor claim that its record was sealed or verified."""
    log, runtime = MemoryLog(), FakeRuntime()
    own = (Kind.SESSION_STARTED, Kind.USER_MESSAGE, Kind.RECORD_SEALED, Kind.RECORD_VERIFIED, "record.other")
    async with open_session(log, MemoryBus(), id=RUN) as session:
        for attempt in range(3):
            for kind in own:
                with pytest.raises(ValueError, match="by the session alone"):
                    await session.reporter.report(*[SPEAK] * attempt, Event(kind, detail={"size": 1}))
            if attempt == 0:
                await session.submit(runtime, SPEC)
            if attempt == 1:
                await session.reporter.report(phase(Phase.CONVERGED))
    assert await kinds(log) == ENDED


async def test_nothing_can_be_reported_or_awaited_before_the_run_is_opened(autojump_clock: MockClock) -> None:
    """Both are calls in the wrong order."""
    log = MemoryLog()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        with pytest.raises(RuntimeError, match="before the session was"):
            await session.reporter.report(SPEAK)
        with pytest.raises(RuntimeError, match="nothing to wait for"):
            await session.wait()
        with pytest.raises(RuntimeError, match="without a sealer"):
            await session.seal()
    assert await log.list() == ()


async def test_a_report_is_cancelled_whole_or_not_at_all(autojump_clock: MockClock) -> None:
    """S10: a checkpoint before anything is written, none after; cancelled means not recorded."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.reporter.report(SPEAK, SPEAK)
        assert scope.cancelled_caught
        assert await kinds(log) == [Kind.SESSION_STARTED]
        with trio.testing.assert_checkpoints():
            await session.reporter.report(SPEAK)
        assert await kinds(log) == [Kind.SESSION_STARTED, Kind.ASSISTANT]
        runtime.converge()
