"""Reads a run's events straight from the log: the whole of what is recorded, and no waiting for more."""

from __future__ import annotations

from affidavit.actors.codec import decode
from affidavit.actors.events import Event
from affidavit.actors.logs.port import LogReader, Row


async def history(log: LogReader, run_id: str) -> tuple[Event, ...]:
    """Return every recorded event of a run, in order; empty for an unknown run.

    Raises:
        VerificationError: A stored row is not one canonical event.
        LogError: The log could not be read.

    Cancellation: a checkpoint per batch of rows.
    """
    return tuple(decode(row.data) for row in await rows(log, run_id))


async def rows(log: LogReader, run_id: str, *, upto: int | None = None) -> tuple[Row, ...]:
    """Return a run's stored rows 1..upto, all that there are by default."""
    found: list[Row] = []
    while upto is None or len(found) < upto:
        batch = await log.read(run_id, len(found))
        if not batch:
            break
        found.extend(batch)
    return tuple(found[:upto])
