"""`affidavit store backup` and `copy`: what they make is whole and checked, and nothing is ever replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from affidavit.actors.errors import LogFull, StoreUnusable
from affidavit.actors.logs import sqlite_backup
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_backup import open_backup
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.tools import app
from tests.tools.commands.conftest import Finished
from tests.tools.commands.damage import row_gone, text_bit, tidy


@pytest.fixture
def copy(finished: Finished, tmp_path: Path) -> Path:
    """A store of its own with two finished runs."""
    folder = tmp_path / "own"
    shutil.copytree(finished.store, folder)
    tidy(folder / "runs.sqlite")
    return folder


async def _rows(path: Path, stream: str) -> list[bytes]:
    async with open_sqlite_reader(path) as reader:
        return [row.data for row in await reader.read(stream, 0, 10_000)]


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _run(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = app.main([str(word) for word in words])
    said = capfd.readouterr()
    return code, said.out, said.err


def test_a_backup_is_a_store(capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path) -> None:
    """Named runs.sqlite in a folder of its own it holds every run, is sound, and is readable by its owner alone."""
    target = tmp_path / "restored" / "runs.sqlite"
    target.parent.mkdir()
    code, out, err = _run(capfd, "store", "backup", target, "--store", copy)
    assert (code, err) == (0, "")
    assert "checked" in out
    assert _names(target.parent) == {"runs.sqlite"}
    assert target.stat().st_mode & 0o777 == 0o600
    assert _run(capfd, "fsck", "--store", target.parent)[0] == 0
    for stream in ("converged-1", "stalled-1"):
        assert trio.run(_rows, target, stream) == trio.run(_rows, copy / "runs.sqlite", stream)


def test_paths_may_be_relative(
    capfd: pytest.CaptureFixture[str], copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup, a store and the folder that runs are copied into are named from where the command is called."""
    monkeypatch.chdir(copy.parent)
    assert _run(capfd, "store", "backup", "monday.sqlite", "--store", copy.name)[0] == 0
    assert (copy.parent / "monday.sqlite").is_file()
    assert _run(capfd, "store", "copy", "converged-1", "--to", "audit", "--store", copy.name)[0] == 0
    assert _run(capfd, "fsck", "--store", "audit")[0] == 0


@pytest.mark.parametrize("kind", ["file", "folder", "broken link"])
def test_a_backup_replaces_nothing(
    capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path, kind: str
) -> None:
    """Whatever is at the target stays as it is; one sentence, exit code 2."""
    target = tmp_path / "taken"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to("nowhere")
    before = _names(tmp_path)
    code, _, err = _run(capfd, "store", "backup", target, "--store", copy)
    assert (code, len(err.splitlines())) == (2, 1)
    assert _names(tmp_path) == before
    assert kind != "file" or target.read_text() == "mine"


def test_a_damaged_store_is_not_backed_up_as_if_it_were_sound(
    capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path
) -> None:
    """The copy is checked before it gets its name; nothing is left of it."""
    text_bit(copy / "runs.sqlite")
    code, _, err = _run(capfd, "store", "backup", tmp_path / "backup", "--store", copy)
    assert code == 2
    assert "is damaged" in err
    assert _names(tmp_path) == {"own"}


def test_a_backup_needs_a_folder_that_is_there(
    capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path
) -> None:
    """It makes no folders: a mistyped path is no place to keep a backup."""
    code, _, err = _run(capfd, "store", "backup", tmp_path / "no" / "backup", "--store", copy)
    assert (code, len(err.splitlines())) == (2, 1)
    assert str(tmp_path / "no") in err


async def test_a_backup_is_of_one_moment_while_others_write(tmp_path: Path) -> None:
    """Appends go on during the copying and are acknowledged; two streams that move together are equal in the copy."""
    source, target = tmp_path / "store", tmp_path / "backup"
    going = trio.Event()

    def progress(_done: int, _total: int) -> None:
        trio.from_thread.run_sync(going.set)

    async with open_sqlite_log(source, lock_grace=0) as log, trio.open_nursery() as nursery:
        await log.append([Entry("a", 0, (b"x" * 4000,) * 500), Entry("b", 0, (b"x",) * 500)])

        async def write() -> None:
            await going.wait()
            for seq in range(500, 600):
                await log.append([Entry("a", seq, (b"y",)), Entry("b", seq, (b"y",))])

        nursery.start_soon(write)
        async with open_backup(source, target, progress):
            pass
    async with open_sqlite_log(source, create=False) as log, open_sqlite_reader(target) as copied:
        assert {info.tip for info in await log.list()} == {600}
        tips = {info.tip for info in await copied.list()}
        assert len(tips) == 1
        assert 500 <= tips.pop() <= 600


