"""`affidavit fork`: begin a new run that goes on from a point of another."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.asker import checked_words
from affidavit.actors.errors import ForkRefused
from affidavit.actors.host import Host, Run
from affidavit.actors.mission_config import MissionConfig
from affidavit.tools.choices import NO_CHOICES, Choices
from affidavit.tools.commands.run import run_id_of
from affidavit.tools.driving import drive
from affidavit.tools.errors import UsageError, notice
from affidavit.tools.options import RunId
from affidavit.tools.place import place_of
from affidavit.tools.recorded import find, setting_of


async def fork(
    run_id: RunId,
    text: Annotated[
        str, Parameter(name="TEXT", help="What to say there; without it, the agent goes on as it was.")
    ] = "",
    /,
    *,
    at: Annotated[
        int,
        Parameter(
            name="--at",
            validator=Number(gte=1),
            help="After which event of the run, by its number, it goes on.",
        ),
    ],
    id: Annotated[  # the contract's own name for it
        str | None, Parameter(name="--id", help="The new run's id, instead of a fresh one.")
    ] = None,
    choices: Choices = NO_CHOICES,
) -> int:
    """Begin a new run that goes on from a point of another, and watch it live.

    The agent knows what was said and done up to that event, and nothing of what
    came after. The other run is left as it is. The new one has its goal, limits and
    system prompt, and a signed checkpoint of its events up to there; nothing that
    was done, approved or sealed in it is taken over.

    Exit codes: 0 converged, 1 stalled or cancelled, 2 misuse or environment,
    4 parked until a person has approved a call, 130 interrupted.

    For example:

      affidavit fork @last "Try it without the cache." --at 12 --workspace .
    """
    if text:
        try:
            checked_words(text)
        except ValueError as error:
            raise UsageError(str(error)) from None
    place = place_of(choices.store)
    found = await find(place, run_id)
    setting, toolbox = await setting_of(place, found, choices)
    setting = replace(setting, run_id=run_id_of(id), after=0)

    async def start(host: Host, config: MissionConfig) -> Run:
        if await host.log.info(setting.run_id) is not None:
            raise UsageError(f"there is a run {setting.run_id} already")
        try:
            run = await host.fork(found.run_id, at, config, text, id=setting.run_id)
        except ForkRefused as error:
            raise UsageError(str(error)) from None
        notice(f"run {run.id} goes on from event {at} of run {found.run_id}, with {setting.model}")
        return run

    return await drive(setting, toolbox, start)
