"""Opens a path below a root directory in such a way that nothing the path holds can lead outside it.

The path is walked one component at a time, each opened relative to the directory before it and never
through a link. A link is read and its target walked in the same way; `..` goes back to the directory that
was opened before, not to what the disk calls the parent now. So a component exchanged between the look and
the opening is refused, or is a thing inside the root: there is no moment at which an outside file could be
opened. Pipes, sockets and devices are never opened. The root itself is refused once its path leads elsewhere.
What is withheld (the store, a file with a passphrase) is known by its identity, whatever name leads to it.

Not prevented: a hard link made by someone with write access to the root, which is a file of the root in
every respect.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, TypeAlias

from affidavit.actors.errors import ToolFailed

MAX_DEPTH: Final = 64
MAX_LINKS: Final = 40
MAX_SHOWN: Final = 200
DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, so that a file exchanged for a pipe just then is refused by the check that follows and not
# waited for.
FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Device and inode of what must not be read though it may lie below the root.
Withheld: TypeAlias = frozenset[tuple[int, int]]
NOTHING: Final[Withheld] = frozenset()


def withheld(paths: Iterable[str]) -> Withheld:
    """Return what some paths lead to just now; what is not there needs no keeping."""
    found: set[tuple[int, int]] = set()
    for path in paths:
        with suppress(OSError):
            found.add(_identity(os.stat(path)))  # noqa: PTH116  # a plain string in
    return frozenset(found)


def open_beneath(root: str, path: str, kept: Withheld = NOTHING) -> int:
    """Return a descriptor of the directory or regular file at `path` below `root`. The caller closes it.

    Args:
        root: The real path of the root directory, which is trusted.
        path: A path relative to the root, which is not.
        kept: What is not opened, nor gone through.

    Raises:
        ToolFailed: There is no such thing, it is neither file nor directory, it is withheld, or the path leads outside.
    """
    if path.startswith("/"):
        raise ToolFailed(f"{shown(path)} is an absolute path; paths are relative to the workspace")
    try:
        return _walk(root, path, kept)
    except ValueError as error:  # an embedded NUL, or a surrogate that stands for no byte
        raise ToolFailed(f"{shown(path)} is not a name that a file can have") from error
    except OSError as error:
        raise ToolFailed(f"{shown(path)} cannot be opened: {error.strerror}") from error


def open_regular(name: str, directory: int, kept: Withheld = NOTHING) -> int:
    """Return a descriptor of the regular file `name` in an open directory. The caller closes it.

    Raises:
        ToolFailed: It is no regular file (any more), or withheld.
        OSError: It is gone, a link, or unreadable.
    """
    handle = os.open(name, FILE_FLAGS, dir_fd=directory)
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and _identity(found) not in kept:
        return handle
    os.close(handle)
    raise _kept(name) if _identity(found) in kept else ToolFailed(f"{shown(name)} is not a regular file")


def open_directory(name: str, directory: int, kept: Withheld = NOTHING) -> int:
    """Return a descriptor of the directory `name` in an open directory. The caller closes it.

    Raises:
        ToolFailed: It is withheld.
        OSError: It is gone, a link, no directory, or unreadable.
    """
    handle = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
    if _identity(os.fstat(handle)) not in kept:
        return handle
    os.close(handle)
    raise _kept(name)


def shown(name: str) -> str:
    """Return a name in quotes, printable and not too long to be read."""
    return repr(name if len(name) <= MAX_SHOWN else name[:MAX_SHOWN] + "...")


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _kept(name: str) -> ToolFailed:
    return ToolFailed(f"{shown(name)} is withheld: it belongs to whoever runs this, and not to the workspace")


def _root(root: str) -> int:
    """Open the root where it was when it was chosen: a folder above it may be somebody else's workspace."""
    handle = os.open(root, DIRECTORY_FLAGS)
    if os.readlink(f"/proc/self/fd/{handle}") == root:  # noqa: PTH115  # as text
        return handle
    os.close(handle)
    raise ToolFailed("the workspace is not where it was: its path leads through a link now")


def _walk(root: str, path: str, kept: Withheld) -> int:
    pending = deque(path.split("/"))
    opened = [_root(root)]
    links = 0
    try:
        while pending:
            part = pending.popleft()
            if part in {"", "."}:
                continue
            if part == "..":
                _go_back(opened, path)
                continue
            mode = os.stat(part, dir_fd=opened[-1], follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                links += 1
                pending.extendleft(reversed(_target(part, opened[-1], path, links)))
            elif stat.S_ISDIR(mode):
                _go_down(part, opened, path, kept)
            else:
                return _last(part, opened[-1], mode, path, pending, kept)
        return opened.pop()
    finally:
        for handle in opened:
            os.close(handle)


def _go_back(opened: list[int], path: str) -> None:
    if len(opened) == 1:
        raise ToolFailed(f"{shown(path)} leads outside the workspace")
    os.close(opened.pop())


def _go_down(part: str, opened: list[int], path: str, kept: Withheld) -> None:
    if len(opened) > MAX_DEPTH:
        raise ToolFailed(f"{shown(path)} is nested too deeply")
    opened.append(open_directory(part, opened[-1], kept))


def _target(part: str, directory: int, path: str, links: int) -> list[str]:
    if links > MAX_LINKS:
        raise ToolFailed(f"{shown(path)} goes through too many links")
    target = os.readlink(part, dir_fd=directory)
    if target.startswith("/"):
        raise ToolFailed(f"{shown(path)} leads outside the workspace")
    return target.split("/")


def _last(part: str, directory: int, mode: int, path: str, pending: deque[str], kept: Withheld) -> int:
    if any(rest not in {"", "."} for rest in pending):
        raise ToolFailed(f"{shown(path)} cannot be opened: {shown(part)} is not a directory")
    if not stat.S_ISREG(mode):
        raise ToolFailed(f"{shown(path)} is neither a file nor a directory")
    return open_regular(part, directory, kept)
