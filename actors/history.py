"""Reads a run's events straight from the log: the whole of what is recorded, and no waiting for more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from affidavit.actors.codec import view
from affidavit.actors.errors import StoreDamaged
from affidavit.actors.events import Event
from affidavit.actors.logs.port import LogReader, Row
from affidavit.crypto.event import Envelope, decode_event

_PAGE: Final = 256


async def history(log: LogReader, run_id: str) -> tuple[Event, ...]:
    """Return every recorded event of a run, in order; empty for an unknown run.

    Raises:
        VerificationError: A stored row is not one canonical event.
        StoreDamaged: A row holds another event than its place says.
        LogError: The log could not be read.

    Cancellation: a checkpoint per batch of rows.
    """
    return tuple(event_of(row, run_id) for row in await rows(log, run_id))


def event_of(row: Row, run_id: str) -> Event:
    """Return the event that a row of a run holds, having checked that it belongs there.

    Raises:
        VerificationError: The row is not one canonical event.
        StoreDamaged: It is an event of another run, or of another place in this one.
    """
    return view(envelope_of(row, run_id))


def envelope_of(row: Row, run_id: str) -> Envelope:
    """Return the envelope of the event that a row of a run holds; raises as `event_of`."""
    envelope = decode_event(row.data)
    if (envelope.stream, envelope.seq) != (run_id, row.seq):
        raise StoreDamaged(
            f"the store is damaged: row {row.seq} of run {run_id} holds event {envelope.seq} of run {envelope.stream}"
        )
    return envelope


async def rows(log: LogReader, run_id: str, *, upto: int | None = None) -> tuple[Row, ...]:
    """Return a run's stored rows 1..upto, all that there are by default.

    Raises:
        StoreDamaged: One is missing.
        LogError: The log could not be read.
    """
    found: list[Row] = []
    while upto is None or len(found) < upto:
        batch = await log.read(run_id, len(found))
        if not batch:
            break
        for seq, row in enumerate(batch, len(found) + 1):
            if row.seq != seq:
                raise StoreDamaged(f"the store is damaged: event {seq} of run {run_id} is missing")
        found.extend(batch)
    return tuple(found[:upto])


async def each_row(log: LogReader, run_id: str, upto: int, take: Callable[[Row], Awaitable[None]]) -> None:
    """Hand over a run's stored rows 1..upto one by one, never holding more than a page of them.

    Raises:
        StoreDamaged: One is missing.
        LogError: The log could not be read.

    Cancellation: a checkpoint per page of rows, and whatever `take` does.
    """
    done = 0
    while done < upto:
        page = await log.read(run_id, done, min(_PAGE, upto - done))
        if not page:
            raise StoreDamaged(f"the store is damaged: event {done + 1} of run {run_id} is missing")
        for row in page:
            done += 1
            if row.seq != done:
                raise StoreDamaged(f"the store is damaged: event {done} of run {run_id} is missing")
            await take(row)
