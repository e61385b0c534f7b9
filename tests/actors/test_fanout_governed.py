"""Children under a policy: its limits and its agents, a person's approval, the brake, secrets, and where a child may connect."""

from __future__ import annotations

import json

import pytest
import trio
import trio.testing

from affidavit.actors.clock import SystemClock
from affidavit.actors.deciders.fanout import DEFAULT_CHILDREN
from affidavit.actors.errors import ConfigurationError
from affidavit.actors.events import Kind
from affidavit.actors.fanout import FanoutState
from affidavit.actors.host import open_host
from affidavit.actors.inbox import InboxReader, cancel_goal_event, post
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ModelRequest, ToolCall
from affidavit.actors.policy.agents import spawn_tool
from affidavit.actors.policy.model import Agent, Approval, Breakers, Delegation, Grant, Policy
from affidavit.actors.projection import project
from affidavit.actors.runtime import MissionExecutor
from affidavit.actors.toolbox.http_fetch import http_fetch
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.approval_kit import waiting_run
from tests.actors.fanout_kit import CastModel, fanout_config, spawns
from tests.actors.mission_kit import (
    DONE,
    GOAL,
    RUN,
    SIGNER,
    FakeTool,
    calls,
    ended,
    repeat,
    run_to_end,
    session_and_runtime,
)

ROOT = GOAL.objective
METADATA = "http://169.254.169.254/latest/meta-data"
SECRET = "sesame-sesame-sesame"


def fetch(url: str) -> ModelReply:
    """Return a turn that fetches an address."""
    return ModelReply("", (ToolCall("f1", "http_fetch", json.dumps({"url": url})),), "tool_use")


async def test_g5_a_policy_lowers_how_far_a_tool_lets_work_be_handed_on() -> None:
    """The tool would allow more children and a deeper tree; the policy's word is the less (G5)."""
    parts = {ROOT: (spawns("a", "b", "c"), DONE), "a": (spawns("below"), ModelReply("a is done"))}
    policy = Policy(grant=Grant(tools=("spawn",)), delegation=Delegation(depth=1, children=2))
    run = await run_to_end(MemoryLog(), fanout_config(parts, max_depth=8, max_children=100, policy=policy))
    assert [child.objective for child in project(run.events).fanout] == ["a", "b"]
    assert {event.error_code for event in run.of(Kind.ACTION_REJECTED)} == {"children", "capability_denied"}


async def test_a_policy_never_raises_how_far_a_tool_lets_work_be_handed_on() -> None:
    """A tool that lets one child be begun lets no second one be begun, whatever the policy says."""
    policy = Policy(grant=Grant(tools=("spawn",)), delegation=Delegation(children=9))
    config = fanout_config({ROOT: (spawns("a", "b"), DONE)}, max_children=1, policy=policy)
    run = await run_to_end(MemoryLog(), config)
    assert [child.objective for child in project(run.events).fanout] == ["a"]


async def test_the_agents_of_a_policy_are_those_that_a_model_may_name() -> None:
    """Each with its prompt, its tools, its limit and its model; which model that is stands on child.spawned."""
    other = CastModel({"look": (calls("note"), ModelReply("looked"))}, digest=b"other")
    agent = Agent(name="reader", system="You read.", tools=("note",), model="fake", max_steps=2)
    policy = Policy(grant=Grant(tools=("note", "spawn")), agent=(agent,))
    spawn = spawn_tool(policy, {"fake": other})
    assert (spawn.max_children, spawn.models) == (DEFAULT_CHILDREN, (other,))
    model = CastModel({ROOT: (spawns("look", agent="reader"), DONE)})
    toolbox = Toolbox((FakeTool("note", repeat), spawn))
    run = await run_to_end(MemoryLog(), MissionConfig(model, toolbox, policy=policy))
    assert run.answer == DONE.text
    assert other.requests["look"][0].system == "You read."
    (spawned,) = run.of(Kind.CHILD_SPAWNED)
    assert spawned.detail["model"] == "fake:cast"
    assert project(run.events).fanout[0].result == "looked"


def test_an_agent_whose_model_is_not_open_is_no_agent() -> None:
    """It would else work with another model than its policy says, and nobody would see it."""
    policy = Policy(agent=(Agent(name="reader", model="local"),))
    with pytest.raises(
        ConfigurationError, match="agent 'reader' works with local, and that model is not open"
    ):
        spawn_tool(policy, {})


