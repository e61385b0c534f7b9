"""Children that a runtime other than ours reports: the tree, each child's record, and what becomes of those that a run leaves."""

# what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.crew import Stop
from affidavit.actors.errors import GoalFinished, UnknownGoal
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.fanout import FanoutChild, FanoutState, RecordState
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.projection import project
from affidavit.actors.reporter import UnhurriedReporter
from affidavit.actors.sealer import Sealer
from affidavit.actors.session import Session, open_session
from affidavit.actors.session_ends import CANCEL_GRACE
from tests.actors.mission_kit import check_record
from tests.actors.runtimes import RUN, SPEC, FakeRuntime, phase
from tests.actors.sealing_kit import record


def spawned(child: str, above: str = "", **more: str) -> Event:
    """Return the beginning of a goal."""
    return Event(Kind.CHILD_SPAWNED, goal=above, child=child, text=f"do {child}", **more)  # type: ignore[arg-type]


def folded_back(child: str, above: str = "", *, is_error: bool = False) -> Event:
    """Return its end."""
    return Event(Kind.CHILD_COMPLETED, goal=above, child=child, result=f"{child} says so", is_error=is_error)


def turn(goal: str, number: int) -> tuple[Event, ...]:
    """Return a whole turn of a goal, with an action and a refusal."""
    return (
        Event(Kind.TURN_STARTED, goal=goal, turn=number),
        Event(Kind.ASSISTANT, goal=goal, turn=number, text="on it"),
        Event(Kind.TURN_COMPLETED, goal=goal, turn=number, usage=Usage(10, 1)),
    )


def acts(goal: str, call: int) -> tuple[Event, ...]:
    """Return an action that a goal took, and one that it was refused."""
    who = {"goal": goal, "turn": 1}
    return (
        Event(Kind.ACTION_ADMITTED, action="look", call=call, trust="untrusted", **who),  # type: ignore[arg-type]
        Event(Kind.ACTION_COMPLETED, action="look", call=call, **who),  # type: ignore[arg-type]
        Event(Kind.ACTION_REJECTED, action="pay", call=call + 1, trust="trusted", **who),  # type: ignore[arg-type]
    )


def tree(session: Session) -> dict[str, FanoutChild]:
    """Return the children by id."""
    return {child.id: child for child in session.projection.fanout}


async def test_the_tree_says_of_each_child_what_was_reported_of_it(autojump_clock: MockClock) -> None:
    """Parent, objective, turns, trust, what was blocked, result: by goal id; a child of the root is one of the run's."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        report = session.reporter.report
        await report(spawned("a"), spawned("b", RUN))
        await report(*turn("a", 1), *acts("a", 1), *turn("a", 2))
        await report(spawned("c", "a"), *turn("c", 1))
        await report(folded_back("c", "a", is_error=True), folded_back("a"))
        await report(folded_back("a", is_error=True), spawned("a"), *turn("unheard-of", 1))
        await report(folded_back("b"))
        runtime.converge()
        await session.wait()
        found = tree(session)
    assert list(found) == ["a", "b", "c"]
    assert [child.parent for child in found.values()] == [RUN, RUN, "a"]
    assert [child.turns for child in found.values()] == [2, 0, 1]
    assert [child.state for child in found.values()] == [
        FanoutState.DONE,
        FanoutState.DONE,
        FanoutState.FAILED,
    ]
    assert (found["a"].objective, found["a"].result) == ("do a", "a says so")
    assert (found["a"].trust, found["a"].blocked) == ("trusted", 1)
    events = await history(log, RUN)
    assert project(events).fanout == tuple(found.values())
    assert (project(events).turns, project(events).usage) == (4, Usage(40, 4))


async def test_a_child_is_sealed_once_a_seal_reaches_its_end(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """Not before: one that still works stays recording through a seal of its run, and is sealed by the next."""
    runtime = FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        report = session.reporter.report
        await report(spawned("a"), spawned("b"), *turn("a", 1), folded_back("a"), *turn("b", 1))
        assert {child.seal for child in session.projection.fanout} == {RecordState.RECORDING}
        await session.seal()
        assert (tree(session)["a"].seal, tree(session)["b"].seal) == (
            RecordState.VERIFIED,
            RecordState.RECORDING,
        )
        await report(folded_back("b"))
        assert tree(session)["b"].seal is RecordState.RECORDING
        runtime.converge()
        await session.wait()
    assert {child.seal for child in session.projection.fanout} == {RecordState.VERIFIED}
    assert (await record(log)).complete is True


@pytest.mark.parametrize("ending", ["converged", "stalled", "polled", "cancelled"])
async def test_children_that_a_run_leaves_at_work_fold_back_before_it_ends(
    autojump_clock: MockClock, ending: str
) -> None:
    """Inner ones first, as failed; one that no tool call asked for answers none, one that a call asked for answers it."""
    log, runtime = MemoryLog(), FakeRuntime()
    call = Event(Kind.TOOL_CALL, turn=1, tool="spawn", tool_use_id="t1", input="{}")
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        report = session.reporter.report
        await report(
            Event(Kind.TURN_STARTED, turn=1),
            Event(Kind.ASSISTANT, turn=1),
            call,
            spawned("asked-for", tool_use_id="t1"),
            spawned("by-itself"),
            spawned("below", "by-itself"),
        )
        if ending == "polled":
            runtime.converge()
        elif ending == "cancelled":
            await session.cancel(principal="ada", reason="enough")
        else:
            await report(phase(Phase(ending)))
    events = await history(log, RUN)
    check_record(events)
    ends = [event.child for event in events if event.kind == Kind.CHILD_COMPLETED]
    assert sorted(ends) == ["asked-for", "below", "by-itself"]
    assert ends.index("below") < ends.index("by-itself")
    (answer,) = [event for event in events if event.kind == Kind.TOOL_RESULT]
    assert (answer.tool_use_id, answer.is_error) == ("t1", True)
    assert {child.state for child in session.projection.fanout} == {FanoutState.FAILED}


async def test_one_child_of_a_run_that_nobody_drives_can_be_ended(autojump_clock: MockClock) -> None:
    """With those below it, and by name; one that no tool call asked for leaves no answer behind."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(spawned("a"), spawned("b"), spawned("below", "a"))
        runtime.current = GoalStatus(Phase.RUNNING, active=False)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        with pytest.raises(UnknownGoal):
            await session.cancel_goal("c", principal="ada", reason="enough")
        end = await session.cancel_goal("a", principal="ada", reason="enough")
        assert (end.child, end.is_error, end.result) == ("a", True, "enough")
        assert tree(session)["b"].state is FanoutState.RUNNING
    events = await history(log, RUN)
    check_record(events)
    assert [event.child for event in events if event.kind == Kind.CHILD_COMPLETED] == ["below", "a"]
    assert [event for event in events if event.kind == Kind.TOOL_RESULT] == []


