"""A store of an older version: brought up to date whole, by one who has it alone; read only afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.actors.errors import LogLocked, StoreUnusable
from affidavit.actors.logs import sqlite_schema
from affidavit.actors.logs.port import Entry, Row
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.actors.logs.appender import fill
from tests.actors.logs.faulty import Plan, plan

__all__ = ["plan"]


def _add_note(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE streams ADD COLUMN note TEXT NOT NULL DEFAULT 'none'")


def _fill_note(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE streams SET note = 'was ' || note")


def _now_version_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_schema, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", {1: _add_note, 2: _fill_note})


def _state(path: Path) -> tuple[int, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return version, [name for _, name, *_ in connection.execute("PRAGMA table_info(streams)")]


def test_there_is_a_step_from_every_version_to_the_next() -> None:
    """Whatever version a store has, a way leads to this one."""
    assert sorted(sqlite_schema.MIGRATIONS) == list(range(1, sqlite_schema.SCHEMA_VERSION))


async def test_an_older_store_is_brought_up_to_date_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening it to write runs the missing steps in order, keeps every row, and marks it with this version."""
    path = tmp_path / "store"
    await fill(path)
    _now_version_3(monkeypatch)
    async with open_sqlite_log(path) as log:
        assert await log.read("a") == (Row(1, b"x"),)
        assert await log.append([Entry("a", 1, (b"y",))]) == (2,)
    assert _state(path) == (3, ["stream", "tip", "terminal_seq", "sealed_size", "note"])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT note FROM streams").fetchall() == [("was none",)]
    async with open_sqlite_log(path), open_sqlite_reader(path) as reader:
        assert await reader.read("a") == (Row(1, b"x"), Row(2, b"y"))


@pytest.mark.parametrize("statement", ["ALTER", "UPDATE streams SET note", "PRAGMA user_version =", "COMMIT"])
async def test_a_failed_step_leaves_the_old_version_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan, statement: str
) -> None:
    """All steps are one transaction: if it fails at any statement the store is as it was, and can be opened again."""
    path = tmp_path / "store"
    await fill(path)
    with monkeypatch.context() as patch:
        _now_version_3(patch)
        plan.fail(statement, sqlite3.SQLITE_FULL)
        with pytest.raises(StoreUnusable, match="no room"):
            async with open_sqlite_log(path):
                pytest.fail("opened")
    assert _state(path) == (1, ["stream", "tip", "terminal_seq", "sealed_size"])
    async with open_sqlite_log(path) as log:
        assert await log.read("a") == (Row(1, b"x"),)


async def test_a_store_in_use_is_not_changed_under_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the older version may have it open: the newer one says so, and the older one goes on."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as old:
        await old.append([Entry("a", 0, (b"x",))])
        with monkeypatch.context() as patch:
            _now_version_3(patch)
            with pytest.raises(LogLocked, match="while it is in use"):
                async with open_sqlite_log(path, lock_grace=0):
                    pytest.fail("opened")
        assert await old.append([Entry("a", 1, (b"y",))]) == (2,)
    assert _state(path)[0] == 1


async def test_a_reader_does_not_guess_at_older_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not change them, so it says how they are brought up to date, and leaves the file as it is."""
    path = tmp_path / "store"
    await fill(path)
    before = path.read_bytes()
    _now_version_3(monkeypatch)
    with pytest.raises(StoreUnusable, match="older version"):
        async with open_sqlite_reader(path):
            pytest.fail("opened")
    assert path.read_bytes() == before
