"""Asks the owner of a run for something, from another process: by way of the run's inbox, or as its owner if it has none.

Nothing here fences the owner: it finds the request, does what was asked in its own name, and answers.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Annotated, Final, TypeAlias

import trio
from cyclopts import Parameter

from affidavit.actors.asker import checked_asker
from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.errors import RunOwned
from affidavit.actors.events import Event
from affidavit.actors.inbox import Answer, InboxReader, Outcome, post
from affidavit.actors.logs.ownership import is_owned
from affidavit.actors.logs.port import Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.session import open_session
from affidavit.actors.timer import DEFAULT_STREAM_POLL
from affidavit.tools.errors import UsageError
from affidavit.tools.own_secrets import without_secrets
from affidavit.tools.place import Place
from affidavit.tools.progress import open_wait

# How long a living owner is waited for: many times what one that can answer needs, and a seal of a long run takes a while.
OWNER_GRACE: Final = 30.0
# After so many looks at the inbox without an answer, whether the owner has gone is tried.
_LOOKS: Final = 4


class OwnerSilent(UsageError):
    """The process that drives a run has not answered in time; what was asked of it stands in the run's inbox."""


Principal: TypeAlias = Annotated[
    str | None,
    Parameter(name="--as", help="Who asks, as the record will say; by default your name on this system."),
]


def principal_of(name: str | None, reason: str = "") -> str:
    """Return who asks: the name given, without what is known to be secret, else the operating system's name of this user.

    Raises:
        UsageError: The name given is blank, or it or the reason is none that can be recorded.
    """
    if name is not None and not name.strip():
        raise UsageError("--as names who asks, so it cannot be blank")
    try:
        return checked_asker(system_name() if name is None else without_secrets(name), reason)
    except ValueError as error:
        raise UsageError(str(error)) from None


def system_name() -> str:
    """Return the operating system's name of this user, or the number where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


async def take_or_ask(
    place: Place,
    run_id: str,
    request: Event,
    take: Callable[[], Awaitable[object]],
    *,
    needs_signer: bool = False,
) -> Answer:
    """Do something to a run as its owner if nobody owns it, else have its owner do it; a wait for that is shown on a terminal.

    Args:
        place: The store.
        run_id: The run's whole id.
        request: What is asked of the owner.
        take: Does it as the owner, having first carried out what stands in the inbox; raises `RunOwned` if there is one.
        needs_signer: Whether only `take` can carry out such a request, so that it stands in where the owner has gone.

    Returns:
        What became of it.

    Raises:
        OwnerSilent: The owner did not answer in time; the request stands.
        AffidavitError: It failed.
    """
    async with open_sqlite_log(place.runs, create=False) as log:
        if not await is_owned(log, run_id):
            try:
                await take()
                return Answer(Outcome.DONE)
            except RunOwned:
                # Somebody was quicker; that one is asked.
                pass
        seq = await post(log, run_id, request, SystemClock())
        inbox = InboxReader(log, run_id)
        inbox.expect(seq)
        with trio.move_on_after(OWNER_GRACE), ExitStack() as shown:
            shown.enter_context(open_wait("the process that drives the run", OWNER_GRACE))

            async def attend() -> None:
                # Whoever takes the run may ask for a passphrase on the same terminal, and shows what it does itself.
                shown.close()
                await (take() if needs_signer else _attend(log, run_id))

            return await _await_answer(log, run_id, seq, inbox, attend)
    raise OwnerSilent(
        f"run {run_id} is being driven by another process, which has not answered within {OWNER_GRACE:g} s; "
        "the request stands, and is carried out when that process goes on or the run is resumed"
    )


async def _await_answer(
    log: Log, run_id: str, seq: int, inbox: InboxReader, attend: Callable[[], Awaitable[object]]
) -> Answer:
    looks = 0
    while True:
        await inbox.catch_up()
        answer = inbox.answers.get(seq)
        if answer is not None:
            return answer
        looks += 1
        if looks % _LOOKS == 0 and not await is_owned(log, run_id):
            try:
                # The owner has gone. Whoever takes the run carries out what stands in its inbox, this request among it.
                await attend()
            except RunOwned:
                continue
        else:
            await trio.sleep(DEFAULT_STREAM_POLL)


async def await_answers(log: Log, asked: Mapping[str, int]) -> dict[str, Answer]:
    """Wait for the owners of several runs together, for as long as one is waited for.

    Args:
        log: Where the runs are.
        asked: The seq of the request in each run's inbox, by run.

    Returns:
        The answers that have come, by run. A run whose owner has gone is taken, and its inbox attended to.

    Raises:
        LogError: The log could not be read, or not be written.
    """
    inboxes = {run_id: InboxReader(log, run_id) for run_id in asked}
    answers: dict[str, Answer] = {}
    looks = 0
    with trio.move_on_after(OWNER_GRACE):
        while len(answers) < len(asked):
            looks += 1
            for run_id in asked.keys() - answers.keys():
                answer = await _look(
                    log, run_id, asked[run_id], inboxes[run_id], try_owner=looks % _LOOKS == 0
                )
                if answer is not None:
                    answers[run_id] = answer
            await trio.sleep(DEFAULT_STREAM_POLL)
    return answers


async def _look(log: Log, run_id: str, seq: int, inbox: InboxReader, *, try_owner: bool) -> Answer | None:
    inbox.expect(seq)
    await inbox.catch_up()
    if seq not in inbox.answers and try_owner and not await is_owned(log, run_id):
        try:
            await _attend(log, run_id)
        except RunOwned:
            return None
        await inbox.catch_up()
    return inbox.answers.get(seq)


async def _attend(log: Log, run_id: str) -> None:
    """Carry out, as the owner, what stands in a run's inbox."""
    async with open_session(log, MemoryBus(), id=run_id) as session:
        await session.attend()
