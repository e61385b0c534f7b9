"""The spawn tool that a policy lays down: how far work may be handed on, and the agents that a model may hand it to.

Whoever opens models gives them here; nothing is opened by this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from affidavit.actors.delegation import AgentProfile, SpawnTool
from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.port import Model
from affidavit.actors.policy.model import Agent, Delegation, Policy

_UNSAID: Final = Delegation()


def spawn_tool(policy: Policy | None, models: Mapping[str, Model]) -> SpawnTool:
    """Return the tool by which a run under a policy hands work on.

    Args:
        policy: The run's policy; None for the tool's own limits and no named agent.
        models: The models that agents name, each by the very text that names it.

    Raises:
        ConfigurationError: An agent's model is not among them.
    """
    if policy is None:
        return SpawnTool()
    limits = limits_of(policy)
    profiles = [_profile(agent, models) for agent in policy.agent]
    return SpawnTool(profiles, max_depth=limits.depth, max_children=limits.children)


def limits_of(policy: Policy) -> Delegation:
    """Return how far work may be handed on; what is in force where the policy says nothing of it."""
    return policy.delegation or _UNSAID


def _profile(agent: Agent, models: Mapping[str, Model]) -> AgentProfile:
    model = None if agent.model is None else models.get(agent.model)
    if agent.model is not None and model is None:
        raise ConfigurationError(f"agent {agent.name!r} works with {agent.model}, and that model is not open")
    return AgentProfile(
        agent.name,
        agent.description,
        system=agent.system,
        tools=agent.tools,
        model=model,
        max_steps=agent.max_steps,
    )
