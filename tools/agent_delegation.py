"""Opens the models of the agents that a policy names, while a run is driven, and gives them to the tool that hands work on.

The rule: one text that names a model opens one model, however many agents name it, the run's own among them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from affidavit.actors.deciders.fanout import SPAWN_ACTION
from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.port import Model
from affidavit.actors.policy.agents import spawn_tool
from affidavit.actors.policy.model import Agent, Policy
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.tools.model_opening import open_shown_model


@asynccontextmanager
async def open_agents(
    toolbox: Toolbox, policy: Policy | None, named: str, model: Model
) -> AsyncIterator[Toolbox]:
    """Open what the agents of a policy work with; nothing where no work can be handed to them.

    Args:
        toolbox: The tools that exist for the run.
        policy: What the run is held to.
        named: The text that names the run's own model.
        model: That model, open.

    Yields:
        The tools, with one that hands work to these agents in the place of one that knows of none.

    Raises:
        ConfigurationError: An agent's model cannot be opened.

    Closes: the agents' models, when the block is left.
    """
    if policy is None or SPAWN_ACTION not in toolbox or SPAWN_ACTION not in policy.grant.tools:
        yield toolbox
        return
    models = {named: model}
    async with AsyncExitStack() as stack:
        for agent in policy.agent:
            if agent.model is not None and agent.model not in models:
                models[agent.model] = await _opened(stack, agent, agent.model)
        yield toolbox.replacing(spawn_tool(policy, models))


async def _opened(stack: AsyncExitStack, agent: Agent, named: str) -> Model:
    try:
        return await stack.enter_async_context(open_shown_model(named))
    except ConfigurationError as error:
        raise ConfigurationError(f"agent {agent.name!r}: {error}") from error
