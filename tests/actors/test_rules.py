"""What a policy comes to in the waist: each table is a decider, in the order in which an action meets them."""

from __future__ import annotations

from affidavit.actors.deciders.approval import ApprovalGate
from affidavit.actors.deciders.brake import Brake, FailureBreaker, RepetitionBreaker
from affidavit.actors.deciders.budgets import (
    CostBudget,
    SharedStepBudget,
    StepBudget,
    TimeBudget,
    TokenBudget,
)
from affidavit.actors.deciders.containment import ContainmentGate
from affidavit.actors.events import Usage
from affidavit.actors.goal import GoalSpec
from affidavit.actors.policy.load import parse_policy
from affidavit.actors.policy.model import Policy
from affidavit.actors.rules import rules_of
from affidavit.crypto import SigningKey

KEYS = {name: SigningKey.from_seed(bytes([at] * 32)).public for at, name in enumerate(("ann", "bob"))}
WHOLE = parse_policy(
    f"""
    [grant]
    tools = ["pay", "look"]
    [budget]
    steps = 4
    tokens = 500
    cost = 2.5
    seconds = 1.5
    [prices]
    input = 3
    output = 15
    cache_read = 0.3
    [[approval]]
    tools = ["pay"]
    approvers = ["ann"]
    signed = true
    expires_seconds = 60
    [[approval]]
    tools = ["look"]
    [approver_keys]
    ann = "{KEYS["ann"].did_key}"
    bob = "{KEYS["bob"].hex}"
    [breakers]
    repeated_calls = 3
    failures = 2
    of = 5
    """.encode(),
    "policy.toml",
)
SPEC = GoalSpec("x", tools=("pay", "wipe"), max_steps=9, max_tokens=1000)


def test_each_table_is_a_decider_and_approval_comes_last() -> None:
    """With the numbers that were laid down; nobody is asked about what would be refused anyway."""
    ann, bob = ((name, key.raw) for name, key in KEYS.items())
    rules = rules_of(SPEC, WHOLE)
    assert rules.grant.tools == frozenset({"pay"})
    assert rules.deciders == (
        Brake(),
        ContainmentGate(),
        RepetitionBreaker(3),
        FailureBreaker(2, 5),
        StepBudget(9),
        TokenBudget(1000),
        SharedStepBudget(4),
        TokenBudget(500),
        CostBudget(2_500_000, "USD"),
        TimeBudget(1500),
        ApprovalGate(("pay",), 60, ("ann",), True, (ann,)),
        ApprovalGate(("look",), 86400, (), False, (ann, bob)),
    )


def test_a_policy_that_says_nothing_adds_nothing_but_the_grant() -> None:
    """And without a policy a goal is held to its own limits alone."""
    own = (Brake(), ContainmentGate(), StepBudget(9), TokenBudget(1000))
    assert rules_of(SPEC, Policy()).deciders == own
    assert rules_of(SPEC, Policy()).grant.tools == frozenset()
    assert rules_of(SPEC, None).deciders == own
    assert rules_of(SPEC, None).grant.tools == frozenset({"pay", "wipe"})


def test_prices_are_charged_exactly_as_they_were_written() -> None:
    """A million tokens of each kind; what has no price of its own costs as other input."""
    assert WHOLE.prices is not None
    pricing = WHOLE.prices.pricing()
    million = 1_000_000
    assert pricing.cost(Usage(million, 0)) == 3_000_000
    assert pricing.cost(Usage(0, million)) == 15_000_000
    assert pricing.cost(Usage(million, 0, million, 0)) == 300_000
    assert pricing.cost(Usage(million, 0, 0, million)) == 3_000_000
