"""The rules of one goal: its grant, and the deciders that its own limits and the run's policy come to. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Decider
from affidavit.actors.events import Trust
from affidavit.actors.goal import GoalSpec
from affidavit.actors.policy.model import MICROS, Policy
from affidavit.crypto.key_forms import read_public_key

_TRUST = (Trust.TRUSTED, Trust.SEMI_TRUSTED, Trust.UNTRUSTED)


@dataclass(frozen=True, slots=True)
class Rules:
    """What governs one goal's actions.

    Attributes:
        grant: Which tools it may use.
        deciders: Who is asked besides, in order.
    """

    grant: CapabilityGrant
    deciders: tuple[Decider, ...]


def rules_of(spec: GoalSpec, policy: Policy | None) -> Rules:
    """Return the rules for a goal under a policy.

    What would be refused anyway is refused before a person is asked: approval comes last. A policy can only take away from what
    the goal states.

    Args:
        spec: The goal.
        policy: The run's policy; None leaves the goal's own limits alone.
    """
    return Rules(grant_of(spec, policy), tuple(_deciders(spec, policy)))


def grant_of(spec: GoalSpec, policy: Policy | None) -> CapabilityGrant:
    """Return what a goal is granted: what it asks for, as far as the policy allows it."""
    stated = None if spec.tools is None else frozenset(spec.tools)
    if policy is None:
        return CapabilityGrant(stated)
    return CapabilityGrant(frozenset(policy.grant.tools)).narrowed(stated)


def is_approved_by_hand(tool: str, policy: Policy | None) -> bool:
    """Tell whether a person must approve each call of a tool."""
    rules = () if policy is None else policy.approval
    return any(ApprovalGate(rule.tools, rule.expires_seconds).covers(tool) for rule in rules)


def trust_of(tool: str, own: str, policy: Policy | None) -> str:
    """Return how far a tool is trusted: as it says itself, or less if the policy says so."""
    lowered = None if policy is None else policy.trust.get(tool)
    # A word that is no level of trust is no trust, and a policy does not make it one.
    stated = [Trust(each) if each in _TRUST else Trust.UNTRUSTED for each in (own, lowered or own)]
    return str(max(stated, key=_TRUST.index))


def _deciders(spec: GoalSpec, policy: Policy | None) -> Iterator[Decider]:
    yield Brake()
    yield ContainmentGate()
    if policy is not None:
        breakers = policy.breakers
        if breakers.repeated_calls:
            yield RepetitionBreaker(breakers.repeated_calls)
        if breakers.failures:
            yield FailureBreaker(breakers.failures, breakers.of)
    yield StepBudget(spec.max_steps)
    yield TokenBudget(spec.max_tokens)
    if policy is not None:
        yield from _pools(policy)
        for rule in policy.approval:
            keys = _keys(policy, rule.approvers)
            yield ApprovalGate(rule.tools, rule.expires_seconds, rule.approvers, rule.signed, keys)


def _keys(policy: Policy, approvers: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    """Return the keys of those who may approve."""
    return tuple(
        (name, read_public_key(key.encode())[0].raw)
        for name, key in policy.approver_keys.items()
        if name in approvers or not approvers
    )


def _pools(policy: Policy) -> Iterator[Decider]:
    budget = policy.budget
    if budget.steps:
        yield SharedStepBudget(budget.steps)
    if budget.tokens:
        yield TokenBudget(budget.tokens)
    if budget.cost and policy.prices is not None:
        yield CostBudget(int(budget.cost * MICROS), policy.prices.currency)
    if budget.seconds:
        yield TimeBudget(int(budget.seconds * 1000))
