"""Prints the demo: plain text of at most 80 columns, and colour only where a terminal will show it."""

from __future__ import annotations

import os
import sys
from typing import Final, TextIO, final

WIDTH: Final = 80
_BOLD, _DIM, _RED, _GREEN, _OFF = "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[0m"


@final
class Painter:
    """Writes lines to one text stream."""

    def __init__(self, out: TextIO | None = None) -> None:
        """Write to `out`, standard output by default."""
        self._out = out or sys.stdout
        self._colour = (
            self._out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        )

    def title(self, text: str) -> None:
        """Print the headline."""
        self.line(self._in(_BOLD, text))

    def scene(self, number: int, text: str) -> None:
        """Print the first line of a scene."""
        self.line(f"{self._in(_BOLD, f'{number}.')} {text}")

    def event(self, seq: int, who: str, words: str) -> None:
        """Print one event of the run, cut to the width of the screen."""
        room = WIDTH - 17
        shown = words if len(words) <= room else words[: room - 3] + "..."
        label = self._in(_RED if who == "refused" else _DIM, f"{who:<8}")
        self.line(f"   {seq:>3}  {label} {shown}")

    def good(self, tier: str, words: str) -> None:
        """Print a tier that holds."""
        self.line(f"   {self._in(_GREEN, f'{tier} ok')}  {words}")

    def bad(self, code: str, words: str) -> None:
        """Print a refusal with its code."""
        self.line(f"   {self._in(_RED, f'{code:<26}')}  {words}")

    def command(self, text: str) -> None:
        """Print a command line as it is to be typed, whatever its length."""
        self.line(f"     {text}")

    def line(self, text: str) -> None:
        """Print one line."""
        print(text, file=self._out)

    def _in(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_OFF}" if self._colour else text
