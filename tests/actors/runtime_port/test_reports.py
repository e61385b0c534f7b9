"""What a session makes of a runtime that reports wrongly, late, or not at all: the record stays well formed."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import RunFinished, SessionFailed, Stalled
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Row
from affidavit.actors.projection import Projection, project, reduce
from affidavit.actors.reporter import Reporter
from affidavit.actors.sealer import Sealer
from affidavit.actors.session import open_session
from tests.actors.fakes import FaultLog
from tests.actors.runtime_port.open_calls import CALLS, CLOSED, OPENED, closed_properly
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, kinds_of_run, phase
from tests.actors.sealing_kit import record


@pytest.mark.parametrize("reports", [True, False], ids=["reported", "polled"])
async def test_an_end_closes_what_its_runtime_left_open_in_the_same_append(
    autojump_clock: MockClock, *, reports: bool
) -> None:
    """Whether it says so itself or only its status shows it: nothing follows a terminal event, so nothing may be open there."""
    log, runtime = FaultLog(MemoryLog()), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(*CALLS)
        before = log.appends
        if reports:
            recorded = await session.reporter.report(phase(Phase.CONVERGED, "all settled"))
            assert [event.kind for event in recorded] == [*CLOSED, Kind.GOAL_PHASE, Kind.CONVERGED]
        else:
            runtime.converge()
        assert await session.wait() == "all settled"
        assert log.appends == before + 1
    assert await kinds(log) == [*OPENED, *CLOSED, Kind.GOAL_PHASE, Kind.CONVERGED]
    await closed_properly(log)


async def test_what_an_end_closes_itself_is_not_closed_again(autojump_clock: MockClock) -> None:
    """The results may come with the end, and in any order; what is left is answered before the phase."""
    log, runtime = MemoryLog(), FakeRuntime()
    one = Event(Kind.TOOL_RESULT, turn=1, tool="pay", tool_use_id="t2", result="paid")
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(*CALLS)
        recorded = await session.reporter.report(one, phase(Phase.STALLED, "no more"))
    assert [(event.kind, event.tool_use_id) for event in recorded] == [
        (Kind.TOOL_RESULT, "t2"),
        (Kind.ACTION_COMPLETED, "t1"),
        (Kind.TOOL_RESULT, "t1"),
        (Kind.TURN_COMPLETED, ""),
        (Kind.GOAL_PHASE, ""),
        (Kind.STALLED, ""),
    ]
    await closed_properly(log)


class BusyLog(FaultLog):
    """Lets something else happen once, after all rows were read and before whoever asked for them has them."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        """Read, and let it happen."""
        rows = await super().read(stream, after_seq, limit)
        if self.meanwhile is not None and not rows:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return rows


async def test_an_end_that_races_with_a_report_still_closes_everything(autojump_clock: MockClock) -> None:
    """While the log is read to say what is open, more may be recorded; then it is read again."""
    log, runtime = BusyLog(MemoryLog()), FakeRuntime()
    late = Event(Kind.TOOL_CALL, turn=1, tool="pay", tool_use_id="t3", input="{}")
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(*CALLS)
        log.meanwhile = partial(session.reporter.report, late)
        await session.reporter.report(phase(Phase.CONVERGED))
    events = await closed_properly(log)
    answered = [event.tool_use_id for event in events if event.kind == Kind.TOOL_RESULT]
    assert answered == ["t1", "t2", "t3"]


async def test_a_submit_that_fails_half_way_leaves_nothing_open(autojump_clock: MockClock) -> None:
    """The caller gets the runtime's own error, the run its stall, and every call its answer."""

    class Failing(FakeRuntime):  # type: ignore[misc]  # the fake, but for one method
        async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
            await reporter.report(*CALLS)
            raise OSError("no such model")

    log = MemoryLog()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        with pytest.raises(OSError, match="no such model"):
            await session.submit(Failing(), SPEC)
        with pytest.raises(Stalled, match="the goal could not be started: no such model"):
            await session.wait()
    assert (await closed_properly(log))[-1].kind == Kind.STALLED


async def test_a_runtime_whose_status_breaks_in_the_middle_stops_its_session_alone(
    autojump_clock: MockClock,
) -> None:
    """Its error is the cause, as itself; the run stays resumable, and what it had begun is closed by whoever ends it."""
    log, runtime = MemoryLog(), FakeRuntime()
    runtime.status_failure = OSError("broken")
    with pytest.raises(SessionFailed) as caught:
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            await session.reporter.report(*CALLS)
    assert caught.value.__cause__ is runtime.status_failure
    assert await kinds(log) == OPENED
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.cancel(principal="ada", reason="it is broken")
    await closed_properly(log)


class Listening(FakeRuntime):  # type: ignore[misc]  # the fake, and one method more
    """Hears, and fails at it."""

    def hear(self, key: GoalKey, events: tuple[Event, ...]) -> None:
        """Fail at the model's words."""
        if any(event.kind == Kind.ASSISTANT for event in events):
            raise OSError("lost my place")


