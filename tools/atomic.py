"""Writes a file whole or not at all: into a temporary file beside it, then under its name in one step.

A crash leaves either the old state or the new one, and at most a temporary file whose name begins with a dot, which the next
write to the same name takes away. What is no regular file is never replaced.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, final

from affidavit.tools.errors import UsageError


def check_target(path: Path, *, force: bool) -> None:
    """Pass if a file may be written at this path.

    Raises:
        UsageError: Something is there that may not be replaced.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file; `--out -` writes to standard output")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} is there already; --force replaces it")


@final
class Draft:
    """A file that is being written; made by `open_draft`.

    Attributes:
        file: Takes the content.
    """

    def __init__(self, file: BinaryIO, temporary: Path, path: Path, *, force: bool) -> None:
        """Use `open_draft`."""
        self.file = file
        self._temporary = temporary
        self._path = path
        self._force = force

    def publish(self) -> None:
        """Put what was written under its name, safe from a loss of power; blocking.

        Raises:
            UsageError: Something is there by now that may not be replaced.
            OSError: It could not be written.
        """
        self.file.flush()
        os.fsync(self.file.fileno())
        # Looked at again, since writing takes time and another program may have made the file meanwhile.
        check_target(self._path, force=self._force)
        self._temporary.replace(self._path)


@contextmanager
def open_draft(path: Path, *, force: bool) -> Iterator[Draft]:
    """Give a file to write into for the length of the block; without `publish` nothing has changed at its end.

    Args:
        path: Where it is to stand.
        force: Whether a file that is there may be replaced.

    Raises:
        UsageError: Something is there that may not be replaced.
        OSError: It could not be written.
    """
    check_target(path, force=force)
    try:
        _sweep(path)
        descriptor, temporary = _make(path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield Draft(file, temporary, path, force=force)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        # The name that the person gave, and not that of the temporary file.
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_file(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file; blocking.

    Args:
        path: Where.
        content: What.
        force: Whether a file that is there may be replaced.

    Raises:
        UsageError: Something is there that may not be replaced.
        OSError: It could not be written; nothing has changed then.
    """
    with open_draft(path, force=force) as draft:
        draft.file.write(content)
        draft.publish()


def _make(path: Path) -> tuple[int, Path]:
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        # Held while this process lives: by it `_sweep` tells what is left over from what is at work.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        # Another writer took it for a leftover before the lock was held.
        os.close(descriptor)


def _sweep(path: Path) -> None:
    """Take away what killed writers to the same name have left."""
    form = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}")
    # A folder that cannot be listed, or a file that is somebody else's, is no reason not to write.
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if form.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Path(name).unlink()
    finally:
        os.close(descriptor)
