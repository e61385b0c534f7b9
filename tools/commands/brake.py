"""`affidavit brake`: the kill switch. Whatever is under way ends, and everything after it is refused, on the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

from affidavit.actors.directory import find_run
from affidavit.actors.errors import RunFinished
from affidavit.actors.host import open_host
from affidavit.actors.inbox import Answer, Outcome, brake_event
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.session_inbox import FINISHED
from affidavit.tools.asking import (
    OWNER_GRACE,
    OwnerSilent,
    Principal,
    await_answers,
    principal_of,
    take_or_ask,
)
from affidavit.tools.errors import CONVERGED, STALLED, UsageError, notice
from affidavit.tools.options import Store
from affidavit.tools.output import Output
from affidavit.tools.own_secrets import without_secrets
from affidavit.tools.place import Place, place_of


async def brake(
    run_id: Annotated[
        str | None,
        Parameter(name="ID", help="A run's id, the unique beginning of one, or @last for the newest."),
    ] = None,
    /,
    *,
    every: Annotated[
        bool, Parameter(name="--all", help="Every run of this store that has not ended.")
    ] = False,
    release: Annotated[bool, Parameter(name="--release", help="Let the brake go again.")] = False,
    reason: Annotated[str, Parameter(name="--reason", help="Why, as the record will say.")] = "",
    principal: Principal = None,
    store: Store = None,
) -> int:
    """Stop a run from doing anything further, at once.

    At most the action that is under way ends; each further one is refused, and the
    record says so. A run that is being driven then ends as stalled, braked by the
    process that drives it. One that nobody drives does nothing when it is resumed,
    unless the brake is released before.

    Exit codes: 0 every run named is braked, 1 one had ended already, could not be
    braked, or its process has not answered, 2 misuse or environment.

    For example:

      affidavit brake @last --reason "it pays the wrong people"
      affidavit brake --all
      affidavit brake @last --release
    """
    if (run_id is None) != every:
        raise UsageError("name one run to brake, or --all")
    place, who = place_of(store), principal_of(principal, reason)
    reason = without_secrets(reason)
    done = "released" if release else "braked"
    if run_id is None:
        return await _every(place, who, reason, done, engage=not release)
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
    try:
        answer = await _one(place, whole_id, who, reason, engage=not release)
    except OwnerSilent as error:
        notice(f"run {whole_id} was NOT {done}: {error}")
        return STALLED
    if answer.code == FINISHED:
        notice(f"run {whole_id} has ended already; `affidavit replay` shows how")
        return STALLED
    if answer.outcome != Outcome.DONE:
        raise UsageError(
            f"run {whole_id} was not {done}: {answer.reason or answer.code}; `affidavit replay` shows how it stands"
        )
    await Output().line(f"run {whole_id} {done}, by {who}")
    return CONVERGED


async def _one(place: Place, run_id: str, who: str, reason: str, *, engage: bool) -> Answer:
    async def take() -> None:
        async with open_sqlite_log(place.runs, create=False) as log, open_host(log) as host:
            await host.brake(run_id, principal=who, reason=reason, engage=engage)

    try:
        return await take_or_ask(
            place, run_id, brake_event(engage=engage, principal=who, reason=reason), take
        )
    except RunFinished as error:
        return Answer(Outcome.REFUSED, FINISHED, str(error))


async def _every(place: Place, who: str, reason: str, done: str, *, engage: bool) -> int:
    async with open_sqlite_log(place.runs, create=False) as log, open_host(log) as host:
        braked = await host.brake_all(principal=who, reason=reason, engage=engage)
        asked = {each.run_id: each.request for each in braked if each.request}
        answers = await await_answers(log, asked)
    if not braked:
        notice("no run of this store is unfinished; `affidavit sessions` lists them all")
    output, all_done = Output(), True
    for each in braked:
        trouble = _trouble(each.run_id, answers) if each.request else each.trouble
        if trouble:
            all_done = False
            notice(f"run {each.run_id} was NOT {done}: {trouble}")
        else:
            await output.line(f"run {each.run_id} {done}, by {who}")
    return CONVERGED if all_done else STALLED


def _trouble(run_id: str, answers: Mapping[str, Answer]) -> str:
    """Return why a run whose owner was asked is not braked; empty if it is."""
    answer = answers.get(run_id)
    if answer is None:
        return f"its process has not answered within {OWNER_GRACE:g} s; the request stands"
    return "" if answer.outcome == Outcome.DONE else answer.reason or answer.code
