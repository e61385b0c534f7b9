"""What is no usable store is refused in one sentence, and left as it was."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio

from affidavit.actors.errors import LogLocked, LogStateUnknown, StoreUnusable
from affidavit.actors.logs import sqlite_connect, sqlite_schema
from affidavit.actors.logs.port import Entry, Row
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_connect import open_reader
from affidavit.actors.logs.sqlite_locks import StoreLocks
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.actors.logs.appender import fill, names_in
from tests.actors.logs.faulty import Plan, plan

__all__ = ["plan"]


def _execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


def _directory(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _text(path: Path) -> None:
    path.write_text("This is no database, but long enough to be looked at.\n" * 50)


def _foreign(path: Path) -> None:
    _execute(path, "CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)")


def _marked_foreign(path: Path) -> None:
    _execute(path, "PRAGMA application_id = 7")


def _newer(path: Path) -> None:
    _execute(
        path,
        f"PRAGMA application_id = {sqlite_schema.APPLICATION_ID}",
        f"PRAGMA user_version = {sqlite_schema.SCHEMA_VERSION + 1}",
    )


def _unknown_version(path: Path) -> None:
    _execute(path, f"PRAGMA application_id = {sqlite_schema.APPLICATION_ID}", "PRAGMA user_version = -1")


def _damaged(path: Path) -> None:
    _foreign(path)
    data = bytearray(path.read_bytes())
    data[100:200] = b"\xff" * 100
    path.write_bytes(data)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


_BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "directory": (_directory, "is a directory"),
    "fifo": (_fifo, "not a regular file"),
    "text": (_text, "no SQLite database"),
    "foreign": (_foreign, "database of another program"),
    "marked-foreign": (_marked_foreign, "database of another program"),
    "newer": (_newer, "newer version"),
    "unknown-version": (_unknown_version, "unknown schema"),
    "damaged": (_damaged, "damaged"),
}


@pytest.mark.parametrize("kind", sorted(_BAD))
async def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    """Log and reader each say in one sentence what stands there instead; not a byte is changed, no file is added."""
    make, sentence = _BAD[kind]
    path = tmp_path / "store"
    make(path)
    before = _bytes(path)
    with pytest.raises(StoreUnusable, match=sentence) as by_log:
        async with open_sqlite_log(path):
            pytest.fail("opened")
    with pytest.raises(StoreUnusable, match=sentence):
        async with open_sqlite_reader(path):
            pytest.fail("opened")
    assert "\n" not in str(by_log.value)
    assert str(path) in str(by_log.value)
    assert _bytes(path) == before
    assert names_in(tmp_path) == ["store"]


async def test_where_nothing_is_nothing_is_made_unless_asked(tmp_path: Path) -> None:
    """A reader, or a log that shall not create, says that there is no store, and leaves no trace."""
    path = tmp_path / "no" / "store"
    with pytest.raises(StoreUnusable, match="there is no store at"):
        async with open_sqlite_reader(path):
            pytest.fail("opened")
    with pytest.raises(StoreUnusable, match="there is no store at"):
        async with open_sqlite_log(path, create=False):
            pytest.fail("opened")
    assert names_in(tmp_path) == []


async def test_an_empty_file_is_no_store_to_a_reader(tmp_path: Path) -> None:
    """A reader cannot make an empty file a store, so it says what it is."""
    path = tmp_path / "store"
    path.touch()
    with pytest.raises(StoreUnusable, match="is empty"):
        async with open_sqlite_reader(path):
            pytest.fail("opened")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("file/store", "cannot be reached"), ("a\0b", "no store can be at"), ("n" * 300, "cannot be reached")],
    ids=["below-a-file", "nul", "too-long"],
)
async def test_an_impossible_path_is_refused(tmp_path: Path, name: str, sentence: str) -> None:
    """A path that can name no file is an unusable store, not some other error."""
    (tmp_path / "file").touch()
    for opening in (open_sqlite_log, open_sqlite_reader):
        with pytest.raises(StoreUnusable, match=sentence):
            async with opening(f"{tmp_path}/{name}"):
                pytest.fail("opened")


async def test_opening_waits_for_the_write_lock_and_then_says_so(tmp_path: Path) -> None:
    """While another process writes, opening a log waits for its grace and ends as LogLocked; readers do not care."""
    path = tmp_path / "store"
    await fill(path)
    locks = StoreLocks.open(path)
    assert locks.try_write()
    with pytest.raises(LogLocked):
        async with open_sqlite_log(path, lock_grace=0.02):
            pytest.fail("opened")
    async with open_sqlite_reader(path) as reader:
        assert await reader.read("a") == (Row(1, b"x"),)
    locks.close()
    async with open_sqlite_log(path, lock_grace=0.02):
        pass


async def test_a_store_locked_by_a_foreign_program_is_locked(tmp_path: Path) -> None:
    """A program that knows nothing of our lock file and holds the database is waited for, then named as the reason."""
    path = tmp_path / "store"
    await fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogLocked, match="another program"):
            async with open_sqlite_log(path, lock_grace=0.02):
                pytest.fail("opened")
        foreign.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("statement", "code", "sentence"),
    [
        ("BEGIN", sqlite3.SQLITE_READONLY, "is read-only"),
        ("CREATE TABLE", sqlite3.SQLITE_FULL, "no room"),
        ("COMMIT", sqlite3.SQLITE_IOERR, "cannot be opened"),
        ("PRAGMA journal_mode", sqlite3.SQLITE_BUSY, "locked"),
    ],
)
async def test_a_store_that_fails_while_it_is_made_is_refused(
    tmp_path: Path, plan: Plan, statement: str, code: int, sentence: str
) -> None:
    """Each failure of SQLite on the way is one sentence; the next opening makes the store after all."""
    path = tmp_path / "store"
    plan.fail(statement, code)
    with pytest.raises((StoreUnusable, LogLocked), match=sentence):
        async with open_sqlite_log(path):
            pytest.fail("opened")
    await fill(path)


async def test_a_place_without_file_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system cannot lock, nobody can own a run, so nothing is opened."""

    def cannot_lock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "fcntl", cannot_lock)
    with pytest.raises(StoreUnusable, match="allows no file locks"):
        async with open_sqlite_log(tmp_path / "store"):
            pytest.fail("opened")


