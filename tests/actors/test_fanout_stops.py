"""How a fan-out stops: cut at every append and taken up again, parked, cancelled as a whole or one child alone."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from affidavit.actors.delegation import AgentProfile, SpawnTool
from affidavit.actors.errors import RunCancelled, UnknownGoal
from affidavit.actors.events import FaultClass, Kind, Trust
from affidavit.actors.fanout import FanoutState
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ToolCall
from affidavit.actors.projection import project
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.fanout_kit import CastModel, fanout_config, spawns
from tests.actors.mission_kit import (
    DONE,
    GOAL,
    FakeTool,
    KeptLog,
    calls,
    ended,
    park_when,
    repeat,
    run_to_end,
    session_and_runtime,
)

ROOT = GOAL.objective
PARTS = {
    ROOT: (spawns("one", "two"), DONE),
    "one": (calls("note"), spawns("below"), ModelReply("one is done")),
    "two": (calls("note"), ModelReply("two is done")),
}


class Held:
    """Holds a goal before its turn number `position` until it is let go."""

    def __init__(self, objective: str, position: int = 0) -> None:
        self.reached = trio.Event()
        self._place = (objective, position)
        self._let_go = trio.Event()

    async def __call__(self, objective: str, position: int) -> None:
        """Wait where this goal is to wait."""
        await trio.lowlevel.checkpoint()
        if (objective, position) == self._place:
            self.reached.set()
            await self._let_go.wait()

    def let_go(self) -> None:
        """Let it go on."""
        self._let_go.set()


async def test_g4_cut_at_any_append_a_fan_out_is_taken_up_again_and_nothing_done_is_done_twice() -> None:
    """Whichever append was the last before a crash, the resumed run ends the same, and no completed action runs again (G4)."""
    log = KeptLog()
    whole = await run_to_end(log, fanout_config(PARTS, FakeTool("note", repeat)))
    assert whole.answer == DONE.text
    cuts = len(log.appends)
    for count in range(1, cuts):
        cut = await log.cut(count)
        note = FakeTool("note", repeat)
        before = [row for entries in log.appends[:count] for entry in entries for row in entry.rows]
        run = await run_to_end(cut, fanout_config(PARTS, note), resume=True)
        assert run.answer == DONE.text
        children = project(run.events).fanout
        assert sorted(child.objective for child in children) == ["below", "one", "two"]
        done_before = [
            event
            for event in run.events[: len(before)]
            if event.kind == Kind.ACTION_COMPLETED and event.action == "note"
        ]
        begun_before = [
            event
            for event in run.events[: len(before)]
            if event.kind == Kind.ACTION_ADMITTED and event.action == "note"
        ]
        # Interrupted ones are reported to the model and not repeated, since `note` is not idempotent.
        assert note.runs == 2 - len(begun_before)
        assert len(done_before) <= len(begun_before)


async def test_parked_in_the_middle_children_stay_open_and_go_on_when_resumed() -> None:
    """Leaving the session writes no end of a child; resumed, each goes on where it was."""
    held = Held("two", 1)
    log = MemoryLog()
    parked = await park_when(log, fanout_config(PARTS, FakeTool("note", repeat), before=held), held.reached)
    assert [child.objective for child in project(parked.events).fanout if child.state is FanoutState.RUNNING]
    assert parked.of(Kind.STALLED, Kind.CONVERGED) == []
    run = await run_to_end(log, fanout_config(PARTS, FakeTool("note", repeat)), resume=True)
    assert run.answer == DONE.text
    assert {child.state for child in project(run.events).fanout} == {FanoutState.DONE}


async def test_g6_a_cancelled_run_closes_its_children_below_first_and_every_open_call() -> None:
    """Cancelled in the middle: each child folds back as cancelled, the deepest first, before the run's own end (G6)."""
    held = Held("below")
    log = MemoryLog()
    async with session_and_runtime(log, fanout_config(PARTS, FakeTool("note", repeat), before=held)) as (
        session,
        runtime,
    ):
        await session.submit(runtime, GOAL)
        await held.reached.wait()
        await trio.testing.wait_all_tasks_blocked()
        await session.cancel(principal="ada", reason="enough")
        with pytest.raises(RunCancelled, match="enough"):
            await session.wait()
        await session.seal()
    run = await ended(log, "", "")
    folded = run.of(Kind.CHILD_COMPLETED)
    objectives = {child.id: child.objective for child in project(run.events).fanout}
    order = [objectives[event.child] for event in folded]
    assert order.index("below") < order.index("one")
    (stalled,) = run.of(Kind.STALLED)
    assert stalled.seq > max(event.seq for event in folded)
    states = {child.objective: child.state for child in project(run.events).fanout}
    assert states == {"one": FanoutState.FAILED, "two": FanoutState.DONE, "below": FanoutState.FAILED}
    assert stalled.principal == "ada"