async def test_a_cancelled_backup_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copying stops between two slices, and its file is gone."""
    source = tmp_path / "store"
    async with open_sqlite_log(source) as log:
        await log.append([Entry("a", 0, (b"x" * 4000,) * 100)])
    monkeypatch.setattr(sqlite_backup, "_PAGES", 1)
    slices: list[int] = []
    with trio.CancelScope() as scope:

        def progress(done: int, _total: int) -> None:
            slices.append(done)
            trio.from_thread.run_sync(scope.cancel)

        async with open_backup(source, tmp_path / "backup", progress):
            pytest.fail("copied")
    assert scope.cancelled_caught
    assert len(slices) <= 2
    assert _names(tmp_path) <= {"store", "store.lock", "store-wal", "store-shm"}


async def test_a_body_that_fails_leaves_no_backup(tmp_path: Path) -> None:
    """An error of whoever checks the copy is raised as itself, and there is no file."""
    source = tmp_path / "store"
    async with open_sqlite_log(source) as log:
        await log.append([Entry("a", 0, (b"x",))])
    with pytest.raises(LogFull):
        async with open_backup(source, tmp_path / "backup"):
            raise LogFull("by the test")
    with pytest.raises(StoreUnusable):
        async with open_backup(tmp_path / "nothing", tmp_path / "backup"):
            pytest.fail("copied")
    assert _names(tmp_path) <= {"store", "store.lock", "store-wal", "store-shm"}


def test_a_copied_run_is_the_same_bytes_in_another_store(
    capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path
) -> None:
    """The whole stream with its index line, by the beginning of its id; a second time it is refused and nothing changes."""
    target = tmp_path / "audit"
    code, out, err = _run(capfd, "store", "copy", "conv", "@last", "--to", target, "--store", copy)
    assert (code, err) == (0, "")
    assert "converged-1: " in out
    for stream in ("converged-1", "stalled-1"):
        assert trio.run(_rows, target / "runs.sqlite", stream) == trio.run(
            _rows, copy / "runs.sqlite", stream
        )
    assert _run(capfd, "fsck", "--store", target)[0] == 0
    code, _, err = _run(capfd, "store", "copy", "converged-1", "--to", target, "--store", copy)
    assert code == 2
    assert "has a run converged-1 already" in err


def test_copying_is_all_or_nothing(capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path) -> None:
    """If one of the runs is there already, or is damaged, none is copied."""
    target = tmp_path / "audit"
    assert _run(capfd, "store", "copy", "stalled-1", "--to", target, "--store", copy)[0] == 0
    assert _run(capfd, "store", "copy", "converged-1", "stalled-1", "--to", target, "--store", copy)[0] == 2
    row_gone(copy / "runs.sqlite")
    code, _, err = _run(capfd, "store", "copy", "converged-1", "--to", target, "--store", copy)
    assert code == 2
    assert "is damaged" in err
    assert trio.run(_rows, target / "runs.sqlite", "converged-1") == []


def test_a_run_that_is_going_on_is_not_copied(
    capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path
) -> None:
    """Whoever drives it would go on in the one store only; a finished run beside it can be copied."""

    async def own() -> tuple[int, str]:
        async with open_sqlite_log(copy / "runs.sqlite") as log, log.own("converged-1"):
            code, _, err = await trio.to_thread.run_sync(
                lambda: _run(
                    capfd, "store", "copy", "converged-1", "--to", tmp_path / "audit", "--store", copy
                )
            )
            return code, err

    code, err = trio.run(own)
    assert code == 2
    assert "is being driven by another process" in err
    assert _names(tmp_path) == {"own"}


@pytest.mark.parametrize("words", [[], ["nothing-like-it"], ["--to"]])
def test_bad_words_are_one_sentence(
    capfd: pytest.CaptureFixture[str], copy: Path, tmp_path: Path, words: list[str]
) -> None:
    """No id, an unknown one, a missing folder: exit code 2 and no other store."""
    code, _, err = _run(capfd, "store", "copy", *words, "--to", copy, "--store", copy)
    assert (code, len(err.splitlines())) == (2, 1)


def test_a_store_is_not_copied_into_itself(capfd: pytest.CaptureFixture[str], copy: Path) -> None:
    """However the folder is named."""
    (copy.parent / "link").symlink_to(copy)
    code, _, err = _run(capfd, "store", "copy", "converged-1", "--to", copy.parent / "link", "--store", copy)
    assert code == 2
    assert "is the store that the runs are in" in err
