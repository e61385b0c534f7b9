"""What each failure of an SQLite store means, and to which appends."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from affidavit.actors.errors import LogClosed, LogFull, LogLocked, LogStateUnknown
from affidavit.actors.logs import sqlite, sqlite_store
from affidavit.actors.logs.port import Entry, StreamInfo
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_locks import StoreLocks
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.actors.logs.appender import Appender, entry, streams_of
from tests.actors.logs.faulty import FaultyConnection, How, Plan, plan

__all__ = ["plan"]

IOERR_FSYNC = 1034
IOERR_WRITE = 778


@pytest.mark.parametrize("statement", ["COMMIT", "INSERT INTO rows", "UPDATE streams"])
async def test_a_full_store_fails_the_batch_and_the_log_goes_on(
    tmp_path: Path, plan: Plan, statement: str
) -> None:
    """SQLITE_FULL anywhere is LogFull for each append of the batch; nothing of it is written, the next one is."""
    async with open_sqlite_log(tmp_path / "store") as log:
        plan.fail(statement, sqlite3.SQLITE_FULL)
        appenders = [Appender(log, entry(name)) for name in "abc"]
        async with trio.open_nursery() as nursery:
            for appender in appenders:
                nursery.start_soon(appender.run)
        errors = [appender.error for appender in appenders]
        assert all(isinstance(error, LogFull) for error in errors)
        assert len({id(error) for error in errors}) == 3, "each appender raises an error of its own"
        assert await log.list() == ()
        assert await log.append([entry("a")]) == (1,)


@pytest.mark.parametrize("how", How)
async def test_a_commit_that_fails_in_an_unknown_way_closes_the_log(
    tmp_path: Path, plan: Plan, how: How
) -> None:
    """The appends taken are told that the outcome is unknown, those waiting that the log is closed; reopening tells."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        await log.append([entry("before")])
        plan.hold("COMMIT")
        plan.fail("COMMIT", IOERR_FSYNC, how)
        taken, waiting = Appender(log, entry("taken")), Appender(log, entry("waiting"))
        nursery.start_soon(taken.run)
        await trio.to_thread.run_sync(plan.entered.wait)
        nursery.start_soon(waiting.run)
        await trio.testing.wait_all_tasks_blocked()
        plan.release.set()
    assert isinstance(taken.error, LogStateUnknown)
    assert isinstance(waiting.error, LogClosed)
    with pytest.raises(LogClosed):
        await log.append([entry("later")])
    with pytest.raises(LogClosed):
        await log.read("before")
    assert await streams_of(path) == (["before", "taken"] if how is How.AFTER else ["before"])


@pytest.mark.parametrize("statement", ["BEGIN", "UPDATE streams", "INSERT INTO rows"])
async def test_an_io_error_anywhere_closes_the_log(tmp_path: Path, plan: Plan, statement: str) -> None:
    """An I/O error before the commit leaves nothing written, but the page cache can no longer be trusted."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        plan.fail(statement, IOERR_WRITE)
        with pytest.raises((LogStateUnknown, LogClosed)):
            await log.append([entry("a")])
        with pytest.raises(LogClosed):
            await log.append([entry("a")])
    assert await streams_of(path) == []


async def test_an_io_error_while_waiting_for_the_lock_closes_the_log(tmp_path: Path, plan: Plan) -> None:
    """An append that was not taken yet is told that the log is closed, which means that it was not written."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        others = StoreLocks.open(path)
        assert others.try_write()
        waiting = Appender(log, entry("a"))
        nursery.start_soon(waiting.run)
        await trio.testing.wait_all_tasks_blocked()
        plan.fail("BEGIN", IOERR_WRITE)
        others.close()
    assert isinstance(waiting.error, LogClosed)
    assert await streams_of(path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
async def test_an_exceeded_quota_is_a_full_store(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """SQLite calls it an I/O error; since the system says that there is no room, it is a known not-written."""

    def no_room(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    async with open_sqlite_log(tmp_path / "store") as log:
        plan.fail("COMMIT", IOERR_WRITE)
        with monkeypatch.context() as patch:
            patch.setattr(os, "posix_fallocate", no_room)
            with pytest.raises(LogFull):
                await log.append([entry("a")])
        assert await log.append([entry("a")]) == (1,)


async def test_a_busy_store_is_read_again_and_then_called_locked(
    tmp_path: Path, plan: Plan, autojump_clock: trio.testing.MockClock
) -> None:
    """A reader that meets another process's recovery tries again for its grace; the store itself is sound."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        await log.append([entry("a")])
    async with open_sqlite_reader(path) as reader:
        reader._connection = cast("sqlite3.Connection", FaultyConnection(reader._connection, plan))
        plan.fail("SELECT", sqlite3.SQLITE_BUSY)
        assert await reader.info("a") == StreamInfo("a", 1)
        plan.fail("SELECT", sqlite3.SQLITE_BUSY, always=True)
        with pytest.raises(LogLocked):
            await reader.info("a")


async def test_a_rollback_that_fails_makes_a_known_failure_unknown(tmp_path: Path, plan: Plan) -> None:
    """Full, but not rolled back: the log cannot promise that nothing was written, so it closes."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        plan.fail("COMMIT", sqlite3.SQLITE_FULL)
        plan.fail("ROLLBACK", IOERR_WRITE)
        with pytest.raises(LogStateUnknown):
            await log.append([entry("a")])
        with pytest.raises(LogClosed):
            await log.append([entry("a")])
    assert await streams_of(path) == []


async def test_an_index_that_contradicts_the_rows_closes_the_log(tmp_path: Path) -> None:
    """A store whose index says that a seq is free while a row has it is not written to."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        await log.append([Entry("a", 0, (b"x", b"y"))])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE streams SET tip = 1")
    async with open_sqlite_log(path) as log:
        with pytest.raises(LogStateUnknown):
            await log.append([Entry("a", 1, (b"other",))])
    async with open_sqlite_log(path) as log:
        assert [row.data for row in await log.read("a")] == [b"x", b"y"]


async def test_a_failed_checkpoint_closes_the_log_but_loses_nothing(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was committed before the checkpoint failed was acknowledged, and is there when the store is opened again."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        monkeypatch.setattr(sqlite_store, "CHECKPOINT_PAGES", 1)
        plan.fail("PRAGMA wal_checkpoint", IOERR_FSYNC)
        assert await log.append([entry("a")]) == (1,)
        with pytest.raises(LogClosed):
            await log.append([entry("b")])
    assert "a" in await streams_of(path)


async def test_a_failed_read_closes_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that cannot be read must not be built upon."""
    async with open_sqlite_log(tmp_path / "store") as log:
        await log.append([entry("a")])
        connection = log._reader._connection
        for call in (lambda: log.read("a"), lambda: log.info("a"), log.list):
            monkeypatch.setattr(log._group, "_closed", "")
            connection.close()
            with pytest.raises(LogStateUnknown):
                await call()
            with pytest.raises(LogClosed):
                await log.append([entry("a", 1)])


async def test_a_commit_that_does_not_end_is_given_up(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the grace the outcome counts as unknown: the append says so and the log is closed, though the sync still hangs."""
    monkeypatch.setattr(sqlite, "COMMIT_GRACE", 0.02)
    path = tmp_path / "store"
    async with open_sqlite_log(path, lock_grace=0.02) as log:
        plan.hold("COMMIT")
        with pytest.raises(LogStateUnknown, match="did not end in time"):
            await log.append([entry("a")])
        with pytest.raises(LogClosed):
            await log.append([entry("b")])
        plan.release.set()
    assert await streams_of(path) in ([], ["a"])
