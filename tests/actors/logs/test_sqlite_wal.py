"""The write-ahead log that a killed process left: what a crash explains is recovered, what only damage explains is refused."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from affidavit.actors.errors import StoreUnusable
from affidavit.actors.fsck import check_store
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_connect import Synchronous
from affidavit.actors.logs.sqlite_inspect import open_inspector
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.logs.sqlite_wal import WalState, scan_wal

APPENDS = 20
HEADER, FRAME = 32, 24 + 4096


@pytest.fixture
async def left(tmp_path: Path) -> Path:
    """What a process that was killed leaves: twenty acknowledged rows, all of them in the write-ahead log."""
    folder = tmp_path / "left"
    folder.mkdir()
    async with open_sqlite_log(tmp_path / "live") as log:
        for seq in range(APPENDS):
            await log.append([Entry("a", seq, (b"%d" % seq * 500,))])
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"live{end}", folder / f"store{end}")
    return folder / "store"


def _wal(store: Path) -> Path:
    return store.with_name("store-wal")


def _change(store: Path, change: Callable[[bytearray], None]) -> None:
    data = bytearray(_wal(store).read_bytes())
    change(data)
    _wal(store).write_bytes(data)


async def _tip(opening: AbstractAsyncContextManager[object]) -> int:
    async with opening as log:
        info = await log.info("a")  # type: ignore[attr-defined]
        return info.tip if info else 0


def _commits(store: Path) -> list[int]:
    """The frames that end a transaction, counted from 1."""
    data = _wal(store).read_bytes()
    sizes = [struct.unpack_from(">I", data, at + 4)[0] for at in range(HEADER, len(data), FRAME)]
    return [number for number, size in enumerate(sizes, 1) if size]


async def test_a_whole_log_is_recovered_whole(left: Path) -> None:
    """All frames are counted, nothing is torn or lost, and every row is there."""
    frames = (_wal(left).stat().st_size - HEADER) // FRAME
    assert scan_wal(left) == WalState(frames)
    assert await _tip(open_sqlite_reader(left)) == APPENDS
    assert await _tip(open_sqlite_log(left)) == APPENDS


@pytest.mark.parametrize("seed", range(8))
async def test_a_log_cut_anywhere_is_what_a_crash_leaves(left: Path, seed: int) -> None:
    """The transactions before the cut are recovered, by reader and log; of what follows the file does not tell that it was."""
    cut = random.Random(seed).randrange(HEADER + FRAME, _wal(left).stat().st_size)
    whole = [number for number in _commits(left) if HEADER + number * FRAME <= cut]
    _change(left, lambda data: data.__delitem__(slice(cut, None)))
    async with open_inspector(left) as inspector:
        report = await check_store(inspector)
    state = scan_wal(left)
    assert {found.kind for found in report.findings} <= {"undecodable"}, (
        "the rows are no events, and nothing else is wrong"
    )
    assert bool(report.notes) == bool(state.torn)
    assert (state.frames, state.lost) == (whole[-1] if whole else 0, 0)
    tip = await _tip(open_sqlite_reader(left))
    assert await _tip(open_sqlite_log(left)) == tip
    assert tip == len(whole)


def _flip(at: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[at] ^= 1

    return change


def _nuls(at: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[at : at + 5000] = bytes(5000)

    return change


def _places(size: int) -> dict[str, Callable[[bytearray], None]]:
    middle = HEADER + size // FRAME // 2 * FRAME
    return {
        "the header": _flip(1),
        "the header's salt": _flip(17),
        "a frame's page number": _flip(middle + 3),
        "a frame's salt": _flip(middle + 9),
        "a frame's checksum": _flip(middle + 20),
        "a page": _flip(middle + 1000),
        "NULs over the header": _nuls(0),
        "NULs in the middle": _nuls(middle),
    }


@pytest.mark.parametrize("place", sorted(_places(0)))
async def test_damage_in_the_middle_is_refused_and_left_as_it_is(left: Path, place: str) -> None:
    """SQLite would drop acknowledged rows without a word; log and reader refuse, in one sentence, and change nothing."""
    _change(left, _places(_wal(left).stat().st_size)[place])
    before = {path.name: path.read_bytes() for path in left.parent.iterdir()}
    for opening in (open_sqlite_log(left), open_sqlite_reader(left)):
        with pytest.raises(StoreUnusable, match=r"write-ahead log of the store .* is damaged") as refused:
            await _tip(opening)
        assert "\n" not in str(refused.value)
    # The lock file and SQLite's index of the log are made anew each time, and hold nothing.
    assert {name: (left.parent / name).read_bytes() for name in before} == before
    async with open_inspector(left) as inspector:
        report = await check_store(inspector)
    assert "wal" in {finding.kind for finding in report.findings}


async def test_without_full_syncs_holes_are_what_a_loss_of_power_leaves(left: Path) -> None:
    """Who chose NORMAL accepts what is left: the store opens, is sound, and ends earlier."""
    _change(left, _places(_wal(left).stat().st_size)["a page"])
    tip = await _tip(open_sqlite_log(left, synchronous=Synchronous.NORMAL))
    assert 0 < tip < APPENDS
    assert await _tip(open_sqlite_log(left)) == tip


async def test_a_log_that_is_in_use_is_not_judged_by_its_file(tmp_path: Path) -> None:
    """While somebody has the store open nothing is recovered, so a second one opens at once, whatever the file looks like."""
    async with open_sqlite_log(tmp_path / "store") as log:
        for seq in range(APPENDS):
            await log.append([Entry("a", seq, (b"x",))])
        _change(tmp_path / "store", _flip(17))
        assert await _tip(open_sqlite_log(tmp_path / "store")) == APPENDS
        assert await _tip(open_sqlite_reader(tmp_path / "store")) == APPENDS


async def test_a_new_log_that_grew_without_content_is_what_a_crash_leaves(left: Path) -> None:
    """The system may have lengthened the file before any byte of it was on the disk."""
    _change(left, lambda data: data.__setitem__(slice(None), bytes(len(data))))
    assert scan_wal(left) == WalState()
