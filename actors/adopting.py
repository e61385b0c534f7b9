"""Takes up every run of a log that has not ended and that nobody drives. A host does so if it is told to, and else leaves them.

Crash states. Some runs have been taken up and others have not; doing it again takes up the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from affidavit.actors.errors import LogClosed, RunOwned
from affidavit.actors.events import Event
from affidavit.actors.history import event_of
from affidavit.actors.host_runs import OpenRuntime, Run
from affidavit.actors.inbox import INBOX_SUFFIX
from affidavit.actors.logs.port import Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.crypto.failures import AffidavitError

# Given a run's session.started, says what is to drive it; None to leave the run as it is.
ConfigFor = Callable[[Event], MissionConfig | OpenRuntime | None]
Resume = Callable[[str, MissionConfig | OpenRuntime], Awaitable[Run]]


@dataclass(frozen=True, slots=True)
class Adopted:
    """What came of it for one run.

    Attributes:
        run_id: The run.
        run: The run as it is driven here; None if it is not.
        trouble: Why it is not; empty where it was taken up, or left by choice.
        is_owned: Whether that is since another owner has it.
    """

    run_id: str
    run: Run | None = None
    trouble: str = ""
    is_owned: bool = False


async def adopt(log: Log, config_for: ConfigFor, resume: Resume) -> tuple[Adopted, ...]:
    """Take up every run that has not ended, in the order of their ids. Those of other owners are left alone.

    Args:
        log: Where the runs are.
        config_for: Says what is to drive a run. What it raises of ours is that run's trouble.
        resume: Resumes a run.

    Returns:
        What came of it, run by run.

    Raises:
        LogError: The runs could not be listed, or the log has closed.

    Cancellation: what was taken up by then is driven.
    """
    found: list[Adopted] = []
    for info in await log.list():
        if info.terminal_seq or info.stream.endswith(INBOX_SUFFIX):
            continue
        try:
            found.append(await _take_up(log, info.stream, config_for, resume))
        except LogClosed:
            raise
        except RunOwned as error:
            found.append(Adopted(info.stream, trouble=str(error), is_owned=True))
        except AffidavitError as error:
            # One that cannot be read, or not be gone on with, must not keep the others from being taken up.
            found.append(Adopted(info.stream, trouble=str(error)))
    return tuple(found)


async def _take_up(log: Log, run_id: str, config_for: ConfigFor, resume: Resume) -> Adopted:
    (first,) = await log.read(run_id, 0, 1)
    config = config_for(event_of(first, run_id))
    if config is None:
        return Adopted(run_id)
    return Adopted(run_id, await resume(run_id, config))
