"""`affidavit resume`: go on with a run that was interrupted, from what its log says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from affidavit.actors.conversation import fold
from affidavit.actors.directory import find_run
from affidavit.actors.errors import ResumeRefused
from affidavit.actors.event_json import to_json_line
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import Host, Run
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.projection import Projection, project
from affidavit.tools.agent_tools import agent_toolbox
from affidavit.tools.console.choice import Plain, wants_view
from affidavit.tools.driving import Setting, drive
from affidavit.tools.errors import CONVERGED, STALLED, UsageError, notice
from affidavit.tools.handover import handover_lines
from affidavit.tools.options import MODEL_VARIABLE, AsJson, RunId, SecretFile, Store, Wait, Workspace
from affidavit.tools.output import Output
from affidavit.tools.place import Place, place_of
from affidavit.tools.policies import PolicyFile, policy_of, say_doubts, tools_named
from affidavit.tools.sealing import seal_run
from affidavit.tools.status import status_lines


@dataclass(frozen=True, slots=True)
class _Found:
    run_id: str
    events: tuple[Event, ...]
    status: Projection


async def resume(  # noqa: PLR0913  # each is an option of its own
    run_id: RunId,
    /,
    *,
    model: Annotated[
        str | None,
        Parameter(
            name="--model",
            env_var=MODEL_VARIABLE,
            help="Which model, as for `affidavit run`; by default the one that the run began with.",
        ),
    ] = None,
    workspace: Workspace = None,
    policy: PolicyFile = None,
    accept_changes: Annotated[
        bool,
        Parameter(
            name="--accept-changes",
            help="Go on with another model, tools, policy or limits than the run began with; that is recorded.",
        ),
    ] = False,
    secret_file: SecretFile = None,
    wait: Wait = None,
    as_json: AsJson = False,
    plain: Plain = False,
    store: Store = None,
) -> int:
    """Go on with a run that was interrupted, from what its log says.

    Nothing that had been done is done again. A run that has ended already is only
    sealed, if it was not.

    Exit codes: 0 converged, 1 stalled or cancelled, 2 misuse or environment,
    4 parked until a person has approved a call, 130 interrupted.

    For example:

      affidavit resume @last --workspace .
    """
    place = place_of(store)
    found = await _find(place, run_id)
    if found.status.terminal:
        return await _tell_of_the_end(place, found, as_json=as_json)
    chosen = model or _recorded_model(found)
    tip = found.events[-1].seq
    named = policy_of(policy, workspace)
    spec = fold(found.events).spec
    toolbox = await agent_toolbox(
        workspace, tools_named(spec.tools if spec else None, named), place, secret_file
    )
    say_doubts(named, toolbox)
    setting = Setting(
        place,
        found.run_id,
        chosen,
        workspace,
        as_json,
        tip,
        policy=named,
        wait=wait,
        secret_file=secret_file,
        is_live=wants_view(plain=plain, as_json=as_json),
    )

    async def start(host: Host, config: MissionConfig) -> Run:
        try:
            run = await host.resume(setting.run_id, config, accept_changes=accept_changes)
        except ResumeRefused as error:
            raise UsageError(f"{error} (--accept-changes does)") from error
        notice(f"resuming run {run.id} after event {tip}, with {chosen}")
        return run

    return await drive(setting, toolbox, start)


async def _find(place: Place, text: str) -> _Found:
    async with open_sqlite_reader(place.runs) as log:
        run_id = await find_run(log, text)
        events = await history(log, run_id)
    return _Found(run_id, events, project(events))


def _recorded_model(found: _Found) -> str:
    started = next((event for event in found.events if event.kind == Kind.SESSION_STARTED), None)
    name = started.detail.get("model") if started is not None else None
    if not isinstance(name, str) or not name:
        raise UsageError(f"run {found.run_id} does not say with which model it began; name one with --model")
    return name


async def _tell_of_the_end(place: Place, found: _Found, *, as_json: bool) -> int:
    notice(f"run {found.run_id} has ended already")
    known = len(found.events)
    if found.status.sealed_events < found.status.events:
        await seal_run(place, found.run_id)
        found = await _find(place, found.run_id)
    output = Output()
    for event in found.events[known:] if as_json else ():
        await output.line(to_json_line(event))
    for line in (*status_lines(found.status), *handover_lines(place, found.run_id, found.events)):
        if as_json:
            notice(line)
        else:
            await output.line(line)
    return STALLED if found.status.err else CONVERGED
