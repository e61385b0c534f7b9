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
        self, total: int, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin at nothing out of `total` bytes."""
        self._total = max(total, 1)
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
        share = min(done / self._total, 1.0)
        filled = int(share * _WIDTH)
        bar = "#" * filled + "." * (_WIDTH - filled)
        self._stream.write(f"{_CLEAR}checking  [{bar}] {int(share * 100):3d}%")
        self._stream.flush()