async def test_a_runtime_that_fails_at_what_it_hears_harms_nobody_who_records(
    autojump_clock: MockClock,
) -> None:
    """What was recorded is returned to whoever reported it; the session stops, since its driver has lost its place."""
    log, runtime = MemoryLog(), Listening()
    with pytest.raises(SessionFailed, match="lost my place"):
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, SPEC)
            (spoken,) = await session.reporter.report(SPEAK)
            assert spoken.seq == 2
            await trio.sleep_forever()
    assert await kinds(log) == [Kind.SESSION_STARTED, Kind.ASSISTANT]


class Telling(FakeRuntime):  # type: ignore[misc]  # the fake, and one method more
    """Tells of changes when the test says so, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: Callable[[], None] = lambda: None
        self.asked = 0

    def tell(self, key: GoalKey, changed: Callable[[], None]) -> None:
        """Keep it."""
        self.changed = changed

    async def status(self, key: GoalKey) -> GoalStatus:
        """Count, and answer as the fake does."""
        self.asked += 1
        return await super().status(key)


async def test_a_runtime_that_tells_is_not_asked_before_and_may_tell_too_often(
    autojump_clock: MockClock,
) -> None:
    """Before the end, twice at it, and after it: one terminal event."""
    log, runtime = MemoryLog(), Telling()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await trio.sleep(10)
        assert runtime.asked == 0
        runtime.changed()
        await trio.sleep(1)
        assert not session.finished
        runtime.converge()
        runtime.changed()
        runtime.changed()
        assert await session.wait() == "all settled"
        runtime.changed()
        await trio.sleep(1)
    assert await kinds(log) == [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.CONVERGED]


async def test_a_terminal_event_of_another_goal_than_the_root_is_refused(autojump_clock: MockClock) -> None:
    """A child that ends does not end the run, whatever its runtime calls it; the root may be named by the run's id."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        with pytest.raises(ValueError, match="speaks of the run, and not of its goal child-1"):
            await session.reporter.report(Event(Kind.CONVERGED, goal="child-1", text="mine"))
        assert not session.finished
        named = Event(Kind.GOAL_PHASE, goal=RUN, detail={"phase": "converged", "message": "done"})
        recorded = await session.reporter.report(Event(Kind.ASSISTANT, goal=RUN, turn=1), named)
        assert [(event.kind, event.goal) for event in recorded] == [
            (Kind.ASSISTANT, ""),
            (Kind.GOAL_PHASE, ""),
            (Kind.CONVERGED, ""),
        ]
        assert await session.wait() == "done"


async def test_reports_out_of_order_are_recorded_as_they_come_and_folded_without_fail(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """The record says what was reported, and no more; status and seal hold for any order."""
    runtime = FakeRuntime()
    odd = (
        Event(Kind.TOOL_RESULT, turn=3, tool="pay", tool_use_id="t9", result="before its call"),
        Event(Kind.TURN_COMPLETED, turn=3),
        Event(Kind.TOOL_CALL, turn=2, tool="pay", tool_use_id="t9", input="no JSON"),
        Event(Kind.TURN_STARTED, turn=1),
        Event(Kind.TOOL_RESULT, turn=1, tool="pay", tool_use_id="t9", result="again"),
        Event(Kind.CHILD_COMPLETED, child="c1", result="before its beginning"),
        Event(Kind.CHILD_SPAWNED, child="c1", text="late"),
        Event(Kind.ACTION_REJECTED, action="pay", call=7, error_class="forbidden"),
        Event("something.else", text="unknown"),
        Event(Kind.GOAL_PHASE, detail={"phase": "running"}),
        Event(Kind.GOAL_PHASE, detail={"phase": "pending"}),
    )
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        for event in odd:
            await session.reporter.report(event)
        runtime.converge()
        assert await session.wait() == "all settled"
    events = await history(log, RUN)
    assert [event.kind for event in events[1 : len(odd) + 1]] == [event.kind for event in odd]
    status = Projection()
    for event in events:
        status = reduce(status, event)
    assert status == project(events)
    assert (status.turns, status.rejected) == (1, 1)
    assert (await record(log)).complete is True


@pytest.mark.parametrize("message", ["x" * 3_000_000, "lone \ud800 surrogate"], ids=["huge", "surrogate"])
async def test_an_answer_that_cannot_be_recorded_as_it_is_does_not_keep_a_run_from_ending(
    autojump_clock: MockClock, message: str
) -> None:
    """Outside text, from a status as from a report, is made valid and short enough, and marked."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        runtime.converge(message)
        answer = await session.wait()
    assert answer[:5] == message[:5]
    events = await history(log, RUN)
    assert [event.kind for event in events] == [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.CONVERGED]
    assert len(events[-1].text.encode()) < 1_000_000
    assert ("cut" in events[1].detail) is (len(message) > 1_000_000)


async def test_a_report_after_the_last_is_refused_even_while_the_run_is_being_sealed(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """Nothing but the life of the record follows a terminal event, however it races with the seal."""
    runtime, refused = FakeRuntime(), 0
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(phase(Phase.CONVERGED))
        while not session.projection.sealed_through:
            with pytest.raises(RunFinished):
                await session.reporter.report(SPEAK)
            refused += 1
            await trio.lowlevel.checkpoint()
    assert refused
    assert (await kinds_of_run(log))[-1] == Kind.CONVERGED
