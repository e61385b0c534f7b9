"""Files that are written whole or not at all, and what a writer that was killed leaves behind."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from affidavit.tools.atomic import open_draft, write_file
from affidavit.tools.errors import UsageError

KILLED = """
import os, signal, sys
from pathlib import Path
from affidavit.tools.atomic import open_draft
with open_draft(Path(sys.argv[1]), force=True) as draft:
    draft.file.write(b"half")
    draft.file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    """What stands in a folder."""
    return sorted(path.name for path in folder.iterdir())


def kill_a_writer(path: Path) -> None:
    """Have a process begin to write a file and be killed."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_writer_leaves_is_gone_after_the_next(tmp_path: Path) -> None:
    """However often a writer is killed, one file at most is left over, and a write that ends leaves none."""
    path = tmp_path / "a [record].provetrail"
    write_file(path, b"old", force=False)
    for _ in range(3):
        kill_a_writer(path)
        assert path.read_bytes() == b"old"
        assert len(names(tmp_path)) == 2
    write_file(path, b"new", force=True)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == [path.name]


def test_nothing_else_is_taken_away(tmp_path: Path) -> None:
    """A draft that another process holds, another file's draft, a link and a folder of such a name stay."""
    path = tmp_path / "record"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    kept = [
        f".record.{'0' * 16}",
        f".records.{'1' * 16}",
        ".record.short",
        f".record.{'2' * 16}",
        f".record.{'3' * 16}",
    ]
    for name in kept[:3]:
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / kept[3]).symlink_to(elsewhere)
    (tmp_path / kept[4]).mkdir()
    with (tmp_path / kept[0]).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_file(path, b"new", force=False)
    assert names(tmp_path) == sorted([*kept, "elsewhere", "record"])
    assert elsewhere.read_bytes() == b"mine"


def test_two_writers_of_one_name_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each has a draft of its own; the one that ends last stands."""
    path = tmp_path / "record"
    with open_draft(path, force=True) as first:
        first.file.write(b"first")
        write_file(path, b"second", force=True)
        assert path.read_bytes() == b"second"
        first.publish()
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["record"]


def test_what_is_not_published_changes_nothing(tmp_path: Path) -> None:
    """A block that ends without it, by an exception or not, leaves the old file and nothing beside it."""
    path = tmp_path / "record"
    write_file(path, b"old", force=False)
    with open_draft(path, force=True) as draft:
        draft.file.write(b"new")
    with suppress(KeyboardInterrupt), open_draft(path, force=True) as draft:
        draft.file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["record"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """Without force, what another program made while this one wrote stays as it is."""
    path = tmp_path / "record"
    with open_draft(path, force=False) as draft:
        draft.file.write(b"new")
        path.write_bytes(b"theirs")
        with pytest.raises(UsageError, match="is there already"):
            draft.publish()
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["record"]


def test_a_draft_that_was_taken_for_a_leftover_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer may look between the making of a file and its lock."""
    lock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        (made,) = tmp_path.iterdir()
        made.unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_file(tmp_path / "record", b"new", force=False)
    assert (tmp_path / "record").read_bytes() == b"new"
    assert names(tmp_path) == ["record"]


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    """Not the temporary one."""
    path = tmp_path / "absent" / "record"
    with pytest.raises(FileNotFoundError) as told:
        write_file(path, b"", force=False)
    assert told.value.filename == str(path)


def test_a_new_file_has_the_rights_that_the_person_chose(tmp_path: Path) -> None:
    """They are what the umask leaves."""
    old = os.umask(0o027)
    try:
        write_file(tmp_path / "record", b"", force=False)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "record").stat().st_mode) == 0o640
