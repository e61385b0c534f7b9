"""What it takes to begin a run from the command line: its tools, its setting, its goal with the prompt that fits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import trio

from affidavit.actors.goal import GoalSpec
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.tools.agent_tools import ANYWHERE, agent_toolbox
from affidavit.tools.choices import Choices
from affidavit.tools.commands.goal_options import GoalOptions
from affidavit.tools.commands.workspace_brief import system_prompt
from affidavit.tools.console.choice import wants_view
from affidavit.tools.driving import Setting
from affidavit.tools.errors import UsageError
from affidavit.tools.place import Place
from affidavit.tools.policies import granted, policy_of, say_doubts, tools_named


@dataclass(frozen=True, slots=True)
class Beginning:
    """A run that is about to begin.

    Attributes:
        setting: With what it is driven.
        toolbox: The tools that exist for it.
        goal: What it is held to.
    """

    setting: Setting
    toolbox: Toolbox
    goal: GoalOptions

    async def spec(self, objective: str, config: MissionConfig) -> GoalSpec:
        """Return the goal, with the prompt for a model and the tools that it is granted."""
        prompt = partial(
            system_prompt,
            self.setting.workspace,
            given=self.goal.system,
            supports_tools=config.model.supports_tools,
            granted=granted(self.goal.granted, self.setting.policy),
        )
        return self.goal.spec(objective, await trio.to_thread.run_sync(prompt))


async def begin_with(place: Place, run_id: str, model: str, choices: Choices, goal: GoalOptions) -> Beginning:
    """Return what a run begins with.

    Args:
        place: The store.
        run_id: The run's id.
        model: The model, as `open_model` takes it.
        choices: What a person chose beside it.
        goal: What the run is held to.

    Raises:
        UsageError: What was chosen does not fit.
        ConfigurationError: The workspace or the policy cannot be used.
    """
    wanted, workspace = goal.granted or (), choices.workspace
    if set(wanted) - ANYWHERE and workspace is None:
        raise UsageError("--tools grants tools that only a workspace gives: name one with --workspace")
    named = policy_of(choices.policy, workspace)
    toolbox = await agent_toolbox(workspace, tools_named(goal.granted, named), place, choices.secret_file)
    _check_granted(wanted, toolbox)
    say_doubts(named, toolbox)
    setting = Setting(
        place,
        run_id,
        model,
        workspace,
        choices.as_json,
        policy=named,
        wait=choices.wait,
        secret_file=choices.secret_file,
        is_live=wants_view(plain=choices.plain, as_json=choices.as_json),
    )
    return Beginning(setting, toolbox, goal)


def _check_granted(wanted: Sequence[str], toolbox: Toolbox) -> None:
    unknown = next((name for name in wanted if name not in toolbox), None)
    if unknown is not None:
        raise UsageError(f"there is no tool {unknown!r}; the workspace gives {', '.join(toolbox)}")
