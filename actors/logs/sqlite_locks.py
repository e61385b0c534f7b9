"""The locks of one SQLite store, all in one lock file: who may write just now, and who owns which run.

They are open-file-description (OFD) locks on single bytes. The kernel frees them when the last descriptor
closes, so they die with their process, whatever kills it, and a paused process keeps them. Byte 0 is the
write lock of the store. Each run has the byte that 62 bits of the SHA-256 of its stream id name, so that ten
thousand runs need one descriptor. The last byte of all is held, shared, by everyone who has the store open
for writing: its tables are changed only by one who holds it alone. The bytes need not exist: the file stays
empty.

Two locks of one description never conflict with each other, so what this process holds through this object is
also kept in a set. The descriptor is closed on exec; a child made by fork alone would share the locks, so
nobody may fork without exec.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
from pathlib import Path
from typing import Final, final

from affidavit.actors.errors import RunOwned, StoreUnusable
from affidavit.actors.logs.sqlite_place import PRIVATE_FILE, lock_path

_WRITE_BYTE: Final = 0
_OPEN_BYTE: Final = 2**63 - 2  # above the bytes of runs
_FLOCK: Final = struct.Struct("@hhqqi4x")  # l_type, l_whence, l_start, l_len, l_pid (0 for OFD locks)


def run_byte(stream: str) -> int:
    """Return the offset that stands for a run: 62 bits of a hash, above the write lock's byte."""
    digest = hashlib.sha256(stream.encode(errors="surrogatepass")).digest()
    return 1 + (int.from_bytes(digest[:8], "big") >> 2)


def is_in_use(store: Path) -> bool:
    """Tell whether some process has a store open for writing. Takes no lock, and makes no lock file."""
    return _is_locked(store, _OPEN_BYTE)


def is_owned(store: Path, stream: str) -> bool:
    """Tell whether someone owns a run just now. Takes no lock, and makes no lock file."""
    return _is_locked(store, run_byte(stream))


def _is_locked(store: Path, offset: int) -> bool:
    if not hasattr(fcntl, "F_OFD_GETLK"):
        return False
    try:
        descriptor = os.open(lock_path(store), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
        (kind, *_) = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(kind != fcntl.F_UNLCK)


@final
class StoreLocks:
    """The open lock file of one store.

    Closes: `close` frees every lock taken through this object.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        self._owned: set[str] = set()

    @classmethod
    def open(cls, store: Path) -> StoreLocks:
        """Open, and make if need be, the lock file of a store.

        Raises:
            StoreUnusable: It cannot be opened for writing, or this system has no OFD locks.
        """
        if not hasattr(fcntl, "F_OFD_SETLK"):
            raise StoreUnusable("this system has no OFD file locks, which an SQLite store needs")
        path = lock_path(store)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return cls(os.open(path, flags, PRIVATE_FILE))
        except OSError as error:
            raise StoreUnusable(f"the lock file {path} cannot be opened: {error.strerror}") from None

    def try_write(self) -> bool:
        """Take the store's write lock if it is free; at once, never waiting.

        Raises:
            OSError: The system could not say.
        """
        return self._set(fcntl.F_WRLCK, _WRITE_BYTE)

    def release_write(self) -> None:
        """Let go of the store's write lock; nothing if it is not held."""
        if self._descriptor is not None:
            self._set(fcntl.F_UNLCK, _WRITE_BYTE)

    def stay(self) -> bool:
        """Tell others, until `close`, that the store is in use; False if someone has it alone."""
        return self._set(fcntl.F_RDLCK, _OPEN_BYTE)

    def try_alone(self) -> bool:
        """Keep everyone else from using the store, until `stay` or `close`; False if someone uses it."""
        return self._set(fcntl.F_WRLCK, _OPEN_BYTE)

    def own(self, stream: str) -> None:
        """Take ownership of a run at once.

        Raises:
            RunOwned: Someone else has it, through this object or any other.
        """
        if stream in self._owned or not self._set(fcntl.F_WRLCK, run_byte(stream)):
            raise RunOwned(stream)
        self._owned.add(stream)

    def disown(self, stream: str) -> None:
        """Let go of a run taken with `own`; after `close` it is free already."""
        self._owned.discard(stream)
        if self._descriptor is not None:
            self._set(fcntl.F_UNLCK, run_byte(stream))

    def close(self) -> None:
        """Close the lock file, which frees all that is still held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _set(self, kind: int, offset: int) -> bool:
        if self._descriptor is None:
            raise OSError(errno.EBADF, "the lock file is closed")
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0))
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                return False
            raise
        return True
