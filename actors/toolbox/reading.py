"""What `read_file` and `list_dir` do on the disk: blocking calls, for a thread, within fixed bounds."""

from __future__ import annotations

import os
import stat
from itertools import islice
from typing import Final

from affidavit.actors.errors import ToolFailed
from affidavit.actors.toolbox.beneath import NOTHING, Withheld, open_beneath, shown

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
MAX_RESULT_CHARS: Final = 64 * 1024
MAX_LINES: Final = 2000
MAX_ENTRIES: Final = 500
MAX_SCANNED: Final = 20_000
# How far into a file a zero byte makes it count as binary, as other tools do.
BINARY_PROBE: Final = 8192


def read_lines(root: str, path: str, first: int, count: int, kept: Withheld = NOTHING) -> str:
    """Return some lines of a text file below a root.

    Args:
        root: The root directory.
        path: The file, relative to the root.
        first: The first line, from 1.
        count: How many lines at most.
        kept: What is withheld.

    Raises:
        ToolFailed: The file cannot be read, is withheld, is too large, binary, or has no such line.
    """
    data = read_whole(open_beneath(root, path, kept), path)
    if b"\0" in data[:BINARY_PROBE]:
        raise ToolFailed(f"{shown(path)} is a binary file of {len(data)} bytes")
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return "[the file is empty]"
    if first > len(lines):
        raise ToolFailed(f"{shown(path)} has {len(lines)} lines; there is no line {first}")
    return _cut(lines[first - 1 : first - 1 + count], first, len(lines))


def read_whole(handle: int, path: str, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return everything an open regular file holds, and close it.

    Raises:
        ToolFailed: It is a directory, too large, or cannot be read.
    """
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise ToolFailed(f"{shown(path)} is a directory, not a file")
        if info.st_size > limit:
            raise ToolFailed(f"{shown(path)} holds {info.st_size} bytes; files of up to {limit} are read")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ToolFailed(f"{shown(path)} cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)
    if len(data) > limit:
        raise ToolFailed(f"{shown(path)} grew beyond {limit} bytes while it was read")
    return data


def list_entries(root: str, path: str, kept: Withheld = NOTHING) -> str:
    """Return the entries of a directory below a root: folders with `/`, files with size, links with `@`.

    Raises:
        ToolFailed: The directory cannot be read, or is none.
    """
    handle = open_beneath(root, path, kept)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise ToolFailed(f"{shown(path)} is a file, not a directory")
        with os.scandir(handle) as scan:
            entries = sorted(islice(scan, MAX_SCANNED), key=lambda entry: entry.name)
        lines = [_describe(entry) for entry in entries[:MAX_ENTRIES]]
    except OSError as error:
        raise ToolFailed(f"{shown(path)} cannot be listed: {error.strerror}") from error
    finally:
        os.close(handle)
    if len(entries) > MAX_ENTRIES:
        total = f"{len(entries)}" if len(entries) < MAX_SCANNED else f"{MAX_SCANNED} or more"
        lines.append(f"[cut: {MAX_ENTRIES} of {total} entries]")
    return "\n".join(lines) or "[the directory is empty]"


def plain(text: str) -> str:
    """Return a name as valid text on one line: what is not printable or not UTF-8 is replaced."""
    valid = os.fsencode(text).decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in valid)


def _describe(entry: os.DirEntry[str]) -> str:
    name = plain(entry.name)
    if entry.is_symlink():
        return f"{name}@"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    if entry.is_file(follow_symlinks=False):
        return f"{name}  ({_size(entry)})"
    return f"{name}  (neither file nor directory)"


def _size(entry: os.DirEntry[str]) -> str:
    try:
        return f"{entry.stat(follow_symlinks=False).st_size} bytes"
    except OSError:  # deleted since the directory was read
        return "gone"


def _cut(lines: list[str], first: int, total: int) -> str:
    kept: list[str] = []
    room = MAX_RESULT_CHARS
    for line in lines:
        if len(line) + 1 > room:
            break
        kept.append(line)
        room -= len(line) + 1
    if not kept:
        start = lines[0][:MAX_RESULT_CHARS]
        return f"{start}\n[cut: line {first} of {total} is {len(lines[0])} characters long]"
    last = first + len(kept) - 1
    if first == 1 and last == total:
        return "\n".join(kept)
    return "\n".join([*kept, f"[lines {first} to {last} of {total}]"])
