"""SIGKILL around the appends of a run whose goals work at the same time (S9, S10, G4, G6).

Another process takes the run to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from affidavit.actors.events import Kind
from affidavit.actors.fanout import FanoutState, RecordState
from affidavit.actors.projection import project
from tests.crash.fanout_victim import PAYMENTS
from tests.crash.test_kill import KILLED, Left, Victims, left, made, read_record
from tests.crash.victim import Order
from tests.environment import SOAK


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    """One forking program for all tests."""
    program = Victims("tests.crash.fanout_victim")
    yield program
    program.close()


def check_end(folder: Path, before: Left) -> Left:
    """Check a fan-out that has been taken to its end, against what stood before that."""
    after = left(folder)
    assert after.events[: len(before.events)] == before.events
    status = project(after.events)
    assert (status.terminal, status.err, status.result) == (True, "", "Settled.")
    assert sorted(child.objective for child in status.fanout) == ["below", "one", "two"]
    assert {child.state for child in status.fanout} == {FanoutState.DONE}
    assert {child.seal for child in status.fanout} == {RecordState.VERIFIED}
    assert max(after.effects.values()) == 1
    unknown = sum(
        event.result.startswith("interrupted") for event in after.events if event.kind == Kind.TOOL_RESULT
    )
    assert len(PAYMENTS) - unknown <= len(after.effects) <= len(PAYMENTS)
    record = trio.run(read_record, folder)
    assert record.complete is True
    return after


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["after", "written", "committed"])
def test_killed_around_any_append_of_a_fan_out_the_run_resumes(
    moment: str, victims: Victims, memory_disk: Path
) -> None:
    """Killed there, the run is taken to its end by a new process: every child folds back, and nothing is paid twice."""
    whole = memory_disk / "whole"
    whole.mkdir()
    assert victims.run(Order(str(whole))) == 0
    undisturbed = check_end(whole, Left((), Counter()))
    assert undisturbed.effects.keys() == PAYMENTS
    # Which goals share a sync depends on the moment, so the next run may make a few commits less.
    most = made(whole)[moment] - (0 if moment == "after" else 4)
    for number in range(1, most, 1 if SOAK else 4):
        folder = memory_disk / str(number)
        folder.mkdir()
        assert victims.run(Order(str(folder), moment, number)) == KILLED
        before = left(folder)
        assert victims.run(Order(str(folder))) == 0
        check_end(folder, before)


@pytest.mark.slow
def test_a_fan_out_whose_every_process_is_killed_soon_still_ends(victims: Victims, memory_disk: Path) -> None:
    """Each process is killed after its sixth append; process by process the run gets to its end."""
    before = Left((), Counter())
    for _ in range(60):
        if victims.run(Order(str(memory_disk), "after", 6)) == 0:
            break
        now = left(memory_disk)
        assert now.events[: len(before.events)] == before.events
        before = now
    check_end(memory_disk, before)
