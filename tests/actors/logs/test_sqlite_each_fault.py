"""Every statement of a workload failed in turn, both ways: whatever was acknowledged stands, and what stands is dense."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio

from affidavit.actors.errors import LogClosed, LogError, LogFull, LogLocked, LogStateUnknown, StoreUnusable
from affidavit.actors.logs import sqlite_store
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from tests.actors.logs.faulty import How, Plan, plan

__all__ = ["plan"]

STREAMS = ("a", "b", "c")
APPENDS = 5
KNOWN = {sqlite3.SQLITE_FULL: LogFull, sqlite3.SQLITE_BUSY: LogLocked}
IOERR_WRITE, IOERR_FSYNC, IOERR_READ = 778, 1034, 266
CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, IOERR_WRITE, IOERR_FSYNC, IOERR_READ)


@contextmanager
def _memory() -> Iterator[Path]:
    """A folder whose syncs cost nothing: no power is lost here."""
    fast = Path("/dev/shm")
    with TemporaryDirectory(dir=fast if fast.is_dir() else None) as name:
        yield Path(name)


class Workload:
    """Appends to several streams at once, as far as the store lets it.

    Attributes:
        acknowledged: For each stream the rows whose append returned.
        errors: What the others raised.
    """

    def __init__(self) -> None:
        self.acknowledged: dict[str, list[bytes]] = {stream: [] for stream in STREAMS}
        self.errors: list[LogError] = []

    async def run(self, path: Path) -> None:
        """Open the store, append, close it."""
        try:
            async with open_sqlite_log(path, lock_grace=0) as log, trio.open_nursery() as nursery:
                for stream in STREAMS:
                    nursery.start_soon(self._write, log, stream)
        except LogError as error:
            self.errors.append(error)

    async def _write(self, log: SqliteLog, stream: str) -> None:
        done = self.acknowledged[stream]
        for number in range(APPENDS):
            row = f"{stream} {number} {'x' * 3000}".encode()
            try:
                await log.append([Entry(stream, len(done), (row,))])
            except (LogFull, LogLocked) as error:
                # Known not to be written: the log goes on, and the next row takes this seq.
                self.errors.append(error)
                continue
            except LogError as error:
                self.errors.append(error)
                return
            done.append(row)


def _stored(path: Path) -> dict[str, list[bytes]]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found: dict[str, list[bytes]] = {}
        if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            return found
        for stream, seq, data in connection.execute("SELECT stream, seq, data FROM rows ORDER BY 1, 2"):
            found.setdefault(stream, []).append(data)
            assert len(found[stream]) == seq
        assert {stream: len(rows) for stream, rows in found.items()} == dict(
            connection.execute("SELECT stream, tip FROM streams")
        )
        return found


@pytest.mark.parametrize(
    ("code", "how"),
    # What SQLite calls full or busy it has not written.
    [(code, how) for code in CODES for how in How if how is How.BEFORE or code not in KNOWN],
)
async def test_each_statement_failed_in_turn(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, code: int, how: How
) -> None:
    """S1, S6: no acknowledged row is missing, none is there twice, none that was called not written is; the store goes on."""
    monkeypatch.setattr(sqlite_store, "CHECKPOINT_PAGES", 10)
    number, failed = 0, True
    while failed:
        number += 1
        with _memory() as folder:
            plan.fail_number(number, code, how)
            workload = Workload()
            await workload.run(folder / "store")
            failed = plan.fired
            plan.fail_number(0, code, how)
            _check(folder / "store", workload, code, failed=failed)
            await Workload().run(folder / "store")
            async with open_sqlite_log(folder / "store") as log:
                tips = {info.stream: info.tip for info in await log.list()}
                assert await log.append([Entry("a", tips.get("a", 0), (b"on",))]) == (tips.get("a", 0) + 1,)
    assert number > 2 * APPENDS, "the plan never came to the end of the workload"


def _check(path: Path, workload: Workload, code: int, *, failed: bool) -> None:
    stored = _stored(path)
    unknown = any(isinstance(error, LogStateUnknown | LogClosed) for error in workload.errors)
    for stream, rows in workload.acknowledged.items():
        found = stored.get(stream, [])
        assert found[: len(rows)] == rows, f"{stream}: {workload.errors}"
        if not unknown:
            assert len(found) == len(rows), "a row is there whose append was said not to have written it"
        assert len(found) <= len(rows) + 1
    if not failed:
        assert workload.errors == []
    for error in workload.errors:
        assert isinstance(
            error, (LogStateUnknown, LogClosed, StoreUnusable, KNOWN.get(code, LogStateUnknown))
        )
        assert "\n" not in str(error)
