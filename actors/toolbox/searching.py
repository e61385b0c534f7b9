"""What `search_text` does on the disk: finds a plain substring below a directory, within fixed bounds.

Blocking, to be run in a thread. It follows no link, leaves out what no person wrote (`SKIPPED`), binary
and large files, and looks at its stop flag between files, so that a search that nobody waits for any more
ends soon.
"""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from affidavit.actors.errors import ToolFailed
from affidavit.actors.toolbox.beneath import (
    MAX_DEPTH,
    NOTHING,
    Withheld,
    open_beneath,
    open_directory,
    open_regular,
    shown,
)
from affidavit.actors.toolbox.reading import BINARY_PROBE, MAX_SCANNED, plain, read_whole

MAX_MATCHES: Final = 100
MAX_FILES: Final = 5000
MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024
MAX_SEARCHED_FILE: Final = 2 * 1024 * 1024
LINE_WINDOW: Final = 200
SKIPPED: Final = frozenset(
    {
        ".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox",
        ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis",
    }
)  # fmt: skip


@dataclass(slots=True)
class Search:
    """One search, owned by the thread that runs it; another may set `stop` and read `report` at any time.

    Attributes:
        pattern: The substring looked for; one line.
        kept: What is withheld; it is left out.
        stop: Set by whoever no longer waits for the search.
        matches: The lines found so far, as `path:line: text`.
        files: How many files were looked into.
        skipped: How many were left out as binary, too large or unreadable.
        total: How many bytes were read.
        ended: Why the search ended early; empty while it has not.
    """

    pattern: str
    kept: Withheld = NOTHING
    stop: threading.Event = field(default_factory=threading.Event)
    matches: list[str] = field(default_factory=list)
    files: int = 0
    skipped: int = 0
    total: int = 0
    ended: str = ""

    def run(self, root: str, path: str) -> None:
        """Search the file or directory at `path` below `root`.

        Raises:
            ToolFailed: The path cannot be opened, or leads outside.
        """
        handle = open_beneath(root, path, self.kept)
        base = "/".join(part for part in path.split("/") if part not in {"", "."})
        if stat.S_ISREG(os.fstat(handle).st_mode):
            self._file(handle, base)
            return
        try:
            self._directory(handle, base, 0)
        except OSError as error:
            raise ToolFailed(f"{shown(path)} cannot be searched: {error.strerror}") from error
        finally:
            os.close(handle)

    def report(self) -> str:
        """Return what was found so far, with a note on what was left out."""
        lines = list(self.matches)
        if not lines:
            lines.append(f"[no match for {shown(self.pattern)}]")
        skipped = f", {self.skipped} left out as binary, too large or unreadable" if self.skipped else ""
        ended = f"; stopped early: {self.ended}" if self.ended else ""
        return "\n".join([*lines, f"[{self.files} files searched{skipped}{ended}]"])

    def _over(self) -> bool:
        if len(self.matches) >= MAX_MATCHES:
            self.ended = f"{MAX_MATCHES} matches were found"
        elif self.files >= MAX_FILES:
            self.ended = f"{MAX_FILES} files were searched"
        elif self.total >= MAX_TOTAL_BYTES:
            self.ended = f"{MAX_TOTAL_BYTES} bytes were searched"
        return bool(self.ended) or self.stop.is_set()

    def _directory(self, handle: int, base: str, depth: int) -> None:
        with os.scandir(handle) as scan:
            entries = sorted(islice(scan, MAX_SCANNED), key=lambda entry: entry.name)
        for entry in entries:
            if self._over():
                return
            self._entry(entry, handle, f"{base}/{entry.name}" if base else entry.name, depth)

    def _entry(self, entry: os.DirEntry[str], directory: int, path: str, depth: int) -> None:
        try:
            if entry.is_file(follow_symlinks=False):
                self._file(open_regular(entry.name, directory, self.kept), path)
            elif entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED and depth < MAX_DEPTH:
                handle = open_directory(entry.name, directory, self.kept)
                try:
                    self._directory(handle, path, depth + 1)
                finally:
                    os.close(handle)
        except (OSError, ToolFailed):  # unreadable, or exchanged since the directory was read
            self.skipped += 1

    def _file(self, handle: int, path: str) -> None:
        try:
            data = read_whole(handle, path, MAX_SEARCHED_FILE)
        except ToolFailed:
            self.skipped += 1
            return
        self.total += len(data)
        if b"\0" in data[:BINARY_PROBE]:
            self.skipped += 1
            return
        self.files += 1
        needle = self.pattern.encode("utf-8", "surrogatepass")
        if needle in data:
            self._lines(data, needle, path)

    def _lines(self, data: bytes, needle: bytes, path: str) -> None:
        for number, line in enumerate(data.split(b"\n"), 1):
            at = line.find(needle)
            if at < 0:
                continue
            start = max(0, at - LINE_WINDOW // 2)
            window = line[start : start + LINE_WINDOW].decode("utf-8", "replace").strip()
            self.matches.append(f"{plain(path)}:{number}: {window}")
            if self._over():
                return
