"""Finds runs in a log: which there are, how each stands, and which one a person means."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.approvals import waiting
from affidavit.actors.codec import decode
from affidavit.actors.errors import AmbiguousRun, UnknownRun
from affidavit.actors.events import RECORD_KINDS, Event, Kind
from affidavit.actors.inbox import INBOX_SUFFIX
from affidavit.actors.logs.port import LogReader, StreamInfo

LAST = "@last"
_SHOWN = 3
_SLICE = 4
# While a run waits little else happens on it, so a request stands near its end.
_RECENT = 64


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run as a list shows it.

    Attributes:
        id: The run's id.
        objective: What it was asked to do.
        started: When, Unix nanoseconds, as recorded.
        state: `converged`, `stalled`, or `unfinished`.
        events: The seq of its last event that is not about the record: what a seal has to cover.
        sealed: How many of them its last seal covers.
        tip: How many events its stream holds, those about the record included.
        waits_for: The calls that wait for a person, among the last events of a run that has not ended.
    """

    id: str
    objective: str
    started: int
    state: str
    events: int
    sealed: int
    tip: int
    waits_for: tuple[int, ...] = ()


async def runs(log: LogReader) -> tuple[RunInfo, ...]:
    """Return every run in the log, oldest first. Inboxes are not runs."""
    found = [await _describe(log, info) for info in await _streams(log)]
    return tuple(sorted(found, key=lambda run: (run.started, run.id)))


async def find_run(log: LogReader, text: str) -> str:
    """Return the id of the run that a person means by a unique prefix, a whole id, or `@last` for the newest.

    Raises:
        UnknownRun: No run is meant by it.
        AmbiguousRun: Several are; the message names some.
    """
    if text == LAST:
        every = await runs(log)
        if not every:
            raise UnknownRun("this store holds no run yet")
        return every[-1].id
    meant = [info.stream for info in await _streams(log, text)] if text else []
    if text in meant:
        return text
    if not meant:
        raise UnknownRun(f"no run begins with {text!r}; `affidavit sessions` lists them")
    if len(meant) > 1:
        shown = ", ".join(meant[:_SHOWN]) + (", ..." if len(meant) > _SHOWN else "")
        raise AmbiguousRun(f"{len(meant)} runs begin with {text!r}: {shown}")
    return meant[0]


async def _streams(log: LogReader, prefix: str = "") -> list[StreamInfo]:
    return [info for info in await log.list(prefix) if not info.stream.endswith(INBOX_SUFFIX)]


async def _describe(log: LogReader, info: StreamInfo) -> RunInfo:
    first = await _event(log, info.stream, 1)
    terminal = await _event(log, info.stream, info.terminal_seq) if info.terminal_seq else None
    events = await _last_of_the_run(log, info)
    state = (
        "unfinished" if terminal is None else "converged" if terminal.kind == Kind.CONVERGED else "stalled"
    )
    return RunInfo(
        id=info.stream,
        objective=first.text if first else "",
        started=first.time if first else 0,
        state=state,
        events=events,
        sealed=min(info.sealed_size, events),
        tip=info.tip,
        waits_for=() if info.terminal_seq else await _waits_for(log, info),
    )


async def _last_of_the_run(log: LogReader, info: StreamInfo) -> int:
    """Return the seq of the last event that is not about the record. Few stand behind it, so this looks from the end."""
    last = info.tip
    while last:
        after = max(0, last - _SLICE)
        for row in reversed(await log.read(info.stream, after, last - after)):
            if decode(row.data).kind not in RECORD_KINDS:
                return row.seq
        last = after
    return 0


async def _waits_for(log: LogReader, info: StreamInfo) -> tuple[int, ...]:
    recent = await log.read(info.stream, max(0, info.tip - _RECENT), _RECENT)
    return tuple(approval.call for approval in waiting(decode(row.data) for row in recent))


async def _event(log: LogReader, stream: str, seq: int) -> Event | None:
    found = await log.read(stream, seq - 1, 1)
    return decode(found[0].data) if found else None
