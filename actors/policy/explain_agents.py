"""What a policy says of handing work on, in plain sentences, and what is probably a mistake in that. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from affidavit.actors.deciders.fanout import SPAWN_ACTION
from affidavit.actors.policy.agents import limits_of
from affidavit.actors.policy.model import Agent, Policy
from affidavit.actors.policy.words import listed, many


def hands_on(policy: Policy) -> Iterator[str]:
    """Go through the sentences on whom a run may hand work to."""
    if SPAWN_ACTION not in policy.grant.tools:
        yield "Nobody."
        return
    limits = limits_of(policy)
    yield f"Each goal to at most {many(limits.children, 'other')}, {_deep(limits.depth)}."
    yield "Each has at most the tools of the goal above, and spends the run's budget."
    for agent in policy.agent:
        yield _told(agent, policy)


def _deep(depth: int) -> str:
    return (
        "who hand it on to nobody" if depth == 1 else f"who may hand it on, up to {depth} below one another"
    )


def _told(agent: Agent, policy: Policy) -> str:
    parts = []
    if agent.tools is not None:
        parts.append(f"with {listed(agent.tools)} at most" if agent.tools else "without any tool")
    if agent.model is not None:
        parts.append(f"on {agent.model}{', at the same prices' if policy.prices else ''}")
    if agent.max_steps:
        parts.append(f"for at most {many(agent.max_steps, 'model turn')}")
    return f"{agent.name}: {'; '.join(parts) or 'like the goal above'}."


def doubts_on_handing_on(policy: Policy) -> Iterator[str]:
    """Go through what is probably a mistake in how work is handed on."""
    granted, limits = policy.grant.tools, limits_of(policy)
    if SPAWN_ACTION not in granted:
        for said, part in ((policy.agent, "[[agent]]"), (policy.delegation, "[delegation]")):
            if said:
                yield f"{part} has no effect: the tool {SPAWN_ACTION!r} is not granted"
        return
    for agent in policy.agent:
        for name in agent.tools or ():
            if name not in granted:
                yield f"agent {agent.name!r} asks for {name!r}, and that is not granted"
            elif name == SPAWN_ACTION and limits.depth == 1:
                yield f"agent {agent.name!r} asks for {name!r}, and delegation.depth lets no child have it"
        if policy.budget.steps and agent.max_steps > policy.budget.steps:
            yield f"agent {agent.name!r} may take {many(agent.max_steps, 'turn')}, more than budget.steps gives the whole run"
