"""How one run stands, as a list shows it: read from its index row, a few of its events, and what it waits for.

The rule: what cannot be read is said, with the reason, and never guessed. It reads and never writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from affidavit.actors.directory import UNREADABLE, Listed
from affidavit.actors.errors import StoreDamaged
from affidavit.actors.events import RECORD_KINDS, Event, FaultClass, Kind
from affidavit.actors.history import event_of
from affidavit.actors.logs.port import LogReader, StreamInfo
from affidavit.actors.open_requests import open_requests

_SLICE: Final = 4


class RunState(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    WAITING = "waiting"
    PARKED = "parked"
    CONVERGED = "converged"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run as a list shows it.

    Attributes:
        id: The run's id.
        state: `running` while somebody drives it, `waiting` where a call waits for a person, driven or not, `parked` where it
            has not ended and nobody drives it; `converged`, `stalled` or `cancelled` once it has ended; else `unreadable`.
        objective: What it was asked to do.
        started: When, Unix nanoseconds, as recorded.
        model: The model that it began with; empty where its record names none.
        events: The seq of its last event that is not about the record: what a seal has to cover.
        sealed: How many of them its last seal covers.
        tip: How many events its stream holds, those about the record included.
        waits_for: The calls that wait for a person, and have not expired.
        braked: Whether its brake is on.
        trouble: Why it, or a part of it, cannot be read; empty if it can.
    """

    id: str
    state: RunState = RunState.UNREADABLE
    objective: str = ""
    started: int = 0
    model: str = ""
    events: int = 0
    sealed: int = 0
    tip: int = 0
    waits_for: tuple[int, ...] = ()
    braked: bool = False
    trouble: str = ""


async def run_info(log: LogReader, run: Listed, *, is_owned: Callable[[str], bool], now: int) -> RunInfo:
    """Return how a run stands.

    Args:
        log: Where it is.
        run: The run.
        is_owned: Tells whether somebody drives a run just now.
        now: Unix nanoseconds; a request that has expired by then is waited for no more.

    Raises:
        LogError: The log could not be read, for another reason than that this run is damaged.

    Cancellation: a checkpoint per page of rows.
    """
    info = RunInfo(run.id, started=run.started, tip=run.info.tip, trouble=run.trouble)
    if run.trouble:
        return info
    try:
        info = _begun(info, await _event(log, run.id, 1))
        events = await _last_of_the_run(log, run.info)
        info = replace(info, events=events, sealed=min(run.info.sealed_size, events))
        if run.info.terminal_seq:
            return replace(info, state=_ended(await _event(log, run.id, run.info.terminal_seq)))
        found = await open_requests(log, run.id)
    except UNREADABLE as error:
        return replace(info, trouble=str(error))
    calls = tuple(each.call for each in found.undecided if each.expires > now)
    going = RunState.RUNNING if is_owned(run.id) else RunState.PARKED
    state = RunState.WAITING if calls and not found.braked else going
    return replace(info, state=state, waits_for=calls, braked=found.braked)


def _begun(info: RunInfo, first: Event) -> RunInfo:
    model = first.detail.get("model")
    return replace(info, objective=first.text, model=model if isinstance(model, str) else "")


def _ended(terminal: Event) -> RunState:
    if terminal.kind == Kind.CONVERGED:
        return RunState.CONVERGED
    return RunState.CANCELLED if terminal.error_class == FaultClass.CANCELLED else RunState.STALLED


async def _last_of_the_run(log: LogReader, info: StreamInfo) -> int:
    """Return the seq of the last event that is not about the record. Few stand behind it, so this looks from the end."""
    last = info.tip
    while last:
        after = max(0, last - _SLICE)
        for row in reversed(await log.read(info.stream, after, last - after)):
            if event_of(row, info.stream).kind not in RECORD_KINDS:
                return row.seq
        last = after
    return 0


async def _event(log: LogReader, run_id: str, seq: int) -> Event:
    rows = await log.read(run_id, seq - 1, 1)
    if not rows or rows[0].seq != seq:
        raise StoreDamaged(f"the store is damaged: event {seq} of run {run_id} is missing")
    return event_of(rows[0], run_id)
