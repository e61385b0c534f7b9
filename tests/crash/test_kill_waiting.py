"""SIGKILL before, during and after an approval: asked for once, it holds over restarts, and the call runs at most once (G3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.crypto import VerifiedRecord
from tests.actors.mission_kit import RUN, check_record, verified
from tests.crash.test_kill import KILLED, Victims, lines
from tests.crash.victim import Order
from tests.crash.waiting_victim import APPROVE, DRIVE

# Appends from the first event to the request, and from the decision to the sealed end; more than there are changes nothing.
ASKING, GOING_ON = range(1, 8), range(1, 10)


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    """One forking program for all tests."""
    program = Victims("tests.crash.waiting_victim")
    yield program
    program.close()


def left(folder: Path) -> tuple[tuple[Event, ...], VerifiedRecord]:
    """The run's events and its sealed record, which passes L4."""

    async def read() -> tuple[tuple[Event, ...], VerifiedRecord]:
        async with open_sqlite_log(folder / "store.sqlite3") as log:
            return await history(log, RUN), await verified(log)

    events, record = trio.run(read)
    check_record(events)
    return events, record


def check_end(folder: Path, *, was_cut: bool) -> None:
    """Check a run that has ended: asked once, decided once, admitted once, run once or, if that was cut short, at most once."""
    events, record = left(folder)
    kinds = [event.kind for event in events]
    assert kinds.count(Kind.APPROVAL_REQUESTED) == kinds.count(Kind.APPROVAL_DECIDED) == 1
    admitted = [event for event in events if event.kind == Kind.ACTION_ADMITTED and event.tool_use_id]
    assert len(admitted) == 1
    effects = lines(folder / "effects")
    assert effects == ["420"] or (was_cut and effects == [])
    assert record.complete is True
    assert record.findings == ()


@pytest.mark.parametrize("moment", ["before", "after", "committed"])
def test_g3_killed_while_it_asks(victims: Victims, memory_disk: Path, moment: str) -> None:
    """At each append up to the request: resumed, it waits for that one; approved from another process, it goes on by it."""
    for number in ASKING:
        folder = memory_disk / f"{moment}-{number}"
        folder.mkdir()
        assert victims.run(Order(str(folder / DRIVE), moment, number)) in {KILLED, 0}
        assert victims.run(Order(str(folder / DRIVE))) == 0
        assert victims.run(Order(str(folder / APPROVE))) == 0
        assert victims.run(Order(str(folder / DRIVE))) == 0
        check_end(folder, was_cut=False)


@pytest.mark.parametrize("moment", ["before", "after", "written", "committed"])
def test_g3_killed_while_a_person_decides(victims: Victims, memory_disk: Path, moment: str) -> None:
    """The decision stands or it does not; made again, there is one."""
    folder = memory_disk
    assert victims.run(Order(str(folder / DRIVE))) == 0
    assert victims.run(Order(str(folder / APPROVE), moment, 1)) == KILLED
    assert victims.run(Order(str(folder / APPROVE))) == 0
    assert victims.run(Order(str(folder / DRIVE))) == 0
    check_end(folder, was_cut=False)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_g3_killed_while_it_goes_on(victims: Victims, memory_disk: Path, moment: str) -> None:
    """At each append after the decision: the approval is used once, and a call that was cut short is not run again."""
    for number in GOING_ON:
        folder = memory_disk / f"{moment}-{number}"
        folder.mkdir()
        assert victims.run(Order(str(folder / DRIVE))) == 0
        assert victims.run(Order(str(folder / APPROVE))) == 0
        assert victims.run(Order(str(folder / DRIVE), moment, number)) in {KILLED, 0}
        assert victims.run(Order(str(folder / DRIVE))) == 0
        check_end(folder, was_cut=True)
