"""Goals that a goal hands work to: begun through the waist, at work at the same time, folded back into the goal above."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import trio
import trio.testing

from affidavit.actors.delegation import AgentProfile, SpawnTool
from affidavit.actors.errors import ConfigurationError
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.fanout import FanoutState, RecordState
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.models.port import ModelReply, ToolCall
from affidavit.actors.policy.model import Budget, Grant, Policy
from affidavit.actors.projection import project
from tests.actors.fanout_kit import CastModel, fanout_config, spawns
from tests.actors.mission_kit import DONE, GOAL, RUN, FakeTool, calls, repeat, run_to_end

ROOT = GOAL.objective


def kinds(events: tuple[Event, ...], goal: str) -> list[str]:
    """Return the kinds of a goal's own events."""
    return [str(event.kind) for event in events if event.goal == goal]


async def test_a_goal_hands_work_to_others_and_is_shown_what_they_answer() -> None:
    """Two children work, fold back, and their answers are the results of the calls; the record passes L4."""
    config = fanout_config({ROOT: (spawns("count", "sum"), DONE)})
    run = await run_to_end(MemoryLog(), config)
    assert run.answer == DONE.text
    assert run.results == ["done: count", "done: sum"]
    (first, second) = project(run.events).fanout
    assert [child.objective for child in (first, second)] == ["count", "sum"]
    assert {child.parent for child in (first, second)} == {RUN}
    assert first.state is second.state is FanoutState.DONE
    assert (first.turns, first.result, first.trust, first.blocked) == (1, "done: count", "trusted", 0)
    assert first.seal is second.seal is RecordState.VERIFIED


async def test_a_child_begins_in_the_append_that_ends_its_delegation_and_folds_back_in_the_one_that_ends_it() -> (
    None
):
    """{dispatch.end, child.spawned} stand in a row, and so do {goal.phase, child.completed, tool.result, turn.completed}."""
    run = await run_to_end(MemoryLog(), fanout_config({ROOT: (spawns("count"), DONE)}))
    order = [str(event.kind) for event in run.events]
    at = order.index(Kind.CHILD_SPAWNED)
    assert order[at - 2 : at] == [Kind.ACTION_ADMITTED, Kind.ACTION_COMPLETED]
    at = order.index(Kind.CHILD_COMPLETED)
    assert order[at - 1 : at + 3] == [
        Kind.GOAL_PHASE,
        Kind.CHILD_COMPLETED,
        Kind.TOOL_RESULT,
        Kind.TURN_COMPLETED,
    ]
    phase, completed, result = run.events[at - 1 : at + 2]
    child = completed.child
    assert (phase.goal, completed.goal, result.goal) == (child, RUN, "")
    assert kinds(run.events, child) == [
        Kind.GOAL_PHASE,
        Kind.TURN_STARTED,
        Kind.ACTION_ADMITTED,
        Kind.ACTION_COMPLETED,
        Kind.ASSISTANT,
        Kind.TURN_COMPLETED,
        Kind.GOAL_PHASE,
    ]


async def test_the_whole_spec_of_a_child_stands_on_the_record() -> None:
    """child.spawned says what the child is to do, with which tools, for which call."""
    config = fanout_config(
        {ROOT: (spawns("count", tools=["note"], max_steps=3), DONE)}, FakeTool("note", repeat)
    )
    run = await run_to_end(MemoryLog(), config, GoalSpec(ROOT, system="Be exact."))
    (spawned,) = run.of(Kind.CHILD_SPAWNED)
    assert spawned.text == "count"
    assert spawned.tool_use_id == "s1"
    assert GoalSpec.from_detail(spawned.detail["spec"]) == GoalSpec(  # type: ignore[arg-type]
        "count", system="Be exact.", tools=("note",), max_steps=3, name=spawned.child
    )


async def test_children_work_at_the_same_time_and_their_results_are_shown_in_the_order_of_the_calls() -> None:
    """The first child ends last; the model still sees its answer first."""
    second_done = trio.Event()

    async def before(objective: str, position: int) -> None:
        if objective == "first":
            await second_done.wait()
        if objective == ROOT and position == 1:
            assert second_done.is_set()
        if objective == "second":
            second_done.set()
        await trio.lowlevel.checkpoint()

    config = fanout_config({ROOT: (spawns("first", "second"), DONE)}, before=before)
    run = await run_to_end(MemoryLog(), config)
    assert run.results == ["done: second", "done: first"]
    model = config.model
    assert isinstance(model, CastModel)
    shown = [message.text for message in model.requests[ROOT][1].messages if message.role == "tool"]
    assert shown == ["done: first", "done: second"]


