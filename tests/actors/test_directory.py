"""Which runs a log holds, how each stands, and which one a person means."""

from __future__ import annotations

import pytest

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.directory import find_run, listed_runs
from affidavit.actors.errors import AmbiguousRun, StoreDamaged, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.stream import Stream
from tests.actors.fakes import JumpingClock


async def record(log: MemoryLog, run_id: str, started: int, *events: Event) -> None:
    """Record a run that began at a time."""
    stream = Stream(log, MemoryBus(), run_id, JumpingClock(started))
    await stream.append(Event(Kind.SESSION_STARTED, text=f"objective of {run_id}"))
    for event in events:
        await stream.append(event)


async def test_runs_are_listed_newest_first() -> None:
    """By when their first event was recorded; inboxes are no runs."""
    log = MemoryLog()
    await record(log, "b-new", 30)
    await record(log, "a-old", 10)
    await record(log, "c-mid", 20)
    await record(log, "a-old.inbox", 40)
    found = await listed_runs(log)
    assert [(run.id, run.started, run.trouble) for run in found] == [
        ("b-new", 30, ""),
        ("c-mid", 20, ""),
        ("a-old", 10, ""),
    ]
    assert await find_run(log, "@last") == "b-new"


async def test_a_run_that_cannot_be_read_is_listed_and_is_never_taken_for_the_newest() -> None:
    """It stands first, with the reason; which run is the last cannot be told any more, and that is said."""
    log = MemoryLog()
    await record(log, "sound", 30)
    await log.append([Entry("broken", 0, (b"no event",))])
    broken, sound = await listed_runs(log)
    assert (broken.id, broken.started, bool(broken.trouble)) == ("broken", 0, True)
    assert (sound.id, sound.trouble) == ("sound", "")
    with pytest.raises(
        StoreDamaged, match=r"newest cannot be told, since run broken .* name the run by its id"
    ):
        await find_run(log, "@last")
    assert await find_run(log, "sou") == "sound"


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
    assert await listed_runs(MemoryLog()) == ()
