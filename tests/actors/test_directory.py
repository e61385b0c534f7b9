"""Which runs a log holds, how each stands, and which one a person means."""

from __future__ import annotations

import pytest

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.directory import RunInfo, find_run, runs
from affidavit.actors.errors import AmbiguousRun, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.stream import Stream
from tests.actors.fakes import JumpingClock


async def record(log: MemoryLog, run_id: str, started: int, *events: Event) -> None:
    """Record a run that began at a time."""
    stream = Stream(log, MemoryBus(), run_id, JumpingClock(started))
    await stream.append(Event(Kind.SESSION_STARTED, text=f"objective of {run_id}"))
    for event in events:
        await stream.append(event)


async def test_runs_are_listed_oldest_first_with_their_state(  # its own words are the expected values
) -> None:
    """Converged, stalled, unfinished and reopened runs, as the log's index and first event say; inboxes are no runs."""
    log = MemoryLog()
    await record(
        log, "b-new", 30, Event(Kind.CONVERGED, text="ok"), Event(Kind.RECORD_SEALED, detail={"size": 2})
    )
    await record(log, "a-old", 10, Event(Kind.STALLED, err="no"))
    await record(log, "c-mid", 20, Event(Kind.CONVERGED, text="ok"), Event(Kind.USER_MESSAGE, text="more"))
    await record(log, "a-old.inbox", 5)
    assert await runs(log) == (
        RunInfo("a-old", "objective of a-old", 10, "stalled", 2, 0, 2),
        RunInfo("c-mid", "objective of c-mid", 20, "unfinished", 3, 0, 3),
        RunInfo("b-new", "objective of b-new", 30, "converged", 2, 2, 3),
    )
    assert await find_run(log, "@last") == "b-new"


async def test_a_run_is_found_by_its_whole_id_or_a_unique_prefix() -> None:
    """A whole id wins over being another one's prefix."""
    log = MemoryLog()
    for number, run_id in enumerate(("abc", "abcd", "abce", "x1", "x1.inbox")):
        await record(log, run_id, number)
    assert await find_run(log, "abc") == "abc"
    assert await find_run(log, "abcd") == "abcd"
    assert await find_run(log, "x") == "x1"
    with pytest.raises(AmbiguousRun, match="3 runs begin with 'ab': abc, abcd, abce"):
        await find_run(log, "ab")
    for unknown in ("z", "", "x1.", "x1.inbox", "ABC", "%", "*"):
        with pytest.raises(UnknownRun):
            await find_run(log, unknown)


async def test_the_last_run_of_an_empty_store_is_unknown() -> None:
    """With a sentence that says so."""
    with pytest.raises(UnknownRun, match="holds no run yet"):
        await find_run(MemoryLog(), "@last")
    assert await runs(MemoryLog()) == ()
