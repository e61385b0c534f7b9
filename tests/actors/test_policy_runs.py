"""A run under a policy: what it does not grant is refused on the record, its digest stands there, and nothing widens it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.deciders.chain import judge
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action, Denial, Standing
from affidavit.actors.errors import ResumeRefused
from affidavit.actors.events import Event, FaultClass, Kind, Trust
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.load import parse_policy
from affidavit.actors.policy.model import Budget, Grant, Policy, Prices
from affidavit.actors.rules import grant_of, rules_of, trust_of
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import (
    DONE,
    FakeTool,
    KeptLog,
    WatchedModel,
    calls,
    park_when,
    replies,
    run_to_end,
)

POLICY = parse_policy(
    b"""
    [grant]
    tools = ["pay", "look"]
    [trust]
    look = "semi-trusted"
    """,
    "policy.toml",
)
NAMES = st.sampled_from([f"t{number}" for number in range(6)])
NAME_SETS = st.frozensets(NAMES)
TRUSTS = st.sampled_from([each.value for each in Trust])


async def test_g2_refused_hidden_and_unknown_tools_each_leave_a_rejection_with_its_fault_class() -> None:
    """G2. Refused: granted, and not held as its trust asks. Hidden: there, and not granted, so not offered. Unknown: not there.

    None of them runs, each rejection stands in one append with the answer that the model is shown, and the one that is granted
    runs.
    """
    box = Toolbox([FakeTool("pay"), FakeTool("look"), FakeTool("wipe")])
    model = WatchedModel(replies(calls("look", "wipe", "ghost", "pay"), DONE))
    log = KeptLog()
    run = await run_to_end(log, MissionConfig(model, box, policy=POLICY), GoalSpec("Settle."))
    assert {spec.name for spec in model.requests[0].tools} == {"look", "pay"}
    assert [(each.action, each.error_class, each.error_code) for each in run.of(Kind.ACTION_REJECTED)] == [
        ("look", FaultClass.FORBIDDEN, "containment_insufficient"),
        ("wipe", FaultClass.FORBIDDEN, "capability_denied"),
        ("ghost", FaultClass.FORBIDDEN, "unknown_tool"),
    ]
    rejected = {each.tool_use_id: each for each in run.of(Kind.ACTION_REJECTED)}
    answered = {each.tool_use_id: each for each in run.of(Kind.TOOL_RESULT)}
    for call, rejection in rejected.items():
        assert rejection.actor == "system"
        assert answered[call].seq == rejection.seq + 1
        assert answered[call].is_error
        assert answered[call].result == f"refused: {rejection.reason}"
    assert [tool.runs for tool in box.values() if isinstance(tool, FakeTool)] == [0, 1, 0]


async def test_once_a_policy_is_bound_what_it_does_not_name_is_denied() -> None:
    """An empty policy denies every tool, though the goal grants itself all."""
    tool = FakeTool("pay")
    run = await run_to_end(
        MemoryLog(),
        MissionConfig(replies(calls("pay"), DONE), Toolbox([tool]), policy=Policy()),
        GoalSpec("x"),
    )
    assert [each.error_code for each in run.of(Kind.ACTION_REJECTED)] == ["capability_denied"]
    assert tool.runs == 0


def started(run_events: tuple[Event, ...]) -> Mapping[str, object]:
    """The digests on session.started."""
    digests = run_events[0].detail["digests"]
    assert isinstance(digests, Mapping)
    return digests


async def test_the_policys_budget_stands_on_session_started_for_whoever_watches() -> None:
    """As whole numbers, what is not set left out; without a budget nothing is said of one."""
    budget = Budget(tokens=900, cost=Decimal("2.5"), seconds=1.5)
    policy = Policy(budget=budget, prices=Prices(currency="EUR", input=Decimal(1), output=Decimal(1)))
    run = await run_to_end(MemoryLog(), MissionConfig(replies(DONE), policy=policy), GoalSpec("x"))
    said = {"tokens": 900, "cost_micros": 2_500_000, "ms": 1_500, "currency": "EUR"}
    assert run.events[0].detail["budget"] == said
    bare = await run_to_end(MemoryLog(), MissionConfig(replies(DONE), policy=Policy()), GoalSpec("x"))
    assert "budget" not in bare.events[0].detail


async def test_the_policys_digest_stands_on_session_started() -> None:
    """Policies that say the same leave the same digest there; with another, or with none, it differs."""

    async def digest(policy: Policy | None) -> object:
        run = await run_to_end(MemoryLog(), MissionConfig(replies(DONE), policy=policy), GoalSpec("x"))
        return started(run.events)["policy"]

    spelled_otherwise = parse_policy(
        b'trust = {look = "semi-trusted"}\ngrant.tools = ["look", "pay", "pay"]', "other.toml"
    )
    assert await digest(POLICY) == await digest(spelled_otherwise)
    assert len({await digest(each) for each in (None, Policy(), POLICY)}) == 3


async def test_a_run_is_not_resumed_under_another_policy_unless_that_is_accepted() -> None:
    """The refusal names the policy; accepted, the change is recorded with the new digest."""
    ready = trio.Event()

    async def stop(arguments: Mapping[str, object]) -> str:
        ready.set()
        await trio.sleep_forever()
        raise AssertionError

    def config(policy: Policy) -> MissionConfig:
        return MissionConfig(replies(calls("pay"), DONE), Toolbox([FakeTool("pay", stop)]), policy=policy)

    log = MemoryLog()
    await park_when(log, config(POLICY), ready)
    other = POLICY.model_copy(update={"grant": Grant(tools=("pay",))})
    with pytest.raises(ResumeRefused, match="another policy"):
        await run_to_end(log, config(other), resume=True)
    run = await run_to_end(log, config(other), resume=True, accept_changes=True)
    (phase,) = [each for each in run.of(Kind.GOAL_PHASE) if "changed" in each.detail]
    assert phase.detail["changed"] == ["policy"]
    digests = phase.detail["digests"]
    assert isinstance(digests, Mapping)
    assert digests["policy"] != started(run.events)["policy"]


@given(allowed=NAME_SETS, wanted=st.none() | NAME_SETS, name=NAMES)
def test_a_goal_is_granted_only_what_it_asks_for_and_its_policy_allows(
    allowed: frozenset[str], wanted: frozenset[str] | None, name: str
) -> None:
    """And the waist admits a tool's call exactly then."""
    policy = Policy(grant=Grant(tools=tuple(allowed)))
    spec = GoalSpec("x", tools=None if wanted is None else tuple(wanted))
    expected = name in allowed and (wanted is None or name in wanted)
    assert grant_of(spec, policy).permits(name) is expected
    rules = rules_of(spec, policy)
    judged = judge((rules.grant, *rules.deciders), Action(name, tool_use_id="t1"), Standing())
    assert isinstance(judged, Denial) is not expected


