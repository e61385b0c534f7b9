"""Power is lost at every moment of a workload: whatever was acknowledged by then is in the store that is left.

The same is done with commits that are not synced, where the suite must find losses: one that finds none there shows nothing.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio

from affidavit.actors.errors import LogError
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_connect import Synchronous
from tests.environment import SOAK
from tests.power.disk import Disk
from tests.power.trace import Said, Step, SyncBegan, trace
from tests.power.workload import STREAMS, content

ROWS = 60 if SOAK else 25
STATES = 6000 if SOAK else 260
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Left:
    """What is in a folder after a loss of power, and how many rows of each stream had been acknowledged."""

    folder: Path
    acknowledged: dict[str, int]


def _losses(steps: list[Step], folder: Path, scratch: Path, count: int, seed: int) -> Iterator[Left]:
    """Lose power at `count` moments spread over the whole trace, each time in another way."""
    chance = random.Random(seed)
    disk = Disk(folder)
    acknowledged: dict[str, int] = {}
    number = 0
    for done, step in enumerate(steps, 1):
        disk.apply(step)
        if isinstance(step, Said):
            _, stream, seq = step.line.split()
            acknowledged[stream] = int(seq)
        while number * len(steps) < done * count:
            number += 1
            target = scratch / str(number)
            target.mkdir()
            disk.lose_power(chance, target)
            yield Left(target, dict(acknowledged))


async def _fault(left: Left, synchronous: Synchronous) -> str:
    """Return what is wrong with a store after a loss of power; nothing for one that is as promised."""
    store = left.folder / "store"
    if not store.exists():
        return "the store is gone" if left.acknowledged else ""
    try:
        async with open_sqlite_log(store, synchronous=synchronous) as log:
            tips = {info.stream: info.tip for info in await log.list()}
            for stream, tip in tips.items():
                rows = await log.read(stream, 0, 10_000)
                if [(row.seq, row.data) for row in rows] != [
                    (seq, content(stream, seq)) for seq in range(1, tip + 1)
                ]:
                    return f"the rows of {stream} are not what was written"
            await log.append([Entry(stream, tips.get(stream, 0), (b"on",)) for stream in ("s0", "other")])
    except LogError as error:
        return f"it cannot be used: {error}"
    try:
        with closing(sqlite3.connect(store)) as connection:
            if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                return "SQLite finds faults in it"
    except sqlite3.DatabaseError as error:
        return f"SQLite cannot read it: {error}"
    for stream, seq in left.acknowledged.items():
        if tips.get(stream, 0) < seq:
            return f"lost: {stream} ends at {tips.get(stream, 0)}, and {seq} was acknowledged"
    return ""


def _faults(tmp_path: Path, level: str, synchronous: Synchronous, states: int) -> list[str]:
    folder = tmp_path / "watched"
    folder.mkdir()
    steps = trace(folder / "store", level, ROWS)
    assert sum(isinstance(step, Said) for step in steps) == STREAMS * ROWS
    assert any(isinstance(step, SyncBegan) for step in steps)

    async def main(scratch: Path) -> list[str]:
        faults = []
        for left in _losses(steps, folder, scratch, states, seed=1):
            faults.append(await _fault(left, synchronous))
            shutil.rmtree(left.folder)
        return [fault for fault in faults if fault]

    # In memory where that is possible: these files have lost their power already.
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else tmp_path) as name:
        return trio.run(main, Path(name))


@pytest.mark.slow
def test_no_acknowledged_row_is_lost_with_the_power(tmp_path: Path) -> None:
    """S10: every state that may be left opens, is sound, holds every acknowledged row, and can be written to."""
    assert _faults(tmp_path, "FULL", Synchronous.FULL, STATES) == []


@pytest.mark.slow
def test_the_suite_finds_what_is_lost_without_syncs(tmp_path: Path) -> None:
    """The same workload with synchronous=OFF loses acknowledged rows, and this suite sees it."""
    faults = _faults(tmp_path, "OFF", Synchronous.FULL, STATES // 4)
    assert any(fault.startswith("lost") for fault in faults)


@pytest.mark.slow
def test_normal_loses_the_last_rows_and_nothing_else(tmp_path: Path) -> None:
    """With synchronous=NORMAL every state opens and is sound, and some end earlier than what was acknowledged: as it is named."""
    faults = _faults(tmp_path, "NORMAL", Synchronous.NORMAL, STATES // 2)
    assert faults
    assert all(fault.startswith("lost") for fault in faults)
