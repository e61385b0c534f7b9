"""The kill test: SIGKILL at every append of a real run, then a new process takes it to its end (S1, S9, S10, V3, G4)."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import pytest
import trio

from affidavit.actors.conversation import fold
from affidavit.actors.errors import StoreUnusable
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.crypto import VerifiedRecord
from tests.actors.mission_kit import RUN, check_record, verified
from tests.crash.victim import Order
from tests.environment import ROOT, SOAK

KILLED = -signal.SIGKILL


class Victims:
    """The program that forks victims."""

    def __init__(self, module: str = "tests.crash.victim") -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, order: Order) -> int:
        """Have an order carried out; return the exit code, or the signal as a negative number."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(asdict(order)) + "\n")
        self._program.stdin.flush()
        ended = json.loads(self._program.stdout.readline())["ended"]
        assert isinstance(ended, int)
        return ended

    def close(self) -> None:
        """End the program."""
        self._program.communicate(timeout=60)


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    """One forking program for all tests."""
    program = Victims()
    yield program
    program.close()


@dataclass(frozen=True)
class Left:
    """What a process left behind.

    Attributes:
        events: The run's events.
        effects: How often each effect was had.
    """

    events: tuple[Event, ...]
    effects: Counter[str]

    @property
    def completed(self) -> set[str]:
        """The effects of calls whose end is on the record."""
        asked = {e.tool_use_id: e.input for e in self.events if e.kind == Kind.TOOL_CALL}
        ended = {e.tool_use_id for e in self.events if e.kind == Kind.ACTION_COMPLETED and e.tool_use_id}
        return {json.loads(asked[call])["key"] for call in ended}


def left(folder: Path) -> Left:
    """Read what is there; every acknowledged event must be."""

    async def read() -> tuple[tuple[Event, ...], dict[int, str]]:
        async with open_sqlite_reader(folder / "store.sqlite3") as log:
            rows = await log.read(RUN, 0, 10_000)
            return await history(log, RUN), {row.seq: sha256(row.data).hexdigest() for row in rows}

    try:
        events, digests = trio.run(read)
    except StoreUnusable:
        # Killed before there was a store, or while it was being made; then nothing can have been acknowledged.
        events, digests = (), {}
    for line in lines(folder / "acknowledged"):
        seq, digest = line.split()
        assert digests[int(seq)] == digest
    check_record(events)
    return Left(events, Counter(lines(folder / "effects")))


def lines(path: Path) -> list[str]:
    """The lines of a file that may be absent."""
    return path.read_text().splitlines() if path.exists() else []


def check_end(folder: Path, before: Left) -> Left:
    """Check a run that has been taken to its end, against what stood before that."""
    after = left(folder)
    assert after.events[: len(before.events)] == before.events
    conversation = fold(after.events)
    assert conversation.terminal is not None
    assert (conversation.terminal.kind, conversation.terminal.text) == (Kind.CONVERGED, "Settled.")
    assert (conversation.pending, conversation.book.open_actions) == ({}, {})
    for key, count in after.effects.items():
        assert count == 1 or not key.startswith("pay")
        assert count == before.effects[key] or key not in before.completed
    assert {"pay-1", "pay-2", "note-1", "note-2"} >= after.effects.keys() >= {"note-1", "note-2"}
    record = trio.run(read_record, folder)
    assert record.complete is True
    assert len(record.events) == next(e.detail["size"] for e in reversed(after.events) if "size" in e.detail)
    assert len(record.events) > conversation.terminal.seq - 1
    return after


async def read_record(folder: Path) -> VerifiedRecord:
    """Export the run's record and verify it at L4."""
    async with open_sqlite_log(folder / "store.sqlite3", create=False) as log:
        return await verified(log)


Made = dict[str, int]


def made(folder: Path) -> Made:
    """How often there is each moment at which the one undisturbed process that worked here could have been killed."""
    (line,) = lines(folder / "made")
    counts = json.loads(line)
    assert counts["appends"] > counts["commits"] > 0, "ends share their syncs with the admissions behind them"
    appends, commits = counts["appends"], counts["commits"]
    return {"before": appends, "after": appends, "written": commits, "committed": commits}


@pytest.fixture(scope="module")
def moments(victims: Victims, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """How many appends and commits an undisturbed run makes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert victims.run(Order(str(folder))) == 0
    whole = check_end(folder, Left((), Counter()))
    assert whole.effects == Counter(["pay-1", "note-1", "note-2", "pay-2"])
    assert made(folder)["after"] > 15
    return made(folder)


@pytest.mark.slow
def test_killed_right_after_each_append_in_turn_a_run_resumes(
    victims: Victims, moments: Made, tmp_path: Path
) -> None:
    """For every append n, on a real disk: killed when it has returned, the run is taken to its end by a new process."""
    kill_at_each_append("after", victims, moments, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "written", "committed"])
def test_killed_around_each_append_in_turn_a_run_resumes(
    moment: str, victims: Victims, moments: Made, memory_disk: Path
) -> None:
    """The same before an append, between the rows and the commit of a transaction, and before its acknowledgement."""
    kill_at_each_append(moment, victims, moments, memory_disk)


def kill_at_each_append(moment: str, victims: Victims, moments: Made, place: Path) -> None:
    """For every append: kill there, resume in a new process, check that nothing is lost or done twice."""
    for number in range(1, moments[moment] + 1):
        folder = place / str(number)
        folder.mkdir()
        assert victims.run(Order(str(folder), moment, number)) == KILLED
        before = left(folder)
        assert victims.run(Order(str(folder))) == 0
        check_end(folder, before)


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 5])
def test_a_run_whose_every_process_is_killed_soon_still_ends(
    number: int, victims: Victims, memory_disk: Path
) -> None:
    """Each process is killed after its n-th append; as long as each gets to do one thing, the run gets to its end.

    Fewer than four would not do here: each process of the scripted model is busy once before it answers.
    """
    rounds = 0
    before = Left((), Counter())
    while (ended := victims.run(Order(str(memory_disk), "after", number))) != 0:
        assert ended == KILLED
        rounds += 1
        assert rounds < 60
        now = left(memory_disk)
        assert now.events[: len(before.events)] == before.events
        before = now
    check_end(memory_disk, before)


@pytest.mark.slow
def test_killed_at_any_time_a_run_resumes(victims: Victims, memory_disk: Path) -> None:
    """Killed after random times, again and again, each run ends; a soak run does many."""
    chance = random.Random()
    for number in range(120 if SOAK else 4):
        folder = memory_disk / str(number)
        folder.mkdir()
        before = Left((), Counter())
        delays = [chance.randint(1, 150) for _ in range(8)]
        for delay in delays:
            if victims.run(Order(str(folder), "time", delay)) == 0:
                break
            before = left(folder)
        assert victims.run(Order(str(folder))) == 0, delays
        check_end(folder, before)
