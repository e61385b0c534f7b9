"""Keeps what is said on standard error while a view has the screen: the last line is shown there, all is said afterwards."""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

_MOST_LINES: Final = 500


@final
class HeldErrors(io.TextIOBase):
    """Stands in for standard error: keeps the newest lines, and tells of each."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """Tell `tell` of each line."""
        self._tell = tell
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._part = ""

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, text: str, /) -> int:
        """Keep a text."""
        *lines, self._part = (self._part + text).split("\n")
        self._lines.extend(lines)
        if lines:
            self._tell(lines[-1])
        return len(text)

    def release(self) -> str:
        """Return what was kept, once."""
        kept = "".join(f"{line}\n" for line in self._lines) + self._part
        self._lines.clear()
        self._part = ""
        return kept


@contextmanager
def held_errors(tell: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Hold standard error back for the length of the block, where it is a terminal.

    Yields:
        What says at once all that was held back, and holds nothing more.
    """
    real = sys.stderr
    if real is None or not real.isatty():
        yield lambda: None
        return
    held = HeldErrors(tell)

    def release() -> None:
        if sys.stderr is held:
            sys.stderr = real
        try:
            real.write(held.release())
            real.flush()
        except OSError:
            return

    sys.stderr = held
    try:
        yield release
    finally:
        release()
