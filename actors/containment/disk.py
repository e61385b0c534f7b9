"""Watches how much a workspace grows while a command runs in it. There is no quota: this looks, and says when it is too much.

A look is cheap as long as the whole file system has not lost as much room as the command may take: then the command cannot have
taken it. Only beyond that, and now and then in case others gave room back meanwhile, the files are added up. What is left free
of the file system is looked at too, so that the machine does not run out of it whoever fills it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from affidavit.actors.containment.port import ContainmentFailed
from affidavit.actors.containment.watch import tree

RESERVE_BYTES: Final = 64 * 1024 * 1024
DEEPEST: Final = 128
_TOO_DEEP: Final = 1 << 60
_PER_FILE: Final = 1024  # An empty file takes room too, which no block count shows.
_SECONDS_BETWEEN: Final = 2.0
_SHARE: Final = 10  # Adding up takes at most one part in this many of the time.


@final
class DiskWatch:
    """The growth of one workspace during one run. Its methods read the disk and belong in a thread."""

    def __init__(self, workspace: int, limit: int, *, now: Callable[[], float] = time.monotonic) -> None:
        """Take a workspace; `begin` is to be called before the command begins.

        Args:
            workspace: A descriptor of the directory; owned by this object from now on.
            limit: By how many bytes it may grow.
            now: Seconds that only go up.
        """
        self._workspace = workspace
        self._limit = limit
        self._now = now
        self._free = self._files = self._size = 0
        self._next = 0.0

    def __del__(self) -> None:
        # Not closed by a call: a look that was abandoned may still be at work in its thread, and holds this object.
        os.close(self._workspace)

    def begin(self) -> None:
        """Note how things stand.

        Raises:
            ContainmentFailed: The workspace cannot be read, or is nested too deeply to be watched.
        """
        try:
            self._free, self._files = self._room()
            self._size = self._sum(0)
        except OSError as error:
            raise ContainmentFailed(f"the workspace cannot be read: {error.strerror}") from error
        if self._size >= _TOO_DEEP:
            raise ContainmentFailed(f"the workspace is nested more than {DEEPEST} directories deep")
        self._next = self._now() + _SECONDS_BETWEEN

    def over(self, root: int) -> bool:
        """Tell whether the workspace has grown too much, or the file system is nearly full.

        Args:
            root: The process that the command's processes come from; their deleted files that are still open count too.
        """
        free, files = self._room()
        if free < min(RESERVE_BYTES, self._free // 2):
            return True
        taken = self._free - free + max(self._files - files, 0) * _PER_FILE
        began = self._now()
        if taken <= self._limit and began < self._next:
            return False
        size = self._sum(root)
        ended = self._now()
        self._next = ended + max(_SECONDS_BETWEEN, _SHARE * (ended - began))
        return size - self._size > self._limit

    def _room(self) -> tuple[int, int]:
        found = os.fstatvfs(self._workspace)
        return found.f_bavail * found.f_frsize, found.f_ffree

    def _sum(self, root: int) -> int:
        seen: set[tuple[int, int]] = set()
        total = _below(self._workspace, ".", seen, 0)
        device = os.fstat(self._workspace).st_dev
        for pid in tree(root) if root else ():
            for found in _open_files(pid):
                if found.st_nlink == 0 and found.st_dev == device:
                    total += _size_once(found, seen)
        return total


def _below(parent: int, name: str, seen: set[tuple[int, int]], depth: int) -> int:
    """Add up a directory without following a link; by descriptors, so that nothing it is made to be leads elsewhere."""
    if depth > DEEPEST:
        return _TOO_DEEP
    total = 0
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return 0  # Gone meanwhile, or not ours to read.
    try:
        with suppress(OSError), os.scandir(descriptor) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False)
                    total += _size_once(found, seen)
                    if stat.S_ISDIR(found.st_mode):
                        total += _below(descriptor, entry.name, seen, depth + 1)
    finally:
        os.close(descriptor)
    return total


def _open_files(pid: int) -> list[os.stat_result]:
    found: list[os.stat_result] = []
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.append(entry.stat())
    return found


def _size_once(found: os.stat_result, seen: set[tuple[int, int]]) -> int:
    """Return the room that a file takes, once however many links it has."""
    if found.st_nlink != 1:
        key = (found.st_dev, found.st_ino)
        if key in seen:
            return 0
        seen.add(key)
    return found.st_blocks * 512 + _PER_FILE
