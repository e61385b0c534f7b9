"""How growth is told from what was there, cheaply, and not only while nobody else gives room back."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from affidavit.actors.containment import disk
from affidavit.actors.containment.disk import DEEPEST, DiskWatch
from affidavit.actors.containment.port import ContainmentFailed

MIB = 1024 * 1024


class Room:
    """A file system whose free room the test sets."""

    def __init__(self) -> None:
        self.free = 10_000 * MIB
        self.files = 1_000_000
        self.sums = 0

    def fstatvfs(self, descriptor: int) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=self.free // 4096, f_frsize=4096, f_ffree=self.files)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    """That file system, in place of the real one's numbers; it counts how often files are added up."""
    made = Room()
    real = disk._below

    def below(*arguments: object) -> int:
        made.sums += arguments[3] == 0
        return real(*arguments)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(os, "fstatvfs", made.fstatvfs)
    monkeypatch.setattr(disk, "_below", below)
    return made


def watch(work: Path, clock: list[float], limit: int = MIB) -> DiskWatch:
    """A watch that has begun."""
    made = DiskWatch(os.open(work, os.O_PATH | os.O_DIRECTORY), limit, now=lambda: clock[0])
    made.begin()
    return made


def test_nothing_is_added_up_while_there_is_room(work: Path, room: Room) -> None:
    """What was there before does not count, and looking again costs nothing."""
    (work / "before").write_bytes(b"x" * 3 * MIB)
    made = watch(work, [0.0])
    assert room.sums == 1
    assert not any(made.over(0) for _ in range(100))
    assert room.sums == 1


def test_growth_is_found_when_room_is_lost(work: Path, room: Room) -> None:
    """Only if it is the workspace that has grown."""
    made = watch(work, [0.0])
    room.free -= 2 * MIB
    assert not made.over(0)
    (work / "grown").write_bytes(b"x" * 2 * MIB)
    assert made.over(0)


def test_growth_is_found_in_time_though_others_give_room_back(work: Path, room: Room) -> None:
    """Now and then the files are added up whatever the file system says."""
    clock = [0.0]
    made = watch(work, clock)
    (work / "grown").write_bytes(b"x" * 2 * MIB)
    room.free += 50 * MIB
    assert not made.over(0)
    clock[0] = 3.0
    assert made.over(0)


def test_a_disk_that_is_nearly_full_ends_the_command(work: Path, room: Room) -> None:
    """Whoever has filled it; unless it was as full before."""
    made = watch(work, [0.0])
    room.free = disk.RESERVE_BYTES - 4096
    assert made.over(0)
    again = watch(work, [0.0])
    assert not again.over(0)


def test_links_count_once_and_are_not_followed(work: Path, room: Room) -> None:
    """Many names of one file take the room of one; a link takes that of a link."""
    made = watch(work, [0.0])
    (work / "one").write_bytes(b"x" * (MIB // 2))
    for number in range(20):
        (work / f"again{number}").hardlink_to(work / "one")
        (work / f"link{number}").symlink_to(work / "one")
    (work / "out").symlink_to("/usr")
    room.free -= 2 * MIB
    assert not made.over(0)


def test_a_workspace_that_is_nested_too_deeply_is_refused(work: Path, room: Room) -> None:
    """Rather than watched in part."""
    at = work
    for _ in range(DEEPEST + 2):
        at /= "d"
    at.mkdir(parents=True)
    with pytest.raises(ContainmentFailed, match="nested"):
        watch(work, [0.0])
