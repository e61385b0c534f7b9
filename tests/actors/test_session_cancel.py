"""A stop always stops, and who asked and why is on the record (S7)."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import (
    RunCancelled,
)
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.session import open_session
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, waiter

ENDED = [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.CONVERGED]


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