async def test_other_tools_of_the_same_turn_run_while_children_work() -> None:
    """A tool called after a delegation does not wait for the child."""
    noted = trio.Event()

    async def note(arguments: object) -> str:
        noted.set()
        return "noted"

    async def before(objective: str, position: int) -> None:
        if objective == "count":
            await noted.wait()

    turn = ModelReply("", (*spawns("count").tool_calls, ToolCall("t9", "note", "{}")), "tool_use")
    run = await run_to_end(
        MemoryLog(), fanout_config({ROOT: (turn, DONE)}, FakeTool("note", note), before=before)
    )
    assert sorted(run.results) == ["done: count", "noted"]
    assert run.answer == DONE.text


async def test_a_child_hands_work_on_as_deep_as_is_allowed() -> None:
    """At depth two a grandchild answers; the one below it is not granted the tool, on the record."""
    parts = {
        ROOT: (spawns("one"), DONE),
        "one": (spawns("two"), ModelReply("one done")),
        "two": (spawns("three"), ModelReply("two done")),
    }
    config = fanout_config(parts, max_depth=2)
    run = await run_to_end(MemoryLog(), config)
    one, two = project(run.events).fanout
    assert (one.parent, two.parent, two.blocked) == (RUN, one.id, 1)
    (refusal,) = run.of(Kind.ACTION_REJECTED)
    assert (refusal.goal, refusal.error_code) == (two.id, "capability_denied")
    model = config.model
    assert isinstance(model, CastModel)
    assert [spec.name for spec in model.requests["one"][0].tools] == ["spawn"]
    assert model.requests["two"][0].tools == ()
    assert run.answer == DONE.text


async def test_a_goal_hands_work_to_no_more_others_than_it_may() -> None:
    """The delegation beyond the limit is refused as over budget, and the model is told."""
    config = fanout_config({ROOT: (spawns("a", "b", "c"), DONE)}, max_children=2)
    run = await run_to_end(MemoryLog(), config)
    assert [child.objective for child in project(run.events).fanout] == ["a", "b"]
    (refusal,) = run.of(Kind.ACTION_REJECTED)
    assert (refusal.error_class, refusal.error_code) == (FaultClass.BUDGET_EXCEEDED, "children")
    assert any(result.startswith("refused: this goal has handed work to 2") for result in run.results)


async def test_g5_a_child_never_has_a_tool_that_its_parent_has_not() -> None:
    """Asked for more than its parent has, a child gets what the parent has (G5)."""
    parts = {ROOT: (spawns("pay", tools=["note", "pay"]), DONE), "pay": (calls("pay"), ModelReply("tried"))}
    pay, note = FakeTool("pay", repeat), FakeTool("note", repeat)
    run = await run_to_end(
        MemoryLog(), fanout_config(parts, pay, note), GoalSpec(ROOT, tools=("note", "spawn"))
    )
    assert pay.runs == 0
    (refusal,) = run.of(Kind.ACTION_REJECTED)
    assert (refusal.action, refusal.error_code) == ("pay", "capability_denied")
    (child,) = project(run.events).fanout
    assert child.blocked == 1


async def test_g5_children_share_one_budget_of_steps() -> None:
    """Ten children at once take no more turns together than the run may (G5)."""
    names = tuple(f"part {number}" for number in range(10))
    policy = Policy(grant=Grant(tools=("spawn",)), budget=Budget(steps=6))
    config = fanout_config({ROOT: (spawns(*names), DONE)}, policy=policy)
    run = await run_to_end(MemoryLog(), config)
    assert sum(event.kind == Kind.TURN_STARTED for event in run.events) == 6
    assert run.error_class == FaultClass.BUDGET_EXCEEDED
    states = [child.state for child in project(run.events).fanout]
    assert states.count(FanoutState.DONE) == 5
    assert states.count(FanoutState.FAILED) == 5


async def test_a_child_that_fails_folds_back_as_an_error_and_the_parent_goes_on() -> None:
    """A child whose model gives no answer shows as failed, with the reason; its parent converges (G6)."""
    run = await run_to_end(
        MemoryLog(), fanout_config({ROOT: (spawns("mute"), DONE), "mute": (ModelReply(""),)})
    )
    (child,) = project(run.events).fanout
    assert (child.state, child.result) == (FanoutState.FAILED, "the model ended its turn without an answer")
    (result,) = run.of(Kind.TOOL_RESULT)
    assert result.is_error
    assert "without an answer" in result.result
    assert run.answer == DONE.text


