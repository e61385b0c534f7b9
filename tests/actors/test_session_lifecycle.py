"""A session from submit or resume to its terminal event, which is written exactly once."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import (
    ResumeRefused,
    RunCancelled,
    RunFinished,
    RunOwned,
    RunParked,
    Stalled,
    UnknownRun,
)
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.session import open_session
from tests.actors.fakes import FaultLog
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, new_stream, phase, waiter

ENDED = [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.CONVERGED]


async def leave_unfinished(log: MemoryLog | FaultLog) -> None:
    """Record a run that was opened and parked."""
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        await session.reporter.report(SPEAK)
        runtime.current = GoalStatus(Phase.RUNNING, active=False)


async def finish(log: MemoryLog | FaultLog) -> None:
    """Record a run that converged."""
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        runtime.converge()


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


async def test_cancel_ends_the_run_with_who_and_why_on_the_record(autojump_clock: MockClock) -> None:
    """S7: what the runtime had begun is closed first; `wait` raises RunCancelled; resuming finds a finished run."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.closing = (SPEAK,)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        async with waiter(session) as outcome:
            terminal = await session.cancel(principal="ada", reason="wrong ledger")
        assert (terminal.principal, terminal.err, terminal.error_class) == (
            "ada",
            "wrong ledger",
            "cancelled",
        )
        (caught,) = outcome
        assert isinstance(caught, RunCancelled)
        assert (caught.reason, caught.error_class) == ("wrong ledger", "cancelled")
        assert await session.cancel(principal="bob", reason="too late") == terminal
    assert runtime.stops == [FaultClass.CANCELLED]
    assert await kinds(log) == [Kind.SESSION_STARTED, Kind.ASSISTANT, Kind.GOAL_PHASE, Kind.STALLED]


async def test_who_waits_while_a_run_is_being_cancelled_is_told_cancelled_however_long_that_takes(
    autojump_clock: MockClock,
) -> None:
    """The watcher sees a goal that nothing drives any more long before its terminal event stands."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.stop_hold = trio.Event()
    async with open_session(log, MemoryBus(), id=RUN) as session, trio.open_nursery() as nursery:
        await session.submit(runtime, SPEC)
        async with waiter(session) as outcome:
            nursery.start_soon(lambda: session.cancel(principal="ada", reason="enough"))
            await trio.sleep(1)
            assert outcome == []
            runtime.stop_hold.set()
        assert [type(error) for error in outcome] == [RunCancelled]


async def test_cancel_answers_what_a_runtime_or_a_crash_left_open(autojump_clock: MockClock) -> None:
    """S9: driven by a runtime that closes nothing, or by nobody: every tool call has its result before the run ends."""
    call = Event(Kind.TOOL_CALL, turn=1, tool="pay", tool_use_id="t1", input="{}")
    turn = Event(Kind.TURN_STARTED, turn=1)
    for driven in (True, False):
        log, runtime = MemoryLog(), FakeRuntime()
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            await session.reporter.report(turn, Event(Kind.ASSISTANT, turn=1), call)
            if not driven:
                runtime.current = GoalStatus(Phase.RUNNING, active=False)
            else:
                await session.cancel(principal="ada", reason="enough")
        if not driven:
            async with open_session(log, MemoryBus(), id=RUN) as session:
                await session.cancel(principal="ada", reason="enough")
        events = await history(log, RUN)
        (result,) = [event for event in events if event.kind == Kind.TOOL_RESULT]
        assert (result.tool_use_id, result.is_error) == ("t1", True)
        assert events[-1].kind == Kind.STALLED


async def test_a_cancel_before_the_run_is_opened_is_refused(autojump_clock: MockClock) -> None:
    """There is no run to end, and none comes to be."""
    log = MemoryLog()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        with pytest.raises(RuntimeError):
            await session.cancel(principal="ada", reason="why not")
    assert await log.list() == ()


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
            session._core.release("let go")
            session._core.attach(runtime, GoalKey(RUN))
            session._core.watch()
            await trio.sleep(1)
            assert outcome == []
            runtime.converge()
        assert outcome == ["all settled"]
