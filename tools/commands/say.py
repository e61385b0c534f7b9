"""`affidavit say`: go on with a run that has ended, by saying something more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import trio
from cyclopts import Parameter

from affidavit.actors.asker import checked_words
from affidavit.actors.clock import SystemClock
from affidavit.actors.errors import ResumeRefused, RunGoing
from affidavit.actors.host import Host, Run
from affidavit.actors.inbox import InboxReader, Outcome, inbox_of, post, say_event
from affidavit.actors.logs.ownership import is_owned
from affidavit.actors.logs.port import Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.session_inbox import NOT_DRIVEN
from affidavit.actors.timer import DEFAULT_STREAM_POLL
from affidavit.tools.asking import OWNER_GRACE, OwnerSilent, Principal, principal_of
from affidavit.tools.choices import NO_CHOICES, Choices
from affidavit.tools.commands.watch import watch
from affidavit.tools.driving import drive
from affidavit.tools.errors import CONVERGED, STALLED, UsageError, notice
from affidavit.tools.options import RunId
from affidavit.tools.own_secrets import without_secrets
from affidavit.tools.place import Place, place_of
from affidavit.tools.recorded import AcceptChanges, Found, find, setting_of


async def say(
    run_id: RunId,
    text: Annotated[str, Parameter(name="TEXT", help="What to say, in words.")],
    /,
    *,
    principal: Principal = None,
    choices: Choices = NO_CHOICES,
    accept_changes: AcceptChanges = False,
) -> int:
    """Go on with a run that has ended, and watch it live until it has answered.

    The agent knows all that was said and done before, and what you say stands on
    the record in your name. The next seal extends the last. A run that another
    process keeps open is gone on with by that process, with its own options.

    Exit codes: 0 converged, 1 stalled or cancelled, 2 misuse or environment,
    4 parked until a person has approved a call, 130 interrupted.

    For example:

      affidavit say @last "Now in one sentence." --workspace .
    """
    place, who = place_of(choices.store), principal_of(principal)
    try:
        checked_words(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    found = await find(place, run_id)
    if not found.status.terminal:
        raise _going(found)
    asked = await _ask_owner(place, found, text, who)
    if asked.said:
        return await _follow(place, found, asked.said, as_json=choices.as_json, plain=choices.plain)
    setting, toolbox = await setting_of(place, found, choices)

    async def start(host: Host, config: MissionConfig) -> Run:
        try:
            run = await host.say(
                found.run_id,
                config,
                text,
                principal=who,
                accept_changes=accept_changes,
                causation_id=asked.request,
            )
        except ResumeRefused as error:
            raise UsageError(f"{error} (--accept-changes does)") from error
        except RunGoing:
            raise _going(found) from None
        notice(f"going on with run {run.id} after event {found.tip}, with {setting.model}")
        return run

    return await drive(setting, toolbox, start)


def _going(found: Found) -> UsageError:
    return UsageError(
        f"run {found.run_id} has not ended, and nothing can be said before; `affidavit resume` goes on with it"
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of asking the process that keeps a run open.

    Attributes:
        said: The seq of what it said; 0 if there is no such process, or it has let go of the run.
        request: The request's id, by which what is said is known; empty if nobody was asked.
    """

    said: int = 0
    request: str = ""


async def _ask_owner(place: Place, found: Found, text: str, who: str) -> _Asked:
    """Have it said by the process that keeps the run open, if there is one.

    Raises:
        OwnerSilent: That process did not answer in time.
        UsageError: It refused.
    """
    async with open_sqlite_log(place.runs, create=False) as log:
        if not await is_owned(log, found.run_id):
            return _Asked()
        # What nobody answers in time lapses, so that it is not said unawares when the run is taken up some day.
        expires = SystemClock().now_ns() + int(OWNER_GRACE * 1e9)
        asked = say_event(without_secrets(text), principal=who, expires=expires)
        seq = await post(log, found.run_id, asked, SystemClock())
        with trio.move_on_after(OWNER_GRACE):
            said = await _answered(log, found.run_id, seq)
            return _Asked(said, f"{inbox_of(found.run_id)}/{seq}")
    raise OwnerSilent(
        f"run {found.run_id} is kept open by another process, which has not answered within {OWNER_GRACE:g} s; "
        "nothing was said, and the request has lapsed"
    )


async def _answered(log: Log, run_id: str, seq: int) -> int:
    inbox = InboxReader(log, run_id)
    inbox.expect(seq)
    while True:
        owned = await is_owned(log, run_id)
        await inbox.catch_up()
        answer = inbox.answers.get(seq)
        if answer is not None and answer.outcome == Outcome.DONE:
            return answer.seq
        if answer is not None and answer.code != NOT_DRIVEN:
            raise UsageError(f"nothing was said on run {run_id}: {answer.reason or answer.code}")
        if not owned:
            return 0
        await trio.sleep(DEFAULT_STREAM_POLL)


async def _follow(place: Place, found: Found, said: int, *, as_json: bool, plain: bool) -> int:
    """Show what the owner makes of it, and return how it ended."""
    notice(f"run {found.run_id} is gone on with by the process that keeps it open")
    code = await watch(found.run_id, after=said, as_json=as_json, plain=plain, store=place.folder)
    if code != CONVERGED:
        return code
    ended = await find(place, found.run_id)
    return STALLED if ended.status.err else CONVERGED
