"""Opening and closing an SQLite store: what is made, how it is set up, and what is left."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
import trio

from affidavit.actors.errors import LogClosed, RunOwned, StoreUnusable
from affidavit.actors.logs import sqlite_schema
from affidavit.actors.logs.port import Entry, Row
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_connect import Synchronous
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.actors.logs.appender import fill, names_in


async def test_a_store_outlives_its_log(tmp_path: Path) -> None:
    """What one log appended, the next one finds, rows and index alike, and goes on from there."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        await log.append([Entry("a", 0, (b"x", b"y"), terminal_seq=2, sealed_size=1)])
    async with open_sqlite_log(path, create=False) as log:
        assert await log.read("a") == (Row(1, b"x"), Row(2, b"y"))
        info = await log.info("a")
        assert info is not None
        assert (info.tip, info.terminal_seq, info.sealed_size) == (2, 2, 1)
        assert await log.append([Entry("a", 2, (b"z",))]) == (3,)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_new_store_is_private_and_has_the_promised_settings(tmp_path: Path) -> None:
    """Files are 0600, folders made for them 0700, the journal is a write-ahead log, and the file says whose it is."""
    path = tmp_path / "made" / "deep" / "store"
    async with open_sqlite_log(path) as log:
        await log.append([Entry("a", 0, (b"x",))])
        for name in ("store", "store-wal", "store-shm", "store.lock"):
            assert _mode(path.parent / name) == 0o600, name
    assert [_mode(folder) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA application_id").fetchone() == (sqlite_schema.APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (sqlite_schema.SCHEMA_VERSION,)


async def test_commits_are_synced_in_full(tmp_path: Path) -> None:
    """The writing connection runs at synchronous=FULL, and leaves checkpoints to the log, which sees their errors."""
    async with open_sqlite_log(tmp_path / "store") as log:
        connection = log._group._store._connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)


async def test_commits_are_not_synced_where_that_was_chosen(tmp_path: Path) -> None:
    """NORMAL is a choice made by name, for this opening alone, and everything else stays as it is."""
    async with open_sqlite_log(tmp_path / "store", synchronous=Synchronous.NORMAL) as log:
        connection = log._group._store._connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
        assert await log.append([Entry("a", 0, (b"x",))]) == (1,)
    async with open_sqlite_log(tmp_path / "store") as log:
        assert log._group._store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert await log.read("a") == (Row(1, b"x"),)


async def test_closing_leaves_one_tidy_file(tmp_path: Path) -> None:
    """When the last log closes, everything is in the database file and SQLite's other files are gone."""
    await fill(tmp_path / "store")
    assert names_in(tmp_path) == ["store", "store.lock"]


async def test_every_descriptor_is_closed_on_exit(tmp_path: Path) -> None:
    """Opening and closing a log and a reader leaves no descriptor open, however the block ends."""
    await fill(tmp_path / "store")
    before = _descriptors()
    with trio.CancelScope() as scope:
        async with open_sqlite_log(tmp_path / "store") as log, open_sqlite_reader(tmp_path / "store"):
            await log.append([Entry("b", 0, (b"x",))])
            scope.cancel()
            await trio.sleep_forever()
    with pytest.raises(StoreUnusable):
        async with open_sqlite_log(tmp_path):
            pytest.fail("opened a directory")
    assert _descriptors() == before


async def test_a_closed_log_refuses_everything(tmp_path: Path) -> None:
    """After its block, each call on a log or reader says that it is closed, and nothing is written."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        await log.append([Entry("a", 0, (b"x",))])
    async with open_sqlite_reader(path) as reader:
        assert await reader.read("a") == (Row(1, b"x"),)
    for call in (
        lambda: log.append([Entry("a", 1, (b"y",))]),
        lambda: log.append([]),
        lambda: log.read("a"),
        lambda: log.info("a"),
        log.list,
        lambda: reader.read("a"),
        lambda: reader.info("a"),
        reader.list,
    ):
        with pytest.raises(LogClosed):
            await call()
    with pytest.raises(LogClosed):
        async with log.own("a"):
            pytest.fail("owned in a closed log")
    async with open_sqlite_reader(path) as again:
        assert await again.read("a") == (Row(1, b"x"),)


@pytest.mark.parametrize("name", ["a b", "a?mode=memory", "a#b", "a%20b", "ünïcode", "-dash", "\udcff"])
async def test_a_path_may_hold_any_character(tmp_path: Path, name: str) -> None:
    """Nothing in a file's name is taken for an option, and the file bears just that name."""
    await fill(tmp_path / name)
    assert (tmp_path / name).is_file()
    async with open_sqlite_reader(tmp_path / name) as reader:
        assert await reader.read("a") == (Row(1, b"x"),)


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """What a crash leaves between making the file and its tables is a new store to the next opening."""
    path = tmp_path / "store"
    path.touch()
    await fill(path)
    other = tmp_path / "other"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("VACUUM")
    assert other.read_bytes()
    await fill(other)


async def test_two_names_of_one_store_share_its_locks(tmp_path: Path) -> None:
    """Whoever opens a store through a link meets the same owners as by its own name."""
    await fill(tmp_path / "store")
    (tmp_path / "link").symlink_to("store")
    async with (
        open_sqlite_log(tmp_path / "store") as first,
        open_sqlite_log(tmp_path / "link") as second,
        first.own("a"),
    ):
        with pytest.raises(RunOwned):
            async with second.own("a"):
                pytest.fail("owned twice")