async def test_one_child_of_a_runtime_that_cannot_end_it_is_left_alone(autojump_clock: MockClock) -> None:
    """While it drives the run: the caller is told, and nothing is recorded of what goes on."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(spawned("a"))
        with pytest.raises(RuntimeError, match="cannot end a part of it"):
            await session.cancel_goal("a", principal="ada", reason="enough")
        assert tree(session)["a"].state is FanoutState.RUNNING
        await session.reporter.report(folded_back("a"))
        runtime.converge()
        await session.wait()


class Unwilling(FakeRuntime):  # type: ignore[misc]  # the fake, and one method more
    """A runtime that offers to end a child, and does not."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self._way = way

    async def cancel_child(self, key: GoalKey, child: str, stop: Stop) -> bool:
        """Know no such child, hang, or fail."""
        await trio.lowlevel.checkpoint()
        if self._way == "hangs":
            await trio.sleep_forever()
        if self._way == "fails":
            raise OSError("stuck")
        return self._way == "claims"


@pytest.mark.parametrize("way", ["denies", "claims", "hangs", "fails"])
async def test_a_child_that_its_runtime_does_not_end_is_ended_without_it(
    autojump_clock: MockClock, way: str
) -> None:
    """Within the grace, with those below it; what is still reported on them is refused, and the run goes on."""
    log, runtime = MemoryLog(), Unwilling(way)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        report = session.reporter.report
        await report(spawned("a"), spawned("b"), spawned("below", "a"))
        asked = trio.current_time()
        end = await session.cancel_goal("a", principal="ada", reason="enough")
        assert trio.current_time() - asked < CANCEL_GRACE + 1
        assert (end.child, end.is_error) == ("a", True)
        for late in (
            folded_back("a"),
            Event(Kind.TURN_STARTED, goal="below", turn=1),
            spawned("more", "below"),
        ):
            with pytest.raises(GoalFinished, match="was ended"):
                await report(late)
        assert isinstance(session.reporter, UnhurriedReporter)
        with pytest.raises(GoalFinished, match="was ended"):
            session.reporter.report_behind(Event(Kind.ASSISTANT, goal="below", text="still here"))
        await report(folded_back("b"))
        runtime.converge()
        await session.wait()
    check_record(await history(log, RUN))
    assert {child.id: child.state for child in session.projection.fanout} == {
        "a": FanoutState.FAILED,
        "b": FanoutState.DONE,
        "below": FanoutState.FAILED,
    }


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_child_of_a_goal_that_nobody_began_is_left_running_by_no_ended_run(
    autojump_clock: MockClock,
    is_cancelled: bool,
) -> None:
    """It stands in the tree, so it folds back when the run ends; a call of the run with the id that it serves is not its own."""
    log, runtime = MemoryLog(), Unwilling("claims")
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        report = session.reporter.report
        await report(
            Event(Kind.TURN_STARTED, turn=1),
            Event(Kind.ASSISTANT, turn=1),
            Event(Kind.TOOL_CALL, turn=1, tool="pay", tool_use_id="t1", input="{}"),
        )
        await report(spawned("lost", "nobody", tool_use_id="t1"), spawned("itself", "itself"))
        if is_cancelled:
            assert (await session.cancel_goal("lost", principal="ada", reason="enough")).child == "lost"
            await session.cancel(principal="ada", reason="enough")
        else:
            runtime.converge()
            await session.wait()
    events = await history(log, RUN)
    check_record(events)
    assert {child.state for child in session.projection.fanout} == {FanoutState.FAILED}
    (answer,) = [event for event in events if event.kind == Kind.TOOL_RESULT]
    assert answer.result.startswith("cancelled: ")


async def test_what_is_below_a_child_that_was_let_fold_back_before_it_ends_with_the_run(
    autojump_clock: MockClock,
) -> None:
    """A runtime may end a goal and forget those below it and its calls: none of them is left open by an ended run."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        call = Event(Kind.TOOL_CALL, goal="a", turn=1, tool="pay", tool_use_id="t1", input="{}")
        begun = (Event(Kind.TURN_STARTED, goal="a", turn=1), Event(Kind.ASSISTANT, goal="a", turn=1), call)
        await session.reporter.report(spawned("a"), *begun, spawned("below", "a"), folded_back("a"))
        runtime.converge()
        await session.wait()
    check_record(await history(log, RUN))
    states = {child.id: child.state for child in session.projection.fanout}
    assert states == {"a": FanoutState.DONE, "below": FanoutState.FAILED}
