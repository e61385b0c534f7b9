"""`affidavit run`: give an agent an objective, show what it does, and leave a sealed record."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from affidavit.actors.clock import SystemClock
from affidavit.actors.host import Host, Run
from affidavit.actors.ids import check_run_id, new_run_id
from affidavit.actors.mission_config import MissionConfig
from affidavit.tools.beginning import begin_with
from affidavit.tools.choices import FirstChoices
from affidavit.tools.commands.goal_options import NO_GOAL_OPTIONS, GoalOptions
from affidavit.tools.driving import drive
from affidavit.tools.errors import UsageError
from affidavit.tools.place import place_of


async def run(
    objective: Annotated[str, Parameter(name="OBJECTIVE", help="What the agent is to do, in words.")],
    /,
    *,
    choices: FirstChoices,
    goal: GoalOptions = NO_GOAL_OPTIONS,
    id: Annotated[  # the contract's own name for it
        str | None, Parameter(name="--id", help="The run's id, instead of a fresh one.")
    ] = None,
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
    begun = await begin_with(place_of(choices.store), run_id_of(id), choices.model, choices, goal)
    run_id = begun.setting.run_id

    async def start(host: Host, config: MissionConfig) -> Run:
        if await host.log.info(run_id) is not None:
            raise UsageError(f"there is a run {run_id} already; `affidavit resume` goes on with it")
        return await host.submit(await begun.spec(objective, config), config, id=run_id)

    return await drive(begun.setting, begun.toolbox, start)


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
