"""Whether somebody owns a run just now, asked by trying to: what holds the moment it is answered, and not a promise."""

from __future__ import annotations

from affidavit.actors.errors import RunOwned
from affidavit.actors.logs.port import Log


async def is_owned(log: Log, run_id: str) -> bool:
    """Tell whether another owner, in this process or another, has the run.

    Raises:
        LogError: It could not be told.
    """
    try:
        async with log.own(run_id):
            return False
    except RunOwned:
        return True
