"""`SqliteReader`: reading a store, in the loop, in slices, on a connection that can do nothing else.

No read transaction outlives a slice, so a reader pins no part of the write-ahead log and never makes the
owner wait. Rows are never changed or removed, so slices read one after another fit together.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, cast, final

import trio

from affidavit.actors.errors import LogClosed, LogLocked, LogStateUnknown
from affidavit.actors.logs.entries import MAX_SEQ, check_limit, is_storable_name
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Row, StreamInfo
from affidavit.actors.logs.sqlite_connect import open_reader
from affidavit.actors.logs.sqlite_place import has_wal, resolve
from affidavit.actors.logs.sqlite_schema import is_busy

READ_GRACE: Final = 5.0  # seconds to wait while another process recovers or closes the store
_PAUSE: Final = 0.01
_SLICE: Final = 256
_READ: Final = "SELECT seq, data FROM rows WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?"
_INFO: Final = "SELECT stream, tip, terminal_seq, sealed_size FROM streams WHERE stream = ?"
_FROM: Final = (
    "SELECT stream, tip, terminal_seq, sealed_size FROM streams WHERE stream >= ? ORDER BY stream LIMIT ?"
)
_VERSION: Final = "PRAGMA data_version"
# Few texts, so that each is compiled once; a place that is not needed holds the empty name, which no stream has.
_TIPS: Final = {
    places: "SELECT stream, tip FROM streams WHERE stream IN (" + ", ".join("?" * places) + ")"  # noqa: S608
    for places in (2, 16, _SLICE)
}
_AFTER: Final = (
    "SELECT stream, tip, terminal_seq, sealed_size FROM streams WHERE stream > ? ORDER BY stream LIMIT ?"
)

_Rows: TypeAlias = list[tuple[object, ...]]  # named here, since the class has a method `list`
_Tips: TypeAlias = list[tuple[str, int]]


@final
class SqliteReader:
    """A store opened for reading alone: a `LogReader`, and nothing that could disturb the owner.

    Closes: `close`, which a call that comes later meets as LogClosed.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, *, immutable: bool = False) -> None:
        self._path = path
        self._connection = connection
        self._immutable = immutable
        self._closed = False

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        """Return up to `limit` rows with seq > after_seq; see `LogReader.read`."""
        count = check_limit(limit)
        await self._checkpoint()
        found: list[Row] = []
        cursor = min(max(after_seq, 0), MAX_SEQ)
        while is_storable_name(stream) and len(found) < count:
            wanted = min(_SLICE, count - len(found))
            page = await self.query(_READ, (stream, cursor, wanted))
            found += map(Row._make, page)
            if len(page) < wanted:
                break
            cursor = found[-1].seq
            await self._checkpoint()
        return tuple(found)

    async def info(self, stream: str) -> StreamInfo | None:
        """Return one stream's index row, or None if it has no events."""
        await self._checkpoint()
        if not is_storable_name(stream):
            return None
        found = await self.query(_INFO, (stream,))
        return _infos(found)[0] if found else None

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        """Return the seq of the last event of each stream, 0 for one that has none; see `LogReader.tips`."""
        await self._checkpoint()
        asked = [stream for stream in streams if is_storable_name(stream)]
        found: dict[object, object] = {}
        for begin in range(0, len(asked), _SLICE):
            if begin:
                await self._checkpoint()
            page = asked[begin : begin + _SLICE]
            places = next(places for places in _TIPS if places >= len(page))
            values = (*page, *[""] * (places - len(page)))
            found.update(cast("_Tips", await self.query(_TIPS[places], values)))
        return tuple(cast("int", found.get(stream, 0)) for stream in streams)

    async def list(self, prefix: str = "") -> tuple[StreamInfo, ...]:
        """Return the index rows of all streams whose id begins with `prefix`, ordered by id."""
        await self._checkpoint()
        found: list[StreamInfo] = []
        if prefix and not is_storable_name(prefix):
            return ()
        page = _infos(await self.query(_FROM, (prefix, _SLICE)))
        while page:
            # Ids with one prefix stand together, from the prefix itself on.
            fitting = [info for info in page if info.stream.startswith(prefix)]
            found += fitting
            if len(fitting) < _SLICE:
                break
            await self._checkpoint()
            page = _infos(await self.query(_AFTER, (page[-1].stream, _SLICE)))
        return tuple(found)

    async def version(self) -> int:
        """Return a number that changes with each commit, by whichever process; see `VersionedReader.version`.

        It is read from the shared memory beside the write-ahead log, which costs a few microseconds.
        """
        await self._checkpoint()
        return cast("int", (await self.query(_VERSION, ()))[0][0])

    def close(self) -> None:
        """Close the connection."""
        self._closed = True
        self._connection.close()

    async def _checkpoint(self) -> None:
        await trio.lowlevel.checkpoint()
        if self._closed:
            raise LogClosed(f"the store {self._path} is closed")

    async def query(self, query: str, values: tuple[object, ...]) -> _Rows:
        """Return what one query gives, all of it at once: for those who look at the tables themselves, such as fsck.

        Raises:
            LogStateUnknown: It failed.
            LogLocked: Another process held a lock for longer than the grace.
        """
        give_up = trio.current_time() + READ_GRACE
        while True:
            self._check_unchanged()
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise LogStateUnknown(f"the store {self._path} could not be read: {error}") from error
            if trio.current_time() >= give_up:
                raise LogLocked(f"the store {self._path} is locked by another process")
            await trio.sleep(_PAUSE)
            await self._checkpoint()

    def _check_unchanged(self) -> None:
        # Read as immutable, the file is read without locks, which is wrong as soon as somebody writes it.
        if self._immutable and has_wal(self._path):
            raise LogStateUnknown(f"the store {self._path} has begun to be written: open it again")


def _infos(found: _Rows) -> list[StreamInfo]:
    return [StreamInfo(*cast("tuple[str, int, int, int]", row)) for row in found]


@asynccontextmanager
async def open_sqlite_reader(
    path: str | os.PathLike[str], *, grace: float = READ_GRACE, even_damaged: bool = False
) -> AsyncIterator[SqliteReader]:
    """Open a store for reading alone: it never writes, checkpoints or makes an owner wait.

    Where nobody has the store open, SQLite may make its two helper files beside it, one of them empty, and
    leaves them there; the database and the rows in its write-ahead log stay as they are, byte for byte.

    Args:
        path: The database file.
        grace: For how many seconds to wait for another process's lock.
        even_damaged: Whether to read what is left where the write-ahead log has lost acknowledged rows.

    Raises:
        StoreUnusable: There is no readable store at that path.
        LogLocked: Another process held a lock for longer than the grace.

    Cancellation: opening runs to its end, at most the grace; then the store is closed again.
    """
    store = resolve(path)
    connection, immutable = await trio.to_thread.run_sync(
        partial(open_reader, store, grace, even_damaged=even_damaged)
    )
    reader = SqliteReader(store, connection, immutable=immutable)
    try:
        yield reader
    finally:
        reader.close()
