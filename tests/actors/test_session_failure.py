"""A session whose record cannot be extended, or whose task fails, stops at that point and can be resumed (S6, E2)."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.codec import encode
from affidavit.actors.errors import LogClosed, LogError, LogFull, LogStateUnknown, SessionFailed, WriterFenced
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.session import open_session
from tests.actors.fakes import Fault, FaultLog
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, phase, waiter

START = [Kind.SESSION_STARTED]


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name)
async def test_a_failed_append_stops_the_session_and_the_run_can_be_resumed(
    autojump_clock: MockClock, fault: Fault
) -> None:
    """S6: reporter, waiters and block all hear of it; nothing is recorded after it; the next owner finds a dense stream."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    runtime.closing = (SPEAK,)
    reported: list[BaseException] = []
    outcome: list[str | Exception] = []
    with pytest.raises(SessionFailed) as caught:
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            log.fail_next(fault)
            async with waiter(session) as outcome:
                try:
                    await session.reporter.report(SPEAK)
                except LogError as error:
                    reported.append(error)
                with trio.CancelScope(shield=True), pytest.raises(LogError):
                    await session.reporter.report(SPEAK)
                await trio.sleep_forever()
    assert caught.value.__cause__ is reported[0]
    assert [(type(error), getattr(error, "__cause__", None)) for error in outcome] == [
        (SessionFailed, reported[0])
    ]
    log.reopen()
    written = [Kind.ASSISTANT] if fault is Fault.WRITTEN else []
    assert await kinds(log) == [*START, *written]
    async with open_session(log, MemoryBus(), id=RUN) as session:
        again = FakeRuntime()
        await session.resume(again, GoalKey(RUN))
        again.converge()
        assert await session.wait() == "all settled"
    assert await kinds(log) == [*START, *written, Kind.GOAL_PHASE, Kind.CONVERGED]


async def test_a_failed_append_stops_a_block_that_waits_at_its_end(autojump_clock: MockClock) -> None:
    """Leaving normally and waiting for the run, the block ends with SessionFailed, and the runtime is told to stop."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    async with trio.open_nursery() as nursery:
        with pytest.raises(SessionFailed) as caught:
            async with open_session(log, MemoryBus(), id=RUN) as session:
                await session.submit(runtime, SPEC)
                log.fail_next(Fault.FULL)

                @nursery.start_soon
                async def report_later() -> None:
                    await trio.sleep(1)
                    with pytest.raises(LogFull):
                        await session.reporter.report(SPEAK)

    assert isinstance(caught.value.__cause__, LogFull)
    assert set(runtime.stops) == {"interrupted"}


async def test_the_append_of_the_end_may_fail_as_any_other(autojump_clock: MockClock) -> None:
    """The watcher's own append stops the session too; the run has no terminal event and gets it on resume, once."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    with pytest.raises(SessionFailed):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            log.fail_next(Fault.LOCKED)
            runtime.converge()
    assert await kinds(log) == START
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.resume(runtime, GoalKey(RUN))
        runtime.converge()
    assert await kinds(log) == [*START, Kind.GOAL_PHASE, Kind.CONVERGED]


async def test_a_submit_that_cannot_be_recorded_raises_the_logs_error(autojump_clock: MockClock) -> None:
    """The runtime is never asked, nothing was written, and the id is free for another attempt."""
    log, runtime = FaultLog(MemoryLog(), at={1}), FakeRuntime()
    with pytest.raises(LogFull):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
    assert runtime.reporter is None
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        runtime.converge()


async def test_a_submit_whose_runtime_and_record_both_fail_raises_the_runtimes_error(
    autojump_clock: MockClock,
) -> None:
    """The first cause is what the caller hears, and the run can be resumed."""
    log, runtime = FaultLog(MemoryLog(), at={2}), FakeRuntime()
    runtime.refusal = LookupError("no such model")
    with pytest.raises(LookupError):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
    assert await kinds(log) == START


async def test_another_writer_fences_the_session(autojump_clock: MockClock) -> None:
    """When another writer has moved the tip, the session stops with WriterFenced and writes no more."""
    log, runtime = MemoryLog(), FakeRuntime()
    with pytest.raises(SessionFailed) as caught:
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            await log.append([Entry(RUN, 1, (encode(SPEAK, stream=RUN, seq=2, time=0),))])
            with trio.CancelScope(shield=True):
                with pytest.raises(WriterFenced):
                    await session.reporter.report(SPEAK)
                with pytest.raises(LogClosed):
                    await session.reporter.report(phase(Phase.CONVERGED))
            await trio.sleep_forever()
    assert isinstance(caught.value.__cause__, WriterFenced)
    assert await kinds(log) == [*START, Kind.ASSISTANT]


async def test_a_runtime_whose_status_fails_stops_the_session(autojump_clock: MockClock) -> None:
    """What drives the goal is broken: SessionFailed with its error as the cause, the run resumable."""
    log, runtime = MemoryLog(), FakeRuntime()
    with pytest.raises(SessionFailed, match="broken") as caught:
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            runtime.status_failure = OSError("broken")
    assert caught.value.__cause__ is runtime.status_failure
    assert await kinds(log) == START


async def test_a_task_of_the_session_that_fails_is_a_session_failure(autojump_clock: MockClock) -> None:
    """A clock that raises takes the floor down; the caller gets SessionFailed with the group as its cause."""

    class BrokenClock:
        now_ns = SystemClock().now_ns

        async def sleep(self, seconds: float) -> None:
            await trio.sleep(seconds)
            raise OSError("no time")

    with pytest.raises(SessionFailed) as caught:
        async with (
            open_session(MemoryLog(), MemoryBus(), id=RUN, clock=BrokenClock()) as session,
            session.subscribe(),
        ):
            await trio.sleep_forever()
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert "no time" in repr(caught.value.__cause__.exceptions)


async def test_the_callers_exception_wins_over_a_failure_of_the_session(autojump_clock: MockClock) -> None:
    """When both happen, what the caller raised leaves, as itself."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    with pytest.raises(ZeroDivisionError):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            log.fail_next(Fault.LOST)
            try:
                await session.reporter.report(SPEAK)
            except LogStateUnknown:
                raise ZeroDivisionError from None


async def test_wait_after_the_terminal_event_answers_even_if_the_session_fails_later(
    autojump_clock: MockClock,
) -> None:
    """What stands on the record is the outcome, whatever happens to the session afterwards."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    runtime.current = GoalStatus(Phase.RUNNING)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(phase(Phase.CONVERGED, "done"))
        log.closed = True
        assert await session.wait() == "done"