_AS_NOBODY = """
import os, sys, trio
from pathlib import Path
from affidavit.actors.errors import StoreUnusable
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

async def main(path):
    try:
        async with open_sqlite_log(path):
            print("opened")
    except StoreUnusable as error:
        print("log:", error)
    try:
        async with open_sqlite_reader(path) as reader:
            print("reader:", await reader.read("a"))
    except StoreUnusable as error:
        print("reader:", error)

trio.run(main, Path(sys.argv[1]))
"""


def _as_nobody(path: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def test_a_read_only_store_is_refused_to_a_log_and_given_to_a_reader(public: Path) -> None:
    """Where the user may only read file and folder, a log says so; a reader reads, leaving nothing behind."""
    path = public / "store"
    trio.run(fill, path)
    (public / "store.lock").unlink()
    path.chmod(0o444)
    _forbid_writing(public)
    said = _as_nobody(path)
    assert said[0] == f"log: the store {path} is read-only"
    assert said[1] == "reader: (Row(seq=1, data=b'x'),)"
    assert [found.name for found in public.iterdir()] == ["store"]


def _forbid_writing(folder: Path) -> None:
    folder.chmod(0o555)


def _copy_read_only(source: Path, target: Path) -> None:
    for end in ("", "-wal"):
        copy = target.with_name(target.name + end)
        copy.write_bytes(source.with_name(source.name + end).read_bytes())
        copy.chmod(0o444)


async def test_a_read_only_store_with_rows_in_its_wal_is_not_read_past_them(public: Path) -> None:
    """A reader that cannot use the write-ahead log, and sees that it holds rows, never shows an older state."""
    async with open_sqlite_log(public / "made") as log:
        await log.append([Entry("a", 0, (b"x",))])
        _copy_read_only(public / "made", public / "copy")
    _forbid_writing(public)
    assert "cannot be opened" in _as_nobody(public / "copy")[1]


def test_an_unreadable_store_is_refused(public: Path) -> None:
    """A user who may not read the file is told just that."""
    path = public / "store"
    trio.run(fill, path)
    path.chmod(0o600 if os.geteuid() == 0 else 0)
    assert [line.endswith("may not be read by this user") for line in _as_nobody(path)] == [True, True]


async def test_an_immutable_reader_notices_that_someone_began_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read without locks, a store that comes to life is refused from then on instead of read torn."""
    path = tmp_path / "store"
    await fill(path)
    real = sqlite_connect.connect

    def connect(store: Path, query: str) -> sqlite3.Connection:
        if query == "mode=ro":
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return real(store, query)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_connect, "connect", connect)
        connection, immutable = open_reader(path, 0)
        connection.close()
        assert immutable
        reading = open_sqlite_reader(path)
        reader = await reading.__aenter__()
    assert await reader.read("a") == (Row(1, b"x"),)
    async with open_sqlite_log(path) as log:
        await log.append([Entry("a", 1, (b"y",))])
        with pytest.raises(LogStateUnknown, match="open it again"):
            await reader.read("a")
    await reading.__aexit__(None, None, None)
