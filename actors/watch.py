"""Follows a run from outside its owner: another task, another process, another terminal. Reads alone, and disturbs nobody.

There is no bus between processes here, so the poll floor is what drives it: the reader looks at the log every so often.
Where the log can tell in one number whether anything was written at all, the floor asks that first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus
from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.errors import LogError
from affidavit.actors.logs.port import LogReader, VersionedReader
from affidavit.actors.nurseries import open_owned_nursery
from affidavit.actors.readers import Readers
from affidavit.actors.subscription import Subscription
from affidavit.actors.timer import DEFAULT_STREAM_POLL


@asynccontextmanager
async def watch(
    log: LogReader,
    run_id: str,
    after_seq: int = 0,
    *,
    bus: Bus | None = None,
    clock: Clock | None = None,
    stream_poll: float = DEFAULT_STREAM_POLL,
) -> AsyncIterator[Subscription]:
    """Subscribe to a run that someone else owns: the backlog after `after_seq`, then the tail, each event once.

    Args:
        log: A reader of the log; read-only is enough.
        run_id: The run's whole id; one that does not exist yet is waited for.
        after_seq: The last seq already seen; 0 replays from the start.
        bus: A bus that carries the owner's wakes, if there is one.
        clock: Times the floor.
        stream_poll: Seconds between two looks at the log.

    Raises:
        ValueError: `after_seq` is negative.
        BaseException: The body's own exception, as itself.
    """
    readers = Readers(has_floor=True)
    floor = clock or SystemClock()

    async def tick() -> None:
        seen: int | None = None
        while True:
            await floor.sleep(stream_poll)
            now = await _version(log)
            if now is None or now != seen:
                readers.tick()
            seen = now

    async with open_owned_nursery() as nursery:
        nursery.start_soon(tick, name=f"floor of a reader of run {run_id}")
        async with readers.subscribe(log, bus or MemoryBus(), run_id, after_seq) as subscription:
            yield subscription


async def _version(log: LogReader) -> int | None:
    """Return what the log says of itself in one number; None if it cannot, so that the reader looks, and meets the reason."""
    if not isinstance(log, VersionedReader):
        return None
    try:
        return await log.version()
    except LogError:
        return None
