"""A policy in plain sentences: what a run may use, what needs whom, what stops it, what backs a success, where it may connect.

And what is probably a mistake in it. Pure. It says what the deciders do, and promises nothing beyond them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from affidavit.actors.deciders.approval import ApprovalGate
from affidavit.actors.policy.explain_agents import doubts_on_handing_on, hands_on
from affidavit.actors.policy.model import Approval, Policy, Prices
from affidavit.actors.policy.words import listed, many


@dataclass(frozen=True, slots=True)
class Passage:
    """A few sentences about one thing.

    Attributes:
        title: About what.
        sentences: What is laid down; never empty.
    """

    title: str
    sentences: tuple[str, ...]


def explain(policy: Policy) -> tuple[Passage, ...]:
    """Return what a policy lays down, in the order in which an action meets it."""
    return (
        Passage("What a run may use", tuple(_use(policy))),
        Passage("Whom it may hand work to", tuple(hands_on(policy))),
        Passage("What needs a person", tuple(_persons(policy)) or ("Nothing.",)),
        Passage("What stops it", tuple(_stops(policy))),
        Passage("What backs a success", tuple(_backs(policy))),
        Passage("Where it may connect", tuple(_connects(policy))),
    )


def seconds_words(seconds: float) -> str:
    """Return a time in words, in the largest unit that it is a whole number of."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return many(int(seconds // size), unit)
    return f"{seconds:g} seconds" if seconds != 1 else "1 second"


def _use(policy: Policy) -> Iterator[str]:
    tools, budget = policy.grant.tools, policy.budget
    yield (
        f"The tools {listed(tools)}."
        if len(tools) > 1
        else f"The tool {tools[0]}."
        if tools
        else "No tool at all."
    )
    for name, trust in policy.trust.items():
        yield f"{name} is trusted no more than {trust}."
    limits = tuple(
        words
        for limit, words in (
            (budget.steps, many(budget.steps, "model turn")),
            (budget.tokens, many(budget.tokens, "token")),
            (budget.cost, f"{budget.cost} {policy.prices.currency if policy.prices else ''}"),
            (budget.seconds, f"{seconds_words(budget.seconds)} of work"),
        )
        if limit
    )
    yield f"At most {listed(limits)}, all goals of the run together." if limits else "No budget of its own."
    if policy.prices is not None:
        yield _priced(policy.prices)


def _priced(prices: Prices) -> str:
    parts = [f"{prices.input} for input", f"{prices.output} for output"]
    if prices.cache_read is not None:
        parts.append(f"{prices.cache_read} for input from the cache")
    if prices.cache_write is not None:
        parts.append(f"{prices.cache_write} for input into the cache")
    return f"A million tokens cost, in {prices.currency}: {listed(tuple(parts))}."


def _persons(policy: Policy) -> Iterator[str]:
    for rule in policy.approval:
        who = listed(rule.approvers, "or") if rule.approvers else "anyone who may write the store"
        how = ", with a signature of their own," if rule.signed else ""
        yield (
            f"{_covered(rule)} only once {who}{how} has approved that very call; asked for, it expires after "
            f"{seconds_words(rule.expires_seconds)}."
        )


def _covered(rule: Approval) -> str:
    names = tuple(
        "whatever is called"
        if each == "*"
        else f"whatever begins with {each[:-1]}"
        if each.endswith("*")
        else each
        for each in rule.tools
    )
    return f"{listed(names)} {'run' if len(names) > 1 else 'runs'}"


def _stops(policy: Policy) -> Iterator[str]:
    yield "Anyone who may write the store, by the brake."
    breakers = policy.breakers
    if breakers.repeated_calls:
        yield f"A call is refused that repeats itself more than {many(breakers.repeated_calls, 'time')} with the same arguments."
    if breakers.failures:
        yield f"Everything is refused once {breakers.failures} of the last {breakers.of} tool calls have failed."
    yield "A budget that is used up."


