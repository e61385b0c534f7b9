"""How connections to a store are made and checked: one that writes, any number that only read.

All of it blocks, so it runs in a thread. The writing connection is opened, and given its tables, under the
store's write lock; a reading connection takes none, and cannot write, checkpoint, or make a writer wait.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Final

from affidavit.actors.errors import LogLocked, StoreUnusable
from affidavit.actors.logs import sqlite_schema
from affidavit.actors.logs.sqlite_locks import StoreLocks, is_in_use
from affidavit.actors.logs.sqlite_place import (
    check_place,
    check_writable,
    has_wal,
    make_file,
    make_folder,
)
from affidavit.actors.logs.sqlite_room import has_room
from affidavit.actors.logs.sqlite_schema import (
    create_tables,
    is_busy,
    migrate,
    needs_rollback,
    number,
    primary_code,
    unusable,
    version_of,
)
from affidavit.actors.logs.sqlite_wal import require_whole_wal

PAUSE: Final = (
    0.002  # seconds between two tries for a lock; the owner's lock is free for about 0.1 ms of each commit
)


class Synchronous(StrEnum):
    """What a commit waits for, named as SQLite's own setting is.

    FULL: until the rows are on the disk, so that an acknowledged append survives the loss of power.
    NORMAL: until the system has them. They survive the loss of the process; a loss of power may take the last ones,
        though acknowledged, and leaves a sound store that ends earlier. A seal over what was lost then stands alone.
    """

    FULL = "FULL"
    NORMAL = "NORMAL"


_LEVELS: Final = {Synchronous.FULL: 2, Synchronous.NORMAL: 1}


def wait_until(attempt: Callable[[], bool], grace: float, stop: threading.Event) -> bool:
    """Try again and again until it succeeds; blocks the calling thread.

    Args:
        attempt: Returns whether it succeeded.
        grace: For how many seconds to try, at least.
        stop: Set by someone who wants the waiting to end early.

    Returns:
        Whether it succeeded.
    """
    for _ in range(math.ceil(grace / PAUSE) + 1):
        if attempt():
            return True
        if stop.wait(PAUSE):
            return False
    return False


def try_begin(connection: sqlite3.Connection) -> bool:
    """Begin a write transaction if nobody else has one; at once, never waiting.

    Raises:
        sqlite3.Error: It failed for another reason than someone else's lock.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        if is_busy(error):
            return False
        raise
    return True


