"""`Inspector`: a store's tables as they are, index and rows apart, for a check that trusts neither.

It reads in slices on a connection that can only read, so that an owner goes on undisturbed; what is appended
meanwhile lies beyond what is compared. It interprets nothing: `affidavit.actors.fsck` does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final, cast, final

import trio

from affidavit.actors.logs.port import Row, StreamInfo
from affidavit.actors.logs.sqlite_connect import open_reader
from affidavit.actors.logs.sqlite_place import resolve
from affidavit.actors.logs.sqlite_reader import READ_GRACE, SqliteReader, open_sqlite_reader
from affidavit.actors.logs.sqlite_wal import WalState, scan_wal

_SLICE: Final = 64  # rows between two checkpoints of the loop; whoever asks hashes each of them
_MOST: Final = 20  # faults of the database that are named
_STEPS: Final = 20_000  # of SQLite's machine, between two looks at whether the check was cancelled
_NEXT: Final = "SELECT stream FROM rows WHERE stream > ? ORDER BY stream LIMIT 1"
_LAST: Final = "SELECT max(seq) FROM rows WHERE stream = ?"


@final
class Inspector:
    """A store opened to be inspected; made by `open_inspector`."""

    def __init__(self, path: Path, reader: SqliteReader) -> None:
        """Use `open_inspector`."""
        self.path = path
        self._reader = reader

    async def index(self) -> tuple[StreamInfo, ...]:
        """Return all rows of the index.

        Raises:
            LogStateUnknown: The table cannot be read.
        """
        return await self._reader.list()

    async def info(self, stream: str) -> StreamInfo | None:
        """Return one stream's row of the index, as it is now."""
        return await self._reader.info(stream)

    async def rows(self, stream: str, after_seq: int) -> tuple[Row, ...]:
        """Return the next rows of a stream.

        Raises:
            LogStateUnknown: The table cannot be read there.
        """
        return await self._reader.read(stream, after_seq, _SLICE)

    async def last_seq(self, stream: str) -> int:
        """Return the greatest seq of a stream's rows, 0 if it has none."""
        found = await self._reader.query(_LAST, (stream,))
        return cast("int", found[0][0] or 0)

    async def streams_with_rows(self) -> tuple[str, ...]:
        """Return the streams that have rows, whatever the index says."""
        streams: list[str] = []
        while found := await self._reader.query(_NEXT, (streams[-1] if streams else "",)):
            streams.append(cast("str", found[0][0]))
            await trio.lowlevel.checkpoint()
        return tuple(streams)

    async def database_faults(self) -> tuple[str, ...]:
        """Return what SQLite itself finds wrong with its pages, tables and keys, in its own words.

        Cancellation: the check, which runs in a thread, stops within a moment.
        """
        return await trio.to_thread.run_sync(_integrity, self.path)

    async def wal(self) -> WalState:
        """Return what the write-ahead log holds, as its frames tell."""
        return await trio.to_thread.run_sync(scan_wal, self.path)


def _integrity(path: Path) -> tuple[str, ...]:
    cancelled: list[BaseException] = []

    def look() -> bool:
        try:
            trio.from_thread.check_cancelled()
        except BaseException as error:  # noqa: ASYNC103  # raised below; SQLite would lose it
            cancelled.append(error)
        return bool(cancelled)

    try:
        # As every reader is opened, so that a store on a read-only disk is checked and not called damaged.
        with closing(open_reader(path, READ_GRACE, even_damaged=True)[0]) as connection:
            connection.set_progress_handler(look, _STEPS)
            found = connection.execute(f"PRAGMA integrity_check({_MOST})").fetchall()
    except sqlite3.Error as error:
        if cancelled:
            raise cancelled[0] from None
        return (str(error),)
    return tuple(str(text) for (text,) in found if text != "ok")


@asynccontextmanager
async def open_inspector(path: Path) -> AsyncIterator[Inspector]:
    """Open a store to inspect it: read-only, and even where acknowledged rows are known to be lost.

    Raises:
        StoreUnusable: There is no readable store at that path.
        LogLocked: Another process held a lock for too long.
    """
    async with open_sqlite_reader(path, even_damaged=True) as reader:
        yield Inspector(resolve(path), reader)
