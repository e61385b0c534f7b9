"""A bar on the terminal for work on a store that lasts. Off a terminal, or within the first second, it shows nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

_WIDTH: Final = 30
_PATIENCE: Final = 1.0  # seconds before anything is shown
_PAUSE: Final = 0.1  # seconds between two pictures
_CLEAR: Final = "\r\033[K"


@final
class Bar:
    """Made by `open_bar`; call it with how much is done, and how much there is."""

    def __init__(self, what: str) -> None:
        """Show `what` beside the bar."""
        self._what = what
        self._next = time.monotonic() + _PATIENCE
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work has come."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _PAUSE
        share = min(done / total, 1.0) if total else 0.0
        full = int(share * _WIDTH)
        bar = "#" * full + "-" * (_WIDTH - full)
        self._show(f"{_CLEAR}{self._what} [{bar}] {share:4.0%}")
        self._shown = True

    def clear(self) -> None:
        """Take the bar off the screen."""
        if self._shown:
            self._show(_CLEAR)

    def _show(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            # That it cannot be shown is no reason to fail.
            return


@contextmanager
def open_bar(what: str) -> Iterator[Bar | None]:
    """Give a bar for the length of the block, which is gone afterwards; None where standard error is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    bar = Bar(what)
    try:
        yield bar
    finally:
        bar.clear()
