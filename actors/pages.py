"""Reads the rows of a run a page at a time, from either end, every one of them: a row that is missing is an error.

It keeps no page, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from affidavit.actors.errors import StoreDamaged
from affidavit.actors.events import Event
from affidavit.actors.history import event_of
from affidavit.actors.logs.port import LogReader, Row

_PAGE: Final = 256

# Told how many of how many events are done.
Progress = Callable[[int, int], None]


async def each_page(
    log: LogReader,
    run_id: str,
    size: int,
    take: Callable[[list[bytes]], None],
    progress: Progress | None,
) -> None:
    """Hand over the bytes of events 1 to `size`, a page at a time.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        size: The seq of the last event.
        take: Given the bytes of each page's events.
        progress: Told how far it has come.

    Raises:
        StoreDamaged: A row is missing.
        LogError: The log could not be read.

    Cancellation: a checkpoint per page of rows.
    """
    done = 0
    while done < size:
        rows = await page(log, run_id, done, min(done + _PAGE, size))
        take([row.data for row in rows])
        done += len(rows)
        if progress is not None:
            progress(done, size)


async def last_event(
    log: LogReader, run_id: str, between: tuple[int, int], wanted: Callable[[Event], bool]
) -> Event | None:
    """Return the last event that is wanted, after one seq and up to another; it looks from the end.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        between: The two seqs.
        wanted: Tells whether it is the one.

    Raises:
        StoreDamaged: A row is missing, or holds another event than its place says.
        VerificationError: A row is not one canonical event.
        LogError: The log could not be read.

    Cancellation: a checkpoint per page of rows.
    """
    after, end = between
    while end > after:
        start = max(after, end - _PAGE)
        for row in reversed(await page(log, run_id, start, end)):
            event = event_of(row, run_id)
            if wanted(event):
                return event
        end = start
    return None


async def page(log: LogReader, run_id: str, after: int, upto: int) -> tuple[Row, ...]:
    """Return the rows after one seq up to another, every one of them.

    Raises:
        StoreDamaged: One is missing.
        LogError: The log could not be read.
    """
    rows = await log.read(run_id, after, upto - after)
    for seq in range(after + 1, upto + 1):
        if len(rows) < seq - after or rows[seq - after - 1].seq != seq:
            raise StoreDamaged(f"the store is damaged: event {seq} of run {run_id} is missing")
    return rows
