"""`affidavit cancel`: end a run, or one goal that it has handed work to, with who asked and why on its record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from cyclopts import Parameter

from affidavit.actors.directory import find_run
from affidavit.actors.events import Event, Kind
from affidavit.actors.fanout import FanoutState
from affidavit.actors.history import history
from affidavit.actors.host import Host, open_host
from affidavit.actors.inbox import Answer, Outcome, cancel_goal_event, request_event
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import Projection, project
from affidavit.actors.session_inbox import FINISHED
from affidavit.tools.asking import Principal, principal_of, take_or_ask
from affidavit.tools.errors import CONVERGED, STALLED, UsageError, notice
from affidavit.tools.goals import find_goal
from affidavit.tools.options import RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.own_secrets import without_secrets
from affidavit.tools.place import Place, place_of
from affidavit.tools.status import status_lines


async def cancel(
    run_id: RunId,
    /,
    *,
    goal: Annotated[
        str | None,
        Parameter(
            name="--goal",
            help="End only this goal that the run has handed work to, and those below it: its id, or the part behind the dot.",
        ),
    ] = None,
    reason: Annotated[str, Parameter(name="--reason", help="Why, as the record will say.")] = "",
    principal: Principal = None,
    store: Store = None,
) -> int:
    """End a run for good, with who asked and why on its record.

    A run that another process drives is ended by that process, which is asked and
    answers. One that nobody drives is ended here. To stop a run and go on with it
    later, interrupt it instead. With --goal the run itself goes on: it is told that
    this part of its work was cancelled.

    Exit codes: 0 cancelled, 1 it had ended already, 2 misuse or environment.

    For example:

      affidavit cancel @last --reason "wrong folder"
      affidavit cancel @last --goal 7 --reason "not needed any more"
    """
    place = place_of(store)
    who, why = principal_of(principal, reason), without_secrets(reason) or "cancelled on request"
    whole_id, events = await _look(place, run_id)
    status = project(events)
    if status.terminal:
        notice(f"run {whole_id} has ended already")
        return STALLED
    if goal is not None:
        return await _cancel_goal(place, whole_id, status, goal, who, why)
    asked = request_event(Kind.REQUEST_CANCEL, principal=who, reason=why)
    answer, _ = await _carry_out(
        place, whole_id, asked, lambda host: host.cancel(whole_id, principal=who, reason=why)
    )
    if answer.outcome != Outcome.DONE and answer.code != FINISHED:
        raise UsageError(f"run {whole_id} was not cancelled: {answer.reason or answer.code}")
    status = await _show(place, whole_id)
    if answer.outcome != Outcome.DONE:
        notice(f"run {whole_id} had ended already")
        return STALLED
    if status.sealed_events < status.events:
        notice(
            f"not all of its record is sealed yet; if nobody does, this does:\n{place.line('seal', whole_id)}"
        )
    return CONVERGED


async def _cancel_goal(place: Place, run_id: str, status: Projection, text: str, who: str, why: str) -> int:
    child = find_goal(status.fanout, run_id, text)
    if child.state is not FanoutState.RUNNING:
        notice(f"goal {child.id} has ended already")
        return STALLED
    asked = cancel_goal_event(child.id, principal=who, reason=why)
    answer, taken = await _carry_out(
        place, run_id, asked, lambda host: host.cancel_goal(run_id, child.id, principal=who, reason=why)
    )
    if answer.outcome != Outcome.DONE and answer.code != FINISHED:
        raise UsageError(f"goal {child.id} was not cancelled: {answer.reason or answer.code}")
    await _show(place, run_id)
    if answer.outcome != Outcome.DONE:
        notice(f"goal {child.id} had ended already")
        return STALLED
    if taken:
        notice(f"Nobody drives the run now. To go on with it:\n{place.line('resume', run_id)}")
    return CONVERGED


async def _carry_out(
    place: Place, run_id: str, asked: Event, do: Callable[[Host], Awaitable[object]]
) -> tuple[Answer, bool]:
    """Have it done; tell whether that was here, since nobody drives the run."""
    taken = False

    async def take() -> None:
        nonlocal taken
        async with open_sqlite_log(place.runs, create=False) as log, open_host(log) as host:
            await do(host)
            taken = True

    return await take_or_ask(place, run_id, asked, take), taken


async def _show(place: Place, run_id: str) -> Projection:
    """Say how the run stands now."""
    _, events = await _look(place, run_id)
    status, output = project(events), Output()
    for line in (f"run {run_id}", *status_lines(status)):
        await output.line(line)
    return status


async def _look(place: Place, run_id: str) -> tuple[str, tuple[Event, ...]]:
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
        return whole_id, await history(log, whole_id)
