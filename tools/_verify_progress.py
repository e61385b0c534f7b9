"""How far a long check has come, on a terminal: one line on standard error that is gone at the end.

Nothing is shown for what takes less than a second, nor where standard error is no terminal.
"""

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO, final

_PATIENCE: Final = 1.0  # seconds before the first line
_INTERVAL: Final = 0.1  # seconds between two
_WIDTH: Final = 40
_CLEAR: Final = "\r\x1b[2K"


@final
class Progress:
    """The line for one file. Used as a block, at whose end the line is cleared."""

    def __init__(
        self, total: int | None, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin at nothing out of `total` bytes; None where nobody knows how many there will be."""
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._is_shown = False
        # None where nobody looks.
        self._next = clock() + _PATIENCE if self._stream.isatty() else None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            self._stream.write(_CLEAR)
            self._stream.flush()

    def advance(self, done: int) -> None:
        """Say that `done` bytes in all have been read."""
        if self._next is None or (now := self._clock()) < self._next:
            return
        self._next, self._is_shown = now + _INTERVAL, True
        self._stream.write(f"{_CLEAR}checking  {self._picture(done)}")
        self._stream.flush()

    def _picture(self, done: int) -> str:
        if self._total is None:
            return f"{done >> 20:,} MiB"
        share = min(done / max(self._total, 1), 1.0)
        filled = int(share * _WIDTH)
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {int(share * 100):3d}%"
