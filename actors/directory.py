"""Finds runs in a log: which there are, newest first, and which one a person means. How one stands is told by `run_info`."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.errors import AmbiguousRun, LogStateUnknown, StoreDamaged, UnknownRun
from affidavit.actors.history import event_of
from affidavit.actors.inbox import INBOX_SUFFIX
from affidavit.actors.logs.port import LogReader, StreamInfo
from affidavit.crypto.failures import VerificationError

LAST = "@last"
NO_RUN = 'this store holds no run yet; `affidavit run "..."` makes the first'
_SHOWN = 3
# What a single run that cannot be read raises; the others can be read all the same.
UNREADABLE = (VerificationError, StoreDamaged, LogStateUnknown)


@dataclass(frozen=True, slots=True)
class Listed:
    """A run that a log holds.

    Attributes:
        info: Its row in the log's index.
        started: When it began, Unix nanoseconds, as its first event says; 0 where that cannot be read.
        trouble: Why its first event cannot be read; empty if it can.
    """

    info: StreamInfo
    started: int
    trouble: str = ""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.info.stream


async def listed_runs(log: LogReader) -> tuple[Listed, ...]:
    """Return every run in the log, newest first; those whose beginning cannot be read stand before all others.

    Inboxes are not runs. Of each run one event is read.

    Raises:
        LogError: The log could not be read.

    Cancellation: a checkpoint per run.
    """
    found = [await _listed(log, info) for info in await _streams(log)]
    return tuple(
        sorted(found, key=lambda run: (bool(run.trouble), run.started, run.id), reverse=True),
    )


async def find_run(log: LogReader, text: str) -> str:
    """Return the id of the run that a person means by a unique prefix, a whole id, or `@last` for the newest.

    Raises:
        UnknownRun: No run is meant by it.
        AmbiguousRun: Several are; the message names some.
        StoreDamaged: The newest is asked for, and of one run it cannot be read when it began.
    """
    if text == LAST:
        return await _newest(log)
    meant = [info.stream for info in await _streams(log, text)] if text else []
    if text in meant:
        return text
    if not meant:
        raise UnknownRun(f"no run begins with {text!r}; `affidavit sessions` lists them")
    if len(meant) > 1:
        shown = ", ".join(meant[:_SHOWN]) + (", ..." if len(meant) > _SHOWN else "")
        raise AmbiguousRun(f"{len(meant)} runs begin with {text!r}: {shown}; give more of the id")
    return meant[0]


async def _newest(log: LogReader) -> str:
    every = await listed_runs(log)
    if not every:
        raise UnknownRun(NO_RUN)
    newest = every[0]
    if newest.trouble:
        raise StoreDamaged(
            f"which run is the newest cannot be told, since run {newest.id} cannot be read ({newest.trouble}); "
            "name the run by its id, and see what `affidavit fsck` says"
        )
    return newest.id


async def _streams(log: LogReader, prefix: str = "") -> list[StreamInfo]:
    return [info for info in await log.list(prefix) if not info.stream.endswith(INBOX_SUFFIX)]


async def _listed(log: LogReader, info: StreamInfo) -> Listed:
    try:
        rows = await log.read(info.stream, 0, 1)
        if not rows or rows[0].seq != 1:
            return Listed(info, 0, "its first event is missing")
        return Listed(info, event_of(rows[0], info.stream).time)
    except UNREADABLE as error:
        return Listed(info, 0, str(error))