async def test_g3_a_childs_call_waits_for_a_person_and_goes_on_once_it_is_approved() -> None:
    """The request names the child; the run survives a restart in between, and the call runs once (G3)."""
    pay = FakeTool("pay", repeat)
    policy = Policy(
        grant=Grant(tools=("pay", "spawn")), approval=(Approval(tools=("pay",), expires_seconds=3600),)
    )
    parts = {ROOT: (spawns("settle"), DONE), "settle": (calls("pay"), ModelReply("settled"))}
    config = fanout_config(parts, pay, policy=policy)
    log = MemoryLog()
    async with waiting_run(log, config) as (_, first):
        (asked,) = first.session.waiting
    async with waiting_run(log, config) as (host, run):
        (again,) = run.session.waiting
        assert (again.call, again.requested, again.goal) == (asked.call, asked.requested, asked.goal)
        assert again.goal == run.session.projection.fanout[0].id
        assert pay.runs == 0
        await host.approve(run.id, again.call, principal="ada")
        assert await run.session.wait() == DONE.text
        await run.closed()
    done = await ended(log, DONE.text, "")
    assert pay.runs == 1
    assert len(done.of(Kind.APPROVAL_REQUESTED)) == 1
    (decided,) = done.of(Kind.APPROVAL_DECIDED)
    assert decided.goal == asked.goal


async def test_g7_the_brake_stops_every_child() -> None:
    """Pulled while three children work, it has whatever they ask for next refused, in each of them (G7)."""
    going, go_on = trio.Semaphore(0), trio.Event()

    async def note(arguments: object) -> str:
        going.release()
        await go_on.wait()
        return "noted"

    names = ("a", "b", "c")
    parts = {name: (calls("note"), calls("note"), ModelReply("done")) for name in names}
    config = fanout_config({ROOT: (spawns(*names), DONE), **parts}, FakeTool("note", note))
    log = MemoryLog()
    async with open_host(log, signer=SIGNER) as host:
        run = await host.submit(GOAL, config, id=RUN)
        for _ in names:
            await going.acquire()
        await host.brake(RUN, principal="ada", reason="stop")
        go_on.set()
        await run.closed()
    done = await ended(log, "", "")
    (pulled,) = done.of(Kind.BRAKE_ENGAGED)
    assert [event for event in done.of(Kind.ACTION_ADMITTED) if event.seq > pulled.seq] == []
    children = project(done.events).fanout
    assert {child.state for child in children} == {FanoutState.FAILED}
    refused = [event for event in done.of(Kind.ACTION_REJECTED) if event.seq > pulled.seq]
    assert {event.error_code for event in refused} == {"brake"}
    assert {event.goal for event in refused} >= {child.id for child in children}


class KeyModel(CastModel):
    """A model that was opened with a key, and says it."""

    secrets = (SECRET,)

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer with the key in the words."""
        await trio.lowlevel.checkpoint()
        return ModelReply(f"the key is {SECRET}")


async def test_the_key_of_an_agents_own_model_is_kept_out_of_the_whole_record() -> None:
    """Also where only an agent holds it: neither the child's words nor the result that its parent is shown have it."""
    policy = Policy(grant=Grant(tools=("spawn",)), agent=(Agent(name="teller", model="keyed"),))
    toolbox = Toolbox([spawn_tool(policy, {"keyed": KeyModel({}, digest=b"keyed")})])
    turn = spawns(f"tell {SECRET}", agent="teller")
    model = CastModel({ROOT: (turn, ModelReply(f"It said {SECRET}."))})
    config = MissionConfig(model, toolbox, policy=policy)
    run = await run_to_end(MemoryLog(), config)
    assert SECRET not in repr(run.events)
    assert MissionExecutor(config).scrub(run.events[0]) == run.events[0]
    (child,) = project(run.events).fanout
    assert (child.state, child.result.startswith("the key is ")) == (FanoutState.DONE, True)