def _backs(policy: Policy) -> Iterator[str]:
    if not policy.check:
        yield "Nothing: the run ends with the model's own answer and claims no success."
        return
    for check in policy.check:
        again = "; run again if it was interrupted" if check.idempotent else ""
        yield f"{check.name}: {shlex.join(check.command)} ends with 0 within {seconds_words(check.seconds)}{again}."
    if _COMMANDS in policy.grant.tools:
        yield "Checks are not contained: one that runs code of the workspace may run what the agent wrote there."


def _connects(policy: Policy) -> Iterator[str]:
    if not policy.egress.allow:
        yield "Nowhere, but to its model."
    for rule in policy.egress.allow:
        yield "Any public address." if rule == "public" else f"{rule}."


def warnings(policy: Policy, tools: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return what is probably a mistake in a policy, though it can be used.

    Args:
        policy: The policy.
        tools: The tools that exist, each with the trust it states; None if that is not known.
    """
    return (
        *_about_tools(policy, tools),
        *doubts_on_handing_on(policy),
        *_about_persons(policy),
        *_about_limits(policy),
    )


def _about_tools(policy: Policy, tools: Mapping[str, str] | None) -> Iterator[str]:
    granted = policy.grant.tools
    for name in granted:
        if tools is not None and name not in tools:
            yield f"grant.tools names {name!r}, and there is no such tool here"
    for name, trust in policy.trust.items():
        if name not in granted:
            yield f"trust.{name} has no effect: the tool is not granted"
        elif trust == "trusted":
            yield f"trust.{name} has no effect: a policy lowers a tool's trust and never raises it"
        elif tools is not None and _LESS.get(tools.get(name, ""), 0) > _LESS[trust]:
            yield f"trust.{name} has no effect: the tool itself is {tools[name]}, and trust is never raised"


_COMMANDS = "run_command"
_LESS = {"trusted": 0, "semi-trusted": 1, "untrusted": 2}


def _about_persons(policy: Policy) -> Iterator[str]:
    for rule in policy.approval:
        for pattern in rule.tools:
            if not any(_covers(pattern, name) for name in policy.grant.tools):
                yield f"an [[approval]] asks about {pattern!r}, and no such tool is granted"
    for name in policy.grant.tools:
        rules = [rule for rule in policy.approval if any(_covers(each, name) for each in rule.tools)]
        if len(rules) > 1 and not _someone(rules, policy):
            yield f"nobody can approve {name!r}: several [[approval]] ask about it, and no person satisfies them all"
    yield from _about_keys(policy)


def _someone(rules: Sequence[Approval], policy: Policy) -> bool:
    """Tell whether one person can satisfy several rules at once."""
    lists = [set(rule.approvers) for rule in rules if rule.approvers]
    people = set.intersection(*lists) if lists else None
    if not any(rule.signed for rule in rules):
        return people is None or bool(people)
    holders = set(policy.approver_keys)
    return bool(holders if people is None else holders & people)


def _about_keys(policy: Policy) -> Iterator[str]:
    named = {name for rule in policy.approval for name in rule.approvers}
    anyone = any(not rule.approvers for rule in policy.approval)
    owners: dict[str, str] = {}
    for name, key in policy.approver_keys.items():
        if name not in named and not anyone:
            yield f"approver_keys.{name} has no effect: nobody asks {name!r}"
        if key in owners:
            yield f"approver_keys: {owners[key]!r} and {name!r} have the same key"
        owners.setdefault(key, name)


def _about_limits(policy: Policy) -> Iterator[str]:
    budget, breakers = policy.budget, policy.breakers
    if policy.prices is not None and not budget.cost:
        yield "[prices] stands there and budget.cost does not: what is spent is recorded, and stops nothing"
    if "of" in breakers.model_fields_set and not breakers.failures:
        yield "breakers.of has no effect without breakers.failures"
    for check in policy.check:
        if budget.seconds and check.seconds > budget.seconds:
            yield f"check {check.name!r} may take {seconds_words(check.seconds)}, more than budget.seconds gives the whole run"


def _covers(pattern: str, name: str) -> bool:
    return ApprovalGate((pattern,), 1).covers(name)
