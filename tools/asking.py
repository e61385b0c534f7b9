"""Asks the owner of a run for something, from another process: by way of the run's inbox, or as its owner if it has none.

Nothing here fences the owner: it finds the request, does what was asked in its own name, and answers.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeAlias

import trio
from cyclopts import Parameter

from affidavit.actors.clock import SystemClock
from affidavit.actors.errors import RunOwned
from affidavit.actors.events import Event
from affidavit.actors.inbox import Answer, InboxReader, Outcome, post
from affidavit.actors.logs.port import Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.timer import DEFAULT_STREAM_POLL
from affidavit.tools.errors import UsageError
from affidavit.tools.place import Place

# How long a living owner is waited for: many times what one that can answer needs, and a seal of a long run takes a while.
OWNER_GRACE: Final = 30.0
# After so many looks at the inbox without an answer, whether the owner has gone is tried.
_LOOKS: Final = 4

Principal: TypeAlias = Annotated[
    str | None,
    Parameter(name="--as", help="Who asks, as the record will say; by default your name on this system."),
]


def principal_of(name: str | None) -> str:
    """Return who asks: the name given, else the operating system's name of this user.

    Raises:
        UsageError: The name given is blank.
    """
    if name is not None:
        if not name.strip():
            raise UsageError("--as names who asks, so it cannot be blank")
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


async def take_or_ask(
    place: Place, run_id: str, request: Event, take: Callable[[], Awaitable[object]]
) -> Answer:
    """Do something to a run as its owner if nobody owns it, else have its owner do it.

    Args:
        place: The store.
        run_id: The run's whole id.
        request: What is asked of the owner.
        take: Does it as the owner, having first carried out what stands in the inbox; raises `RunOwned` if there is one.

    Returns:
        What became of it.

    Raises:
        UsageError: The owner did not answer in time; the request stands.
        AffidavitError: It failed.
    """
    async with open_sqlite_log(place.runs, create=False) as log:
        if not await _is_owned(log, run_id):
            try:
                await take()
                return Answer(Outcome.DONE)
            except RunOwned:
                # Somebody was quicker; that one is asked.
                pass
        seq = await post(log, run_id, request, SystemClock())
        inbox = InboxReader(log, run_id)
        inbox.expect(seq)
        with trio.move_on_after(OWNER_GRACE):
            return await _await_answer(log, run_id, seq, inbox, take)
    raise UsageError(
        f"run {run_id} is being driven by another process, which has not answered within {OWNER_GRACE:g} s; "
        "the request stands, and is carried out when that process goes on or the run is resumed"
    )


async def _await_answer(
    log: Log, run_id: str, seq: int, inbox: InboxReader, take: Callable[[], Awaitable[object]]
) -> Answer:
    looks = 0
    while True:
        await inbox.catch_up()
        answer = inbox.answers.get(seq)
        if answer is not None:
            return answer
        looks += 1
        if looks % _LOOKS == 0 and not await _is_owned(log, run_id):
            try:
                # The owner has gone. Whoever takes the run carries out what stands in its inbox, this request among it.
                await take()
            except RunOwned:
                continue
        else:
            await trio.sleep(DEFAULT_STREAM_POLL)


async def _is_owned(log: Log, run_id: str) -> bool:
    try:
        async with log.own(run_id):
            return False
    except RunOwned:
        return True
