"""`SqliteLog`: the log in one SQLite file, the embedded default.

This is the composition: `sqlite_group` writes, `sqlite_reader` reads, `sqlite_locks` says who owns a run. Any
number of processes may have one store open; each run has one owner, and each transaction one writer.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, final

import trio

from affidavit.actors.errors import LogStateUnknown, WriterFenced
from affidavit.actors.logs.entries import check_entries
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Entry, Row, StreamInfo, Told
from affidavit.actors.logs.sqlite_connect import Synchronous, check_before_writing, open_reader
from affidavit.actors.logs.sqlite_group import COMMIT_GRACE, GroupCommit
from affidavit.actors.logs.sqlite_locks import StoreLocks
from affidavit.actors.logs.sqlite_place import resolve
from affidavit.actors.logs.sqlite_reader import SqliteReader
from affidavit.actors.logs.sqlite_store import Store

LOCK_GRACE: Final = 5.0


@final
class SqliteLog:
    """An open SQLite store; made by `open_sqlite_log` only."""

    def __init__(self, group: GroupCommit, reader: SqliteReader, locks: StoreLocks) -> None:
        self._group = group
        self._reader = reader
        self._locks = locks

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Apply each entry whose compare holds, and return once they are synced; see `Log.append`."""
        checked = check_entries(entries)
        if not checked:
            await trio.lowlevel.checkpoint()
            self._group.check_open()
            return ()
        return await self._group.append(checked)

    def submit(self, entry: Entry, told: Told) -> None:
        """Take one entry, and say later what came of it; see `SubmittingLog.submit`."""
        self._group.submit(check_entries((entry,)), told)

    @asynccontextmanager
    async def own(self, stream: str) -> AsyncIterator[None]:
        """Hold exclusive ownership of a run while the block lasts; see `Log.own`.

        Raises:
            RunOwned: Someone else holds it.
            LogClosed: The log is closed.
        """
        await trio.lowlevel.checkpoint()
        self._group.check_open()
        self._locks.own(stream)
        try:
            yield
        finally:
            self._locks.disown(stream)

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        """Return up to `limit` rows with seq > after_seq; see `LogReader.read`."""
        self._group.check_open()
        try:
            return await self._reader.read(stream, after_seq, limit)
        except LogStateUnknown as error:
            self._group.fail(error)
            raise

    async def info(self, stream: str) -> StreamInfo | None:
        """Return one stream's index row, or None if it has no events."""
        self._group.check_open()
        try:
            return await self._reader.info(stream)
        except LogStateUnknown as error:
            self._group.fail(error)
            raise

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        """Return the seq of the last event of each stream, 0 for one that has none; see `LogReader.tips`."""
        self._group.check_open()
        try:
            return await self._reader.tips(streams)
        except LogStateUnknown as error:
            self._group.fail(error)
            raise

    async def version(self) -> int:
        """Return a number that changes with each commit, by whichever process; see `VersionedReader.version`."""
        self._group.check_open()
        return await self._reader.version()

    async def list(self, prefix: str = "") -> tuple[StreamInfo, ...]:
        """Return the index rows of all streams whose id begins with `prefix`, ordered by id."""
        self._group.check_open()
        try:
            return await self._reader.list(prefix)
        except LogStateUnknown as error:
            self._group.fail(error)
            raise


@asynccontextmanager
async def open_sqlite_log(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    lock_grace: float = LOCK_GRACE,
    synchronous: Synchronous = Synchronous.FULL,
) -> AsyncIterator[SqliteLog]:
    """Open a store for writing.

    Args:
        path: The database file. It is made with mode 0600, and missing folders above it with 0700.
        create: Whether to make a store where there is none.
        lock_grace: For how many seconds an append, or the opening, waits while another process writes.
        synchronous: What a commit waits for. With NORMAL, "durable" means that the process may be lost, not the
            power. Since many appends share a commit, it gains little but for a lone writer.

    Raises:
        StoreUnusable: The path holds no store that can be written, or none and none shall be made.
        LogLocked: Another process held the write lock for longer than the grace.

    Cancellation: opening runs to its end, at most the grace. Closing waits for the commit in flight,
    shielded, within `COMMIT_GRACE`.
    """
    store, reader = await trio.to_thread.run_sync(
        partial(_open, resolve(path), lock_grace, synchronous, create=create)
    )
    group = GroupCommit(store, COMMIT_GRACE + lock_grace)
    try:
        yield SqliteLog(group, reader, store.locks)
    finally:
        # First, so that the writing connection is this process's last and its close can tidy up.
        reader.close()
        await group.close()  # noqa: ASYNC102  # shielded inside, and bounded in real time


def _open(path: Path, grace: float, synchronous: Synchronous, *, create: bool) -> tuple[Store, SqliteReader]:
    check_before_writing(path, create=create)
    store = Store.open(path, grace, synchronous)
    try:
        connection, _ = open_reader(path, grace)
    except BaseException:
        store.close()
        raise
    return store, SqliteReader(path, connection)
