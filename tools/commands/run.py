"""`affidavit run`: give an agent an objective, show what it does, and leave a sealed record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import trio
from cyclopts import Parameter

from affidavit.actors.clock import SystemClock
from affidavit.actors.host import Host, Run
from affidavit.actors.ids import check_run_id, new_run_id
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.tools.agent_tools import ANYWHERE, agent_toolbox
from affidavit.tools.commands.goal_options import NO_GOAL_OPTIONS, GoalOptions
from affidavit.tools.commands.workspace_brief import system_prompt
from affidavit.tools.console.choice import Plain, wants_view
from affidavit.tools.driving import Setting, drive
from affidavit.tools.errors import UsageError
from affidavit.tools.options import MODEL_VARIABLE, AsJson, SecretFile, Store, Wait, Workspace
from affidavit.tools.place import place_of
from affidavit.tools.policies import PolicyFile, granted, policy_of, say_doubts, tools_named


async def run(  # noqa: PLR0913  # each is an option of its own
    objective: Annotated[str, Parameter(name="OBJECTIVE", help="What the agent is to do, in words.")],
    /,
    *,
    model: Annotated[
        str,
        Parameter(
            name="--model",
            env_var=MODEL_VARIABLE,
            help="Which model: openai:NAME or anthropic:NAME (OPENAI_API_KEY, OPENAI_BASE_URL and so on), the same by the "
            "vendor's own client as openai-sdk:NAME or anthropic-sdk:NAME, local, local:FILE.gguf, or script:FILE.",
        ),
    ],
    workspace: Workspace = None,
    policy: PolicyFile = None,
    goal: GoalOptions = NO_GOAL_OPTIONS,
    id: Annotated[  # the contract's own name for it
        str | None, Parameter(name="--id", help="The run's id, instead of a fresh one.")
    ] = None,
    secret_file: SecretFile = None,
    wait: Wait = None,
    as_json: AsJson = False,
    plain: Plain = False,
    store: Store = None,
) -> int:
    """Give an agent an objective, and watch it live until it is done.

    Every step is on disk before it is shown. The end is sealed with the key of
    this store, which is made on first use. Then two lines are printed: one exports
    the record, the other verifies it. Ctrl-C parks the run, to be resumed.

    Exit codes: 0 converged, 1 stalled or cancelled, 2 misuse or environment,
    4 parked until a person has approved a call, 130 interrupted.

    For example:

      affidavit run "Summarise what this project does" --model local --workspace .
    """
    if not objective.strip():
        raise UsageError("the objective is empty; say what the agent is to do")
    if set(goal.granted or ()) - ANYWHERE and workspace is None:
        raise UsageError("--tools grants tools that only a workspace gives: name one with --workspace")
    place, named = place_of(store), policy_of(policy, workspace)
    toolbox = await agent_toolbox(workspace, tools_named(goal.granted, named), place, secret_file)
    _check_granted(goal.granted or (), toolbox)
    say_doubts(named, toolbox)
    setting = Setting(
        place,
        run_id_of(id),
        model,
        workspace,
        as_json,
        policy=named,
        wait=wait,
        secret_file=secret_file,
        is_live=wants_view(plain=plain, as_json=as_json),
    )

    async def start(host: Host, config: MissionConfig) -> Run:
        if await host.log.info(setting.run_id) is not None:
            raise UsageError(f"there is a run {setting.run_id} already; `affidavit resume` goes on with it")
        prompt = partial(
            system_prompt,
            workspace,
            given=goal.system,
            supports_tools=config.model.supports_tools,
            granted=granted(goal.granted, named),
        )
        spec = goal.spec(objective, await trio.to_thread.run_sync(prompt))
        return await host.submit(spec, config, id=setting.run_id)

    return await drive(setting, toolbox, start)


def run_id_of(wanted: str | None) -> str:
    """Return the id of a new run: the one that is wanted, else a fresh one.

    Raises:
        UsageError: It is no id.
    """
    if wanted is not None and wanted.startswith("-"):
        raise UsageError("a run's id cannot begin with '-', since every command would take it for an option")
    try:
        return new_run_id(SystemClock().now_ns()) if wanted is None else check_run_id(wanted)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check_granted(granted: Sequence[str], toolbox: Toolbox) -> None:
    unknown = next((name for name in granted if name not in toolbox), None)
    if unknown is not None:
        raise UsageError(f"there is no tool {unknown!r}; the workspace gives {', '.join(toolbox)}")