def checkpoint(connection: sqlite3.Connection) -> None:
    """Copy committed rows from the write-ahead log into the database, as far as readers allow, and sync.

    SQLite's own automatic checkpoints hide their errors; this one raises them. The caller holds the write
    lock.

    Raises:
        sqlite3.Error: A read, write or sync failed.
    """
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def connect(store: Path, query: str) -> sqlite3.Connection:
    """Return a bare connection. It never waits for locks, and may be used from one thread at a time."""
    return sqlite3.connect(
        f"{store.absolute().as_uri()}?{query}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )


def open_writer(
    store: Path, locks: StoreLocks, grace: float, synchronous: Synchronous = Synchronous.FULL
) -> sqlite3.Connection:
    """Return the connection that writes, to a store that exists afterwards and is of this version.

    Raises:
        StoreUnusable: The file cannot be used as a store.
        LogLocked: Another process held a lock for longer than the grace.
    """
    never = threading.Event()
    try:
        locked = wait_until(locks.try_write, grace, never)
    except OSError as error:
        raise StoreUnusable(
            f"the place of the store {store} allows no file locks: {error.strerror}"
        ) from None
    if not locked:
        raise LogLocked(f"the store {store} is locked by another process")
    try:
        # A crash after this leaves an empty file, which the next opening takes for a new store.
        make_file(store)
        check_writable(store)
        if synchronous is Synchronous.FULL and has_wal(store) and locks.try_alone():
            # Nobody has it open, so this connection is the one that recovers it. Where commits are not synced, a
            # loss of power does leave holes.
            require_whole_wal(store)
        connection = connect(store, "mode=rw")
        try:
            _configure(connection, store, synchronous)
            _prepare(
                connection, store, locks, lambda: wait_until(lambda: try_begin(connection), grace, never)
            )
        except BaseException:
            connection.close()
            raise
        return connection
    except sqlite3.Error as error:
        raise _opening_failure(error, store) from error
    finally:
        locks.release_write()


def _configure(connection: sqlite3.Connection, store: Path, synchronous: Synchronous) -> None:
    # Looked at first: a file that is no store is left as it is.
    version_of(connection, store)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal" or number(connection, "PRAGMA synchronous") != _LEVELS[synchronous]:
        raise StoreUnusable(f"the place of the store {store} does not allow a write-ahead log")


def _prepare(
    connection: sqlite3.Connection, store: Path, locks: StoreLocks, begin: Callable[[], bool]
) -> None:
    # Begun even where there is nothing to make: SQLite opens a read-only file without a word, and says so
    # only here.
    if not begin():
        raise LogLocked(f"the store {store} is being written by another program")
    version = version_of(connection, store)
    if version == 0:
        create_tables(connection)
    elif version < sqlite_schema.SCHEMA_VERSION:
        # Whoever has it open knows the old tables alone.
        if not locks.try_alone():
            raise LogLocked(
                f"the store {store} is of an older version, and cannot be brought up to date while it is in use"
            )
        migrate(connection, version)
    if not locks.stay():
        raise LogLocked(f"the store {store} is being brought up to date by another process")
    # A crash before this commit leaves an empty database, which the next opening takes for a new store, or the old
    # version's tables.
    connection.execute("ROLLBACK" if version == sqlite_schema.SCHEMA_VERSION else "COMMIT")
    # Rows that a dead process's failed sync left in the page cache only are written and synced again here,
    # before anyone builds on them.
    checkpoint(connection)


def open_reader(store: Path, grace: float, *, even_damaged: bool = False) -> tuple[sqlite3.Connection, bool]:
    """Return a connection that can only read, and whether it had to take the file for one that nobody writes.

    Args:
        store: The resolved path.
        grace: For how many seconds to wait for another process's lock.
        even_damaged: Whether to read what is left where the write-ahead log has lost acknowledged rows.

    Raises:
        StoreUnusable: There is no store there, or it cannot be read.
        LogLocked: Another process held a lock for longer than the grace.
    """
    size = check_place(store)
    if size is None:
        raise StoreUnusable(f"there is no store at {store}")
    if not even_damaged and has_wal(store) and not is_in_use(store):
        require_whole_wal(store)
    try:
        return _connect_reader(store, "mode=ro", grace), False
    except sqlite3.Error as error:
        # Where nothing can be made beside the store, WAL cannot be read, unless it is known to hold nothing.
        if has_wal(store) or primary_code(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise _opening_failure(error, store) from error
    try:
        return _connect_reader(store, "mode=ro&immutable=1", grace), True
    except sqlite3.Error as error:
        raise _opening_failure(error, store) from error


def _connect_reader(store: Path, query: str, grace: float) -> sqlite3.Connection:
    connection = connect(store, query)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        if not wait_until(lambda: _is_store(connection, store), grace, threading.Event()):
            raise LogLocked(f"the store {store} is locked by another process")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_store(connection: sqlite3.Connection, store: Path) -> bool:
    try:
        version = version_of(connection, store)
    except sqlite3.Error as error:
        if is_busy(error):
            return False
        raise
    if version == 0:
        raise StoreUnusable(f"{store} is empty, not a store")
    if version < sqlite_schema.SCHEMA_VERSION:
        raise StoreUnusable(
            f"the store {store} is of an older version (schema {version}); open it once with a command that writes,"
            " such as `affidavit resume`, to bring it up to date"
        )
    return True


def check_before_writing(store: Path, *, create: bool) -> None:
    """Pass if a store is, or may be made, at this path; makes nothing but missing folders.

    Raises:
        StoreUnusable: Nothing is there and nothing shall be made, or what is there is no store.
    """
    size = check_place(store)
    if size is None and not create:
        raise StoreUnusable(f"there is no store at {store}")
    if size is None:
        make_folder(store)
    elif size > 0:
        check_writable(store)
        _check_kind(store)


def _check_kind(store: Path) -> None:
    try:
        with closing(connect(store, "mode=ro")) as probe:
            version_of(probe, store)
    except sqlite3.Error as error:
        # A crash while the store was made left a rollback journal: whoever writes rolls it back, and looks again.
        if not is_busy(error) and not needs_rollback(error):
            raise _opening_failure(error, store) from error


def _opening_failure(error: sqlite3.Error, store: Path) -> StoreUnusable | LogLocked:
    if is_busy(error):
        return LogLocked(f"the store {store} is locked by another process")
    if primary_code(error) == sqlite3.SQLITE_IOERR and not has_room(store):
        return StoreUnusable(f"there is no room to open the store {store}")
    return unusable(error, store)