@given(first=st.none() | NAME_SETS, handed_down=st.lists(st.none() | NAME_SETS, max_size=5), name=NAMES)
def test_a_grant_that_is_handed_down_never_widens(
    first: frozenset[str] | None, handed_down: list[frozenset[str] | None], name: str
) -> None:
    """However often, and whatever is asked for: a tool is permitted only if everyone on the way permitted it."""
    grant = CapabilityGrant(first)
    for wanted in handed_down:
        narrower = grant.narrowed(wanted)
        assert narrower.permits(name) <= grant.permits(name)
        assert narrower.narrowed(wanted) == narrower
        grant = narrower
    everyone = [each for each in (first, *handed_down) if each is not None]
    assert grant.permits(name) is all(name in each for each in everyone)


@given(own=TRUSTS | st.just("nonsense"), lowered=st.none() | TRUSTS)
def test_a_policy_lowers_a_tools_trust_and_never_raises_it(own: str, lowered: str | None) -> None:
    """The less of the two counts; a word that is no level of trust is no trust."""
    order = [each.value for each in Trust]
    policy = Policy() if lowered is None else Policy.model_validate({"trust": {"tool": lowered}})
    least = max(order.index(each) if each in order else 2 for each in (own, lowered or own))
    assert trust_of("tool", own, policy) == order[least]
