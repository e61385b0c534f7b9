"""The tables of an SQLite store, how a file is told to be one, and what its errors mean.

`rows` holds the events, `streams` the index that is written in the same transaction and can be rebuilt from
them. The file carries our application id and the schema's version: a file of another program, or of a newer
version of this one, is left exactly as it was found; one of an older version is brought up to date step by step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from affidavit.actors.errors import StoreUnusable

APPLICATION_ID: Final = 0x41464644  # "AFFD"
SCHEMA_VERSION: Final = 1

_SCHEMA: Final = (
    """CREATE TABLE rows (
        stream TEXT NOT NULL,
        seq INTEGER NOT NULL CHECK (seq > 0),
        data BLOB NOT NULL,
        PRIMARY KEY (stream, seq)
    ) STRICT""",
    """CREATE TABLE streams (
        stream TEXT NOT NULL PRIMARY KEY,
        tip INTEGER NOT NULL CHECK (tip > 0),
        terminal_seq INTEGER NOT NULL DEFAULT 0,
        sealed_size INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


# Step n leads from version n to n + 1. A step only runs statements; it never begins or ends the transaction.
MIGRATIONS: Final[dict[int, Callable[[sqlite3.Connection], None]]] = {}


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables and mark the file as ours, inside the caller's transaction."""
    for statement in _SCHEMA:
        connection.execute(statement)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the tables from an older version to this one, inside the caller's transaction.

    A crash before its commit leaves the old version whole, one after it the new one.
    """
    for step in range(version, SCHEMA_VERSION):
        MIGRATIONS[step](connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def version_of(connection: sqlite3.Connection, store: Path) -> int:
    """Return the version of the open file's tables, 0 for an empty database.

    Raises:
        StoreUnusable: It is no store, or one that this version does not understand.
        sqlite3.Error: It could not be read; `unusable` says what that means.
    """
    application = number(connection, "PRAGMA application_id")
    version = number(connection, "PRAGMA user_version")
    if application == 0 and version == 0 and number(connection, "SELECT count(*) FROM sqlite_schema") == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreUnusable(f"{store} is a database of another program, not a store")
    if version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"the store {store} was made by a newer version of this program"
            f" (schema {version}; this one knows up to {SCHEMA_VERSION})"
        )
    if version < 1:
        raise StoreUnusable(f"the store {store} has the unknown schema {version}")
    return version


def number(connection: sqlite3.Connection, query: str) -> int:
    """Return the one integer that a query gives."""
    (value,) = connection.execute(query).fetchone()
    return int(value)


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code of an error, 0 where Python's own module raised it."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether someone else's lock stood in the way, so that nothing was done."""
    return primary_code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def needs_rollback(error: sqlite3.Error) -> bool:
    """Tell whether a reader met what a crash left of a transaction, which only a writer can undo."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK


def unusable(error: sqlite3.Error, store: Path) -> StoreUnusable:
    """Return what an error met while opening means, in one sentence."""
    match primary_code(error):
        case sqlite3.SQLITE_NOTADB:
            return StoreUnusable(f"{store} is not a store: it is no SQLite database")
        case sqlite3.SQLITE_CORRUPT:
            return StoreUnusable(f"the store {store} is damaged: {error}")
        case sqlite3.SQLITE_READONLY if needs_rollback(error):
            return StoreUnusable(
                f"a crash left the store {store} half made; a command that writes to it puts it right"
            )
        case sqlite3.SQLITE_READONLY:
            return StoreUnusable(f"the store {store} is read-only")
        case sqlite3.SQLITE_FULL:
            return StoreUnusable(f"there is no room to open the store {store}")
        case _:
            return StoreUnusable(f"the store {store} cannot be opened: {error}")
