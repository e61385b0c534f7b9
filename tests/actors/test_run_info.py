"""How a run stands, as a list shows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.directory import listed_runs
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Entry, Row, StreamInfo
from affidavit.actors.run_info import RunInfo, RunState, run_info
from affidavit.actors.stream import Stream
from tests.actors.fakes import JumpingClock

NOW = 1_000
BRAKE = Event(Kind.BRAKE_ENGAGED, principal="ann")


def asked(expires: int) -> Event:
    """A request that expires at a time."""
    return Event(
        Kind.APPROVAL_REQUESTED, action="pay", call=2, detail={"args": bytes(32), "expires": expires}
    )


async def standing(*events: Event, owned: bool = False) -> RunInfo:
    """How a run with these events stands."""
    log = MemoryLog()
    stream = Stream(log, MemoryBus(), "run", JumpingClock(5))
    await stream.append(Event(Kind.SESSION_STARTED, text="Pay it", detail={"model": "script:x"}))
    for event in events:
        await stream.append(event)
    (run,) = await listed_runs(log)
    return await run_info(log, run, is_owned=lambda _: owned, now=NOW)


@pytest.mark.parametrize(
    ("events", "owned", "state"),
    [
        ((), True, RunState.RUNNING),
        ((), False, RunState.PARKED),
        ((asked(2_000),), False, RunState.WAITING),
        ((asked(2_000),), True, RunState.WAITING),
        ((asked(500),), True, RunState.RUNNING),
        ((asked(2_000), BRAKE), False, RunState.PARKED),
        ((Event(Kind.CONVERGED, text="done"),), False, RunState.CONVERGED),
        ((Event(Kind.STALLED, err="no", error_class=FaultClass.TERMINAL),), False, RunState.STALLED),
        ((Event(Kind.STALLED, err="no", error_class=FaultClass.CANCELLED),), False, RunState.CANCELLED),
        ((Event(Kind.CONVERGED, text="done"), Event(Kind.USER_MESSAGE, text="more")), True, RunState.RUNNING),
    ],
)
async def test_each_state(events: tuple[Event, ...], owned: bool, state: RunState) -> None:
    """As the last events, the ownership and the time say; a request that has expired, or is braked, is not waited for."""
    assert (await standing(*events, owned=owned)).state is state


async def test_all_that_a_list_shows() -> None:
    """Objective, model and beginning from the first event; what a seal covers does not count events about the record."""
    info = await standing(
        asked(2_000), BRAKE, Event(Kind.RECORD_SEALED, detail={"size": 3}), Event(Kind.RECORD_VERIFIED)
    )
    assert info == RunInfo(
        "run", RunState.PARKED, "Pay it", 5, "script:x", 3, 3, tip=5, waits_for=(2,), braked=True
    )


class _Damaged:
    """A reader of a log in which one row holds something else than was written."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        rows = await self._log.read(stream, after_seq, limit)
        return tuple(Row(row.seq, b"\x00") if row.seq == 3 else row for row in rows)

    async def info(self, stream: str) -> StreamInfo | None:
        return await self._log.info(stream)

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        return await self._log.tips(streams)

    async def list(self, prefix: str = "") -> tuple[StreamInfo, ...]:
        return await self._log.list(prefix)


async def test_what_cannot_be_read_is_said() -> None:
    """A run whose later part is damaged keeps what is known of it, and its state is not guessed."""
    whole = MemoryLog()
    stream = Stream(whole, MemoryBus(), "run", JumpingClock(5))
    await stream.append(Event(Kind.SESSION_STARTED, text="Pay it"))
    await stream.append(asked(2_000), asked(2_000))
    log = _Damaged(whole)
    (run,) = await listed_runs(log)
    info = await run_info(log, run, is_owned=lambda _: True, now=NOW)
    assert (info.state, info.objective, bool(info.trouble)) == (RunState.UNREADABLE, "Pay it", True)


async def test_a_run_whose_beginning_is_damaged_is_unreadable() -> None:
    """Nothing of it is told but its id, its length, and why."""
    log = MemoryLog()
    await log.append([Entry("run", 0, (b"no event",))])
    (run,) = await listed_runs(log)
    info = await run_info(log, run, is_owned=lambda _: True, now=NOW)
    assert info == RunInfo("run", tip=1, trouble=info.trouble)
    assert info.trouble
