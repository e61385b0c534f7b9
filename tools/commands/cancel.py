"""`affidavit cancel`: end a run, whoever drives it, with who asked and why on its record."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from affidavit.actors.directory import find_run
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import Outcome, request_event
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import project
from affidavit.actors.session_inbox import FINISHED
from affidavit.tools.asking import Principal, principal_of, take_or_ask
from affidavit.tools.errors import CONVERGED, STALLED, UsageError, notice
from affidavit.tools.options import RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.own_secrets import without_secrets
from affidavit.tools.place import Place, place_of
from affidavit.tools.status import status_lines


async def cancel(
    run_id: RunId,
    /,
    *,
    reason: Annotated[str, Parameter(name="--reason", help="Why, as the record will say.")] = "",
    principal: Principal = None,
    store: Store = None,
) -> int:
    """End a run for good, with who asked and why on its record.

    A run that another process drives is ended by that process, which is asked and
    answers. One that nobody drives is ended here. To stop a run and go on with it
    later, interrupt it instead.

    Exit codes: 0 cancelled, 1 it had ended already, 2 misuse or environment.

    For example:

      affidavit cancel @last --reason "wrong folder"
    """
    place = place_of(store)
    who, why = principal_of(principal, reason), without_secrets(reason) or "cancelled on request"
    whole_id, events = await _look(place, run_id)
    if project(events).terminal:
        notice(f"run {whole_id} has ended already")
        return STALLED

    async def take() -> None:
        async with open_sqlite_log(place.runs, create=False) as log, open_host(log) as host:
            await host.cancel(whole_id, principal=who, reason=why)

    asked = request_event(Kind.REQUEST_CANCEL, principal=who, reason=why)
    answer = await take_or_ask(place, whole_id, asked, take)
    if answer.outcome != Outcome.DONE and answer.code != FINISHED:
        raise UsageError(f"run {whole_id} was not cancelled: {answer.reason or answer.code}")
    _, events = await _look(place, whole_id)
    status = project(events)
    output = Output()
    for line in (f"run {whole_id}", *status_lines(status)):
        await output.line(line)
    if answer.outcome != Outcome.DONE:
        notice(f"run {whole_id} had ended already")
        return STALLED
    if status.sealed_events < status.events:
        notice(
            f"not all of its record is sealed yet; if nobody does, this does:\n{place.line('seal', whole_id)}"
        )
    return CONVERGED


async def _look(place: Place, run_id: str) -> tuple[str, tuple[Event, ...]]:
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
        return whole_id, await history(log, whole_id)
