"""Brakes every run of a log that has not ended: those that this program may take, and, by way of their inboxes, all others.

Crash states. Some runs are braked and others are not; pulling the brake again brakes the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from affidavit.actors.asker import checked_asker
from affidavit.actors.buses.port import Bus, inbox_subject
from affidavit.actors.clock import Clock
from affidavit.actors.errors import RunFinished, RunOwned
from affidavit.actors.events import Event
from affidavit.actors.inbox import INBOX_SUFFIX, brake_event, post
from affidavit.actors.logs.ownership import is_owned
from affidavit.actors.logs.port import Log
from affidavit.actors.session_handle import Session
from affidavit.crypto.failures import AffidavitError


@dataclass(frozen=True, slots=True)
class Braked:
    """What came of it for one run.

    Attributes:
        run_id: The run.
        event: The event on its record; None while its owner has only been asked.
        request: The seq of the request in its inbox, if its owner was asked; else 0.
        trouble: Why it could not be braked; empty where it was, or its owner was asked.
    """

    run_id: str
    event: Event | None
    request: int = 0
    trouble: str = ""


async def brake_all(
    log: Log,
    bus: Bus,
    clock: Clock,
    take: Callable[[str], AbstractAsyncContextManager[Session]],
    *,
    principal: str,
    reason: str,
    engage: bool,
) -> tuple[Braked, ...]:
    """Pull the brake of every run that has not ended, or let it go. Nobody's answer is waited for.

    Args:
        log: Where the runs are.
        bus: Where owners are woken.
        clock: Times the requests.
        take: Gives the session of a run, or raises `RunOwned`.
        principal: Who asks.
        reason: Why.
        engage: Whether to pull it or to let it go.

    Returns:
        What came of it, run by run; a run that has ended meanwhile is left out.

    Raises:
        ValueError: It names nobody, or cannot be recorded so; see `affidavit.actors.asker`.
        LogError: The runs could not be listed.

    Cancellation: what is done by then stands.
    """
    checked_asker(principal, reason)
    found: list[Braked] = []
    for run_id in await _those_that_act_first(log):
        try:
            async with take(run_id) as session:
                event = await session.brake(principal=principal, reason=reason, engage=engage)
            found.append(Braked(run_id, event))
        except RunOwned:
            request = brake_event(engage=engage, principal=principal, reason=reason)
            found.append(Braked(run_id, None, await post(log, run_id, request, clock)))
            bus.publish(inbox_subject(run_id))
        except RunFinished:
            continue
        except AffidavitError as error:
            # A run that cannot be read, or not be written, must not keep the others from being stopped.
            found.append(Braked(run_id, None, trouble=str(error)))
    return tuple(found)


async def _those_that_act_first(log: Log) -> list[str]:
    """Return the runs that have not ended, those first that somebody drives: to take up another one means to read it all."""
    going = [info.stream for info in await log.list() if not info.terminal_seq]
    owned: dict[str, bool] = {}
    for run_id in going:
        if not run_id.endswith(INBOX_SUFFIX):
            owned[run_id] = await is_owned(log, run_id)
    return sorted(owned, key=lambda run_id: not owned[run_id])
