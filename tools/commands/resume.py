"""`affidavit resume`: go on with a run that was interrupted, from what its log says, or with all that were."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from affidavit.actors.directory import listed_runs
from affidavit.actors.errors import ResumeRefused, RunOwned
from affidavit.actors.event_json import to_json_line
from affidavit.actors.host import Host, Run
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.mission_config import MissionConfig
from affidavit.crypto.failures import AffidavitError
from affidavit.tools.choices import NO_CHOICES, Choices
from affidavit.tools.driving import drive
from affidavit.tools.errors import CONVERGED, INTERRUPTED, MISUSE, PARKED, STALLED, UsageError, notice
from affidavit.tools.handover import handover_lines
from affidavit.tools.output import Output
from affidavit.tools.place import Place, place_of
from affidavit.tools.recorded import AcceptChanges, Found, find, setting_of
from affidavit.tools.sealing import seal_run
from affidavit.tools.status import status_lines

# Of several exit codes the last of these counts.
_GRAVITY: Final = (CONVERGED, STALLED, PARKED, MISUSE)


async def resume(
    run_id: Annotated[
        str | None,
        Parameter(name="ID", help="A run's id, the unique beginning of one, or @last for the newest."),
    ] = None,
    /,
    *,
    every: Annotated[
        bool,
        Parameter(
            name="--all", help="Every run of this store that has not ended and nobody drives, one by one."
        ),
    ] = False,
    choices: Choices = NO_CHOICES,
    accept_changes: AcceptChanges = False,
) -> int:
    """Go on with a run that was interrupted, from what its log says.

    Nothing that had been done is done again. A run that has ended already is only
    sealed, if it was not. With --all, runs of other processes are left alone, and
    what cannot be gone on with is said and left as it is.

    Exit codes: 0 converged, 1 stalled or cancelled, 2 misuse or environment,
    4 parked until a person has approved a call, 130 interrupted. With --all, the
    gravest of them: 2, then 4, then 1.

    For example:

      affidavit resume @last --workspace .
      affidavit resume --all --no-wait
    """
    if (run_id is None) != every:
        raise UsageError("name one run to go on with, or --all")
    place = place_of(choices.store)
    if run_id is None:
        return await _every(place, choices, accept_changes=accept_changes)
    found = await find(place, run_id)
    if found.status.terminal:
        return await _tell_of_the_end(place, found, as_json=choices.as_json)
    return await _one(place, found, choices, accept_changes=accept_changes)


async def _one(place: Place, found: Found, choices: Choices, *, accept_changes: bool) -> int:
    setting, toolbox = await setting_of(place, found, choices)

    async def start(host: Host, config: MissionConfig) -> Run:
        try:
            run = await host.resume(setting.run_id, config, accept_changes=accept_changes)
        except ResumeRefused as error:
            raise UsageError(f"{error} (--accept-changes does)") from error
        notice(f"resuming run {run.id} after event {found.tip}, with {setting.model}")
        return run

    return await drive(setting, toolbox, start)


async def _every(place: Place, choices: Choices, *, accept_changes: bool) -> int:
    """Go on with every run that has not ended, oldest first, each to where it stops; an interruption ends it all."""
    async with open_sqlite_reader(place.runs) as log:
        # The oldest first.
        left = [run.id for run in reversed(await listed_runs(log)) if not run.info.terminal_seq]
    if not left:
        notice("no run of this store has been left unfinished")
    codes = [CONVERGED]
    for run_id in left:
        try:
            found = await find(place, run_id)
            if not found.status.terminal:
                codes.append(await _one(place, found, choices, accept_changes=accept_changes))
        except RunOwned:
            notice(f"run {run_id} is left alone: another process drives it")
        except AffidavitError as error:
            notice(f"run {run_id} was not gone on with: {error}")
            codes.append(MISUSE)
        if codes[-1] == INTERRUPTED:
            return INTERRUPTED
    return max(codes, key=_GRAVITY.index)


async def _tell_of_the_end(place: Place, found: Found, *, as_json: bool) -> int:
    notice(f"run {found.run_id} has ended already")
    known = len(found.events)
    if found.status.sealed_events < found.status.events:
        await seal_run(place, found.run_id)
        found = await find(place, found.run_id)
    output = Output()
    for event in found.events[known:] if as_json else ():
        await output.line(to_json_line(event))
    for line in (*status_lines(found.status), *handover_lines(place, found.run_id, found.events)):
        if as_json:
            notice(line)
        else:
            await output.line(line)
    return STALLED if found.status.err else CONVERGED
