"""The files of one SQLite store: where they lie, what may stand there, and how they come to be.

A store is `NAME`, its `NAME-wal` and `NAME-shm`, which belong to SQLite, and `NAME.lock`, which belongs to
`sqlite_locks`. This module looks at files by name only. It never opens the database file: POSIX drops all of
a process's locks on a file when any descriptor of it is closed, SQLite's own locks included.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from affidavit.actors.errors import StoreUnusable

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700


def resolve(path: str | os.PathLike[str]) -> Path:
    """Return the one true path of a store, so that two names of one file share one lock file.

    Raises:
        StoreUnusable: No file can have this name.
    """
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise StoreUnusable(f"no store can be at {os.fspath(path)!r}: {error}") from None


def lock_path(store: Path) -> Path:
    """Return the path of a store's lock file, which must not be deleted while the store is in use."""
    return store.with_name(store.name + ".lock")


def has_wal(store: Path) -> bool:
    """Tell whether committed rows may still lie in the write-ahead log beside the store."""
    try:
        return store.with_name(store.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def check_place(store: Path) -> int | None:
    """Return the size of the file at a store's path, or None where there is no file yet.

    Raises:
        StoreUnusable: Something that is no regular file stands there, or it cannot be looked at.
    """
    try:
        found = store.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnusable(f"the store {store} cannot be reached: {error.strerror}") from None
    if stat.S_ISDIR(found.st_mode):
        raise StoreUnusable(f"{store} is a directory, not a store")
    if not stat.S_ISREG(found.st_mode):
        raise StoreUnusable(f"{store} is not a regular file, so it is no store")
    if not os.access(store, os.R_OK):
        raise StoreUnusable(f"the store {store} may not be read by this user")
    return found.st_size


def check_writable(store: Path) -> None:
    """Pass if this user may write the store and make SQLite's files beside it.

    Raises:
        StoreUnusable: The file or its folder is read-only.
    """
    for path, name in ((store, "the store"), (store.parent, "the folder of the store")):
        if not os.access(path, os.W_OK):
            raise StoreUnusable(f"{name} {path} is read-only")


def make_folder(store: Path) -> None:
    """Make the folders above a store that do not exist yet, for this user alone.

    Raises:
        StoreUnusable: They cannot be made.
    """
    try:
        missing = [parent for parent in store.parents if not parent.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            sync_folder(folder.parent)
    except OSError as error:
        raise StoreUnusable(f"the folder {store.parent} cannot be made: {error.strerror}") from None


def make_file(store: Path) -> None:
    """Make an empty private file for a new store unless one is there; the caller holds the write lock.

    Raises:
        StoreUnusable: It cannot be made.
    """
    try:
        os.close(os.open(store, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        sync_folder(store.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnusable(f"the store {store} cannot be made: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Make durable which names a folder holds. Blocks.

    SQLite syncs what is in its files; that a new file or folder exists at all is for its maker to sync.

    Raises:
        OSError: It failed.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