async def test_g8_where_a_child_may_not_connect_the_record_says_that_it_was_the_child() -> None:
    """A child's fetch, and a fetch of the goal above: each decision bears the goal that it was made for (G8)."""
    turn = ModelReply("", (*spawns("look").tool_calls, *fetch(METADATA).tool_calls), "tool_use")
    parts = {ROOT: (turn, DONE), "look": (fetch(METADATA), ModelReply("looked"))}
    run = await run_to_end(MemoryLog(), fanout_config(parts, http_fetch()))
    (child,) = project(run.events).fanout
    decisions = {(each.goal, each.host, each.allowed) for each in run.of(Kind.EGRESS_DECISION)}
    assert decisions == {("", "169.254.169.254", False), (child.id, "169.254.169.254", False)}


async def test_another_process_has_one_goal_ended_by_way_of_the_inbox() -> None:
    """Once, in the asker's name, with the request as the cause; what cannot be done is answered with its code (S11)."""
    reached = trio.Event()

    async def before(objective: str, position: int) -> None:
        await trio.lowlevel.checkpoint()
        if objective == "wait":
            reached.set()
            await trio.sleep_forever()

    log = MemoryLog()
    async with session_and_runtime(log, fanout_config({ROOT: (spawns("wait"), DONE)}, before=before)) as (
        session,
        runtime,
    ):
        await session.submit(runtime, GOAL)
        await reached.wait()
        (child,) = session.projection.fanout
        reader = InboxReader(log, RUN)
        for goal in (child.id, child.id, "nobody", ""):
            asked = cancel_goal_event(goal, principal="ada", reason="not needed")
            reader.expect(await post(log, RUN, asked, SystemClock()))
        await session.attend()
        assert await session.wait() == DONE.text
        await session.seal()
    await reader.catch_up()
    assert [(answer.outcome, answer.code) for _, answer in sorted(reader.answers.items())] == [
        ("done", ""),
        ("refused", "finished"),
        ("refused", "unknown_goal"),
        ("refused", "malformed"),
    ]
    run = await ended(log, DONE.text, "")
    (phase,) = [event for event in run.of(Kind.GOAL_PHASE) if event.principal]
    assert (phase.goal, phase.principal, phase.causation_id) == (child.id, "ada", f"{RUN}.inbox/1")
    assert reader.answers[1].seq == phase.seq


async def test_however_many_siblings_call_a_tool_each_child_is_kept_from_repeating_itself() -> None:
    """Thirty children repeat one call five times over: each is refused the fourth, which its siblings' calls do not hide."""
    names = tuple(f"part {number}" for number in range(30))
    loop = (*(calls("note") for _ in range(5)), ModelReply("done"))
    note = FakeTool("note", repeat)
    rounds = [trio.Event() for _ in loop]
    there = [0 for _ in loop]

    async def in_step(objective: str, position: int) -> None:
        if objective != ROOT:
            there[position] += 1
            if there[position] == len(names):
                rounds[position].set()
            await rounds[position].wait()
        await trio.lowlevel.checkpoint()

    config = fanout_config(
        {ROOT: (spawns(*names), DONE)} | dict.fromkeys(names, loop),
        note,
        before=in_step,
        max_children=len(names),
        policy=Policy(grant=Grant(tools=("note", "spawn")), breakers=Breakers(repeated_calls=3)),
    )
    run = await run_to_end(MemoryLog(), config)
    assert note.runs == 3 * len(names)
    refused = [event.goal for event in run.of(Kind.ACTION_REJECTED)]
    assert {event.error_code for event in run.of(Kind.ACTION_REJECTED)} == {"breaker_repetition"}
    assert {refused.count(child.id) for child in project(run.events).fanout} == {2}


async def test_what_an_agent_hands_on_is_done_by_its_own_model() -> None:
    """A goal that is begun without an agent is like the one above it, which need not be like the run's own."""
    other = CastModel({"look": (spawns("look closer"), ModelReply("looked"))}, digest=b"other")
    policy = Policy(
        grant=Grant(tools=("spawn",)), agent=(Agent(name="reader", model="fake", system="You read."),)
    )
    model = CastModel({ROOT: (spawns("look", agent="reader"), DONE)})
    config = MissionConfig(model, Toolbox([spawn_tool(policy, {"fake": other})]), policy=policy)
    run = await run_to_end(MemoryLog(), config)
    assert run.answer == DONE.text
    assert (list(model.requests), list(other.requests)) == ([ROOT], ["look", "look closer"])
    assert other.requests["look closer"][0].system == "You read."