async def test_a_hundred_children_are_cancelled_in_the_middle_and_leave_nothing_open() -> None:
    """Half of them at a tool and half at the model: no task is left, every call is answered, every child has folded back."""
    names = tuple(f"part {number}" for number in range(100))
    busy, all_busy = 0, trio.Event()

    async def wait_for_ever() -> None:
        nonlocal busy
        busy += 1
        if busy == len(names):
            all_busy.set()
        await trio.sleep_forever()

    async def before(objective: str, position: int) -> None:
        await trio.lowlevel.checkpoint()
        if objective in names[::2]:
            await wait_for_ever()

    async def note(arguments: object) -> str:
        await wait_for_ever()
        return "never"

    parts = {ROOT: (spawns(*names), DONE), **{name: (calls("note"), DONE) for name in names[1::2]}}
    log = MemoryLog()
    config = fanout_config(parts, FakeTool("note", note), before=before, max_children=100)
    tasks = trio.lowlevel.current_statistics().tasks_living
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GOAL)
        await all_busy.wait()
        await session.cancel(principal="ada", reason="enough")
        with pytest.raises(RunCancelled):
            await session.wait()
        await session.seal()
    await trio.testing.wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    run = await ended(log, "", "")
    assert {child.state for child in project(run.events).fanout} == {FanoutState.FAILED}
    assert (run.conversation.pending, run.conversation.book.open_actions) == ({}, {})
    assert all(child.pending == {} for child in run.conversation.goals.values())


async def test_one_child_alone_is_cancelled_and_the_run_goes_on() -> None:
    """A child that is ended, with those below it, folds back as cancelled; its sibling and its parent are not disturbed."""
    held = Held("below")
    log = MemoryLog()
    async with session_and_runtime(log, fanout_config(PARTS, FakeTool("note", repeat), before=held)) as (
        session,
        runtime,
    ):
        await session.submit(runtime, GOAL)
        await held.reached.wait()
        (one,) = [child for child in session.projection.fanout if child.objective == "one"]
        completed = await session.cancel_goal(one.id, principal="ada", reason="not needed")
        assert (completed.kind, completed.child, completed.is_error) == (Kind.CHILD_COMPLETED, one.id, True)
        again = await session.cancel_goal(one.id, principal="bob", reason="again")
        assert again.seq == completed.seq
        with pytest.raises(UnknownGoal, match="nobody"):
            await session.cancel_goal("nobody", principal="ada", reason="?")
        assert await session.wait() == DONE.text
        await session.seal()
    run = await ended(log, DONE.text, "")
    phase = next(e for e in run.of(Kind.GOAL_PHASE) if e.goal == one.id and e.error_class)
    assert (phase.principal, phase.error_class) == ("ada", FaultClass.CANCELLED)
    begun = [event for event in run.events if event.kind == Kind.ACTION_COMPLETED and event.error_class]
    assert {event.error_class for event in begun} == {FaultClass.CANCELLED}
    states = {child.objective: child.state for child in project(run.events).fanout}
    assert states == {"one": FanoutState.FAILED, "two": FanoutState.DONE, "below": FanoutState.FAILED}


async def test_a_child_of_a_run_that_nobody_drives_is_cancelled_on_its_record() -> None:
    """A parked run's child is closed by whoever holds the run; resumed, the parent is shown that it failed."""
    held = Held("two", 1)
    log = MemoryLog()
    note = FakeTool("note", repeat)
    parked = await park_when(log, fanout_config(PARTS, note, before=held), held.reached)
    (two,) = [child for child in project(parked.events).fanout if child.objective == "two"]
    async with session_and_runtime(log, fanout_config(PARTS, note)) as (session, _):
        await session.attend()
        completed = await session.cancel_goal(two.id, principal="ada", reason="not needed")
    assert completed.child == two.id
    run = await run_to_end(log, fanout_config(PARTS, note), resume=True)
    assert run.answer == DONE.text
    assert any(result.endswith("failed: not needed") for result in run.results)


async def test_a_goal_that_fails_takes_its_children_with_it() -> None:
    """A parent whose tool call breaks its mission ends its children as cancelled, and leaves no task behind."""
    held = Held("one")
    log = MemoryLog()

    class Broken(FakeTool):
        """A tool that cannot say how far it is trusted once it is asked for, which no tool may do to a mission."""

        is_in_use = False

        @property
        def trust(self) -> str:
            """Fail once it is in use."""
            if self.is_in_use:
                raise ZeroDivisionError("by the test")
            return Trust.TRUSTED

    broken = Broken("broken")
    turn = ModelReply("", (*spawns("one").tool_calls, ToolCall("t9", "broken", "{}")), "tool_use")
    config = fanout_config({ROOT: (turn, DONE)}, broken, before=held)
    broken.is_in_use = True
    run = await run_to_end(log, config)
    (child,) = project(run.events).fanout
    assert (child.state, child.result) == (FanoutState.FAILED, "the goal that it worked for ended before it")
    assert run.error_class == FaultClass.TERMINAL


async def test_a_child_whose_agent_profile_is_gone_folds_back_as_failed() -> None:
    """Resumed with changes accepted and without the profile, the child cannot be driven; its parent is told why."""
    held = Held("look")
    log = MemoryLog()
    parts = {ROOT: (spawns("look", agent="reader"), DONE)}
    await park_when(log, fanout_config(parts, before=held, profiles=(AgentProfile("reader"),)), held.reached)
    config = MissionConfig(CastModel(parts), Toolbox((SpawnTool(),)))
    run = await run_to_end(log, config, resume=True, accept_changes=True)
    assert run.answer == DONE.text
    (child,) = project(run.events).fanout
    assert (child.state, child.result) == (FanoutState.FAILED, "there is no agent 'reader' any more")