async def test_a_crash_of_one_child_takes_no_other_down() -> None:
    """A child whose model raises what no model may raise fails alone (E2)."""

    async def before(objective: str, position: int) -> None:
        await trio.lowlevel.checkpoint()
        if objective == "bad":
            raise ZeroDivisionError("by the test")

    run = await run_to_end(MemoryLog(), fanout_config({ROOT: (spawns("bad", "good"), DONE)}, before=before))
    bad, good = project(run.events).fanout
    assert (bad.state, good.state) == (FanoutState.FAILED, FanoutState.DONE)
    assert run.answer == DONE.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{}", "objective"),
        ('{"objective": "  "}', "objective"),
        ('{"objective": 7}', "objective"),
        ("not json", "JSON"),
        ('{"objective": "x", "agent": "nobody"}', "agent"),
        ('{"objective": "x", "max_steps": -1}', "max_steps"),
        ('{"objective": "x", "sudo": true}', "sudo"),
    ],
)
async def test_a_delegation_that_makes_no_sense_is_answered_and_begins_nothing(
    arguments: str, said: str
) -> None:
    """The model is told what is wrong; no child stands on the record."""
    turn = ModelReply("", (ToolCall("s1", "spawn", arguments),), "tool_use")
    run = await run_to_end(MemoryLog(), fanout_config({ROOT: (turn, DONE)}))
    assert run.of(Kind.CHILD_SPAWNED) == []
    (result,) = run.of(Kind.TOOL_RESULT)
    assert result.is_error
    assert said in result.result
    assert run.answer == DONE.text


async def test_an_objective_that_cannot_be_recorded_beside_the_prompt_is_a_failed_call_and_no_failed_run() -> (
    None
):
    """A child is one event with its prompt and its objective; a model that says too much is told so, and goes on."""
    much = replace(GOAL, system="s" * 960_000)
    run = await run_to_end(MemoryLog(), fanout_config({ROOT: (spawns("x" * 60_000, "y"), DONE)}), much)
    assert run.answer == DONE.text
    refused, answered = run.results
    assert "the objective is too long" in refused
    assert answered == "done: y"


async def test_an_agent_profile_gives_a_child_its_prompt_its_tools_and_its_model() -> None:
    """A named agent works with what its profile says, as far as the goal above has it."""
    other = CastModel({"look": (calls("note"), ModelReply("looked"))}, digest=b"other")
    profile = AgentProfile(
        "reader", "reads", system="You read.", tools=("note", "pay"), model=other, max_steps=2
    )
    note = FakeTool("note", repeat)
    config = fanout_config({ROOT: (spawns("look", agent="reader"), DONE)}, note, profiles=(profile,))
    run = await run_to_end(MemoryLog(), config)
    assert run.answer == DONE.text
    (request, _) = other.requests["look"]
    assert request.system == "You read."
    assert [spec.name for spec in request.tools] == ["note"]
    (spawned,) = run.of(Kind.CHILD_SPAWNED)
    spec = GoalSpec.from_detail(spawned.detail["spec"])  # type: ignore[arg-type]
    assert (spec.profile, spec.tools, spec.max_steps) == ("reader", ("note",), 2)
    model = config.model
    assert isinstance(model, CastModel)
    described = json.loads(model.requests[ROOT][0].tools[-1].input_schema)
    assert described["properties"]["agent"]["enum"] == ["reader"]


async def test_a_hundred_children_at_once_finish() -> None:
    """A hundred goals handed out in one turn all fold back, each once, into one sealed record."""
    names = tuple(f"part {number}" for number in range(100))
    config = fanout_config({ROOT: (spawns(*names), DONE)}, max_children=100)
    run = await run_to_end(MemoryLog(), config)
    children = project(run.events).fanout
    assert len(children) == 100
    assert {child.state for child in children} == {FanoutState.DONE}
    assert {child.seal for child in children} == {RecordState.VERIFIED}
    assert run.answer == DONE.text


def test_limits_of_a_delegation_are_checked() -> None:
    """A depth or a number of children out of range, and two agents of one name, are refused."""
    for depth, children in ((0, 1), (99, 1), (1, 0), (1, 10**6)):
        with pytest.raises(ConfigurationError):
            SpawnTool(max_depth=depth, max_children=children)
    with pytest.raises(ConfigurationError, match="twin"):
        SpawnTool((AgentProfile("twin"), AgentProfile("twin")))
    assert SpawnTool().means != SpawnTool(max_children=3).means
