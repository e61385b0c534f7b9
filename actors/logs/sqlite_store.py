"""`Store`: the writing connection of one SQLite store together with the locks that its transactions need.

Every write transaction and every checkpoint, by whichever process, happens while its process holds the
store's write lock. So no two connections ever write or checkpoint at once: SQLite before 3.51.3 can corrupt a
write-ahead log when they do.

A `Store` has one user at a time: the loop while it writes rows, the commit thread while it waits, commits,
checkpoints or closes. Who uses it is decided by `sqlite_group`; nothing here checks it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

from affidavit.actors.errors import LogError, LogFull, LogLocked, LogStateUnknown, WriterFenced
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite_apply import insert_rows, move_index
from affidavit.actors.logs.sqlite_connect import Synchronous, checkpoint, open_writer, try_begin, wait_until
from affidavit.actors.logs.sqlite_locks import StoreLocks
from affidavit.actors.logs.sqlite_room import has_room
from affidavit.actors.logs.sqlite_schema import is_busy, primary_code

# What a commit's checkpoint costs, against how long the write-ahead log grows: writing a log that grows is slower to
# sync than writing over the pages of an old one.
CHECKPOINT_PAGES: Final = 2000
_PAGE: Final = 4096
_PAGES_PER_COMMIT: Final = 3  # the last leaf of the rows, a leaf of the index, and now and then a page above
_PAGES_PER_ENTRY: Final = 1  # a leaf of the rows' key, where streams lie apart


@final
class Store:
    """The writing side of one open store.

    Closes: `close` ends a transaction left open, checkpoints, and frees all locks.

    Attributes:
        path: The resolved path of the database file.
        locks: The store's lock file.
    """

    def __init__(self, path: Path, locks: StoreLocks, connection: sqlite3.Connection, grace: float) -> None:
        self.path = path
        self.locks = locks
        self._connection = connection
        self._grace = grace
        self._pages = 0
        self._moved: list[Entry] = []

    @classmethod
    def open(cls, path: Path, grace: float, synchronous: Synchronous = Synchronous.FULL) -> Store:
        """Open the store at a checked place. Blocks.

        Raises:
            StoreUnusable: The file cannot be used as a store.
            LogLocked: Another process held a lock for longer than the grace.
        """
        locks = StoreLocks.open(path)
        try:
            return cls(path, locks, open_writer(path, locks, grace, synchronous), grace)
        except BaseException:
            locks.close()
            raise

    def try_begin(self) -> bool:
        """Begin a write transaction if no process is in one; at once, never waiting.

        Raises:
            sqlite3.Error: The store failed.
            OSError: The lock file failed.
        """
        if not self.locks.try_write():
            return False
        begun = False
        try:
            begun = try_begin(self._connection)
        finally:
            if not begun:
                self.locks.release_write()
        return begun

    def wait_to_begin(self, stop: threading.Event) -> bool:
        """Begin a write transaction as soon as no process is in one, within the grace. Blocks.

        Raises:
            sqlite3.Error: The store failed.
            OSError: The lock file failed.
        """
        return wait_until(self.try_begin, self._grace, stop)

    def compare(self, entries: Iterable[Entry]) -> tuple[int | WriterFenced, ...]:
        """Move the index for each entry that wins its compare, in the open transaction; `write` must follow.

        Raises:
            sqlite3.Error: The transaction must be undone with `undo`.
        """
        results: list[int | WriterFenced] = []
        for entry in entries:
            result = move_index(self._connection, entry)
            results.append(result)
            if isinstance(result, int):
                self._moved.append(entry)
        return tuple(results)

    def write(self) -> bool:
        """Write the rows of all entries that won, and return whether there were any.

        Raises:
            sqlite3.Error: The transaction must be undone with `undo`.
        """
        moved, self._moved = self._moved, []
        insert_rows(self._connection, moved)
        self._pages += len(moved) * _PAGES_PER_ENTRY
        self._pages += sum(len(row) for entry in moved for row in entry.rows) // _PAGE
        return bool(moved)

    def commit(self) -> None:
        """Make the open transaction durable. Blocks for the sync.

        Raises:
            sqlite3.Error: `undo` says what is known of the outcome.
        """
        self._connection.execute("COMMIT")
        self._pages += _PAGES_PER_COMMIT

    def checkpoint_is_due(self) -> bool:
        """Tell whether the write-ahead log has grown enough to be copied into the database."""
        return self._pages >= CHECKPOINT_PAGES

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database and sync, the write lock being held. Blocks.

        A crash in the middle leaves the log as it was; the next opening does it again.

        Raises:
            sqlite3.Error: A read, write or sync failed; the page cache can no longer be trusted.
        """
        self._pages = 0
        checkpoint(self._connection)

    def leave(self) -> None:
        """End a transaction in which nothing was written, and let other processes write.

        Raises:
            sqlite3.Error: The store failed.
            OSError: The lock file failed.
        """
        self._moved = []
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            self.locks.release_write()

    def undo(self, error: Exception) -> LogError:
        """Roll back after a failed write or commit, let other processes write, and say what is known.

        Returns:
            LogFull or LogLocked where certainly nothing was written; else LogStateUnknown, and the store must
            not be used any more.
        """
        failure = self._meaning(error)
        try:
            self.leave()
        except (sqlite3.Error, OSError) as second:
            failure = LogStateUnknown(f"the store {self.path} could not be rolled back: {second}")
        failure.__cause__ = error
        return failure

    def _meaning(self, error: Exception) -> LogError:
        if isinstance(error, sqlite3.Error):
            if is_busy(error):
                return LogLocked(f"the store {self.path} is locked by another program")
            full = primary_code(error) == sqlite3.SQLITE_FULL
            if full or (_failed_to_write(error) and not has_room(self.path)):
                return LogFull(f"there is no room left for the store {self.path}")
        return LogStateUnknown(f"a write to the store {self.path} failed, its outcome is unknown: {error}")

    def close(self) -> None:
        """Close the connection and the lock file. Blocks. Never raises: what was acknowledged is safe."""
        with contextlib.suppress(OSError):
            # Closing the last connection checkpoints, which is writing. Without the lock someone else has the
            # store open, and then this is not the last.
            wait_until(self.locks.try_write, self._grace, threading.Event())
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        self.locks.close()


def _failed_to_write(error: sqlite3.Error) -> bool:
    # A write that falls short leaves the commit frame incomplete, so recovery will not see the transaction
    # either.
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_WRITE
