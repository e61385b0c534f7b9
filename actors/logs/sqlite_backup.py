"""A copy of a whole store in one file, as it was at one moment, made while others write.

One read transaction holds that moment for as long as the copying takes, so that writers go on and nothing is copied
twice; meanwhile the write-ahead log cannot be recycled and grows by what they write. The file appears under its name
whole, checked by whoever asked for it, or not at all.

Crash states. While it is copied: a file whose name begins with a dot and is nobody's. After it was linked under its
name, before the dot file is gone: two names of one whole backup.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

import trio

from affidavit.actors.errors import LogFull, StoreUnusable
from affidavit.actors.logs.sqlite_connect import connect, open_reader
from affidavit.actors.logs.sqlite_place import PRIVATE_FILE, resolve, sync_folder
from affidavit.actors.logs.sqlite_reader import READ_GRACE
from affidavit.actors.logs.sqlite_schema import primary_code

_PAGES: Final = 256  # copied between two looks at whether the copying was cancelled

Progress = Callable[[int, int], None]


@asynccontextmanager
async def open_backup(source: Path, target: Path, progress: Progress | None = None) -> AsyncIterator[Path]:
    """Copy a store into a new file, which gets its name if the block ends without an error.

    Args:
        source: The store.
        target: The file to make; it must not be there.
        progress: Called in another thread with how many pages were copied, and how many there are.

    Yields:
        The path of the copy before it has its name, to be checked.

    Raises:
        StoreUnusable: There is no readable store, or the copy cannot be made.
        LogFull: There is no room for it.
        FileExistsError: Something is at the target.
        BaseException: The body's own exception, as itself; nothing is left of the copy then.

    Cancellation: the copying stops within some pages, and nothing is left of it.
    """
    _require_free(target)
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        await trio.to_thread.run_sync(_copy, resolve(source), hidden, progress)
        yield hidden
        await trio.to_thread.run_sync(_give_name, hidden, target)
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                hidden.with_name(hidden.name + end).unlink()


def _require_free(target: Path) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "it is there already, and a backup replaces nothing", str(target))


def _copy(source: Path, hidden: Path, progress: Progress | None) -> None:
    def look(_status: int, left: int, total: int) -> None:
        trio.from_thread.check_cancelled()
        if progress is not None:
            progress(total - left, total)

    reading, _ = open_reader(source, READ_GRACE)
    with closing(reading):
        try:
            os.close(os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
            # The moment is that of the first read.
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            with closing(connect(hidden, "mode=rw")) as writing:
                reading.backup(writing, pages=_PAGES, progress=look)
        except OSError as error:
            raise StoreUnusable(f"no file can be made in {hidden.parent}: {error.strerror}") from None
        except sqlite3.Error as error:
            if primary_code(error) == sqlite3.SQLITE_FULL:
                raise LogFull(f"there is no room for the backup in {hidden.parent}") from error
            raise StoreUnusable(f"the store {source} cannot be copied: {error}") from error


def _give_name(hidden: Path, target: Path) -> None:
    descriptor = os.open(hidden, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    # A link, unlike a rename, replaces nothing that came there meanwhile.
    os.link(hidden, target)
    sync_folder(target.parent)
