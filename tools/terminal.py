"""What a stream of text may be given: colour only where a terminal will show it, lines wrapped only to a terminal's width."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TextIO

_OFF: Final = "\033[0m"


class Tone(StrEnum):
    """How a piece of text is meant; the value is its escape sequence."""

    PLAIN = ""
    STRONG = "\033[1m"
    QUIET = "\033[2m"
    BAD = "\033[31m"
    GOOD = "\033[32m"


@dataclass(frozen=True, slots=True)
class Style:
    """How text is shown on one stream.

    Attributes:
        colour: Whether tones are shown.
        width: How many columns there are; None where lines are not wrapped.
    """

    colour: bool = False
    width: int | None = None

    def paint(self, text: str, tone: Tone) -> str:
        """Return the text in its tone, where tones are shown."""
        return f"{tone}{text}{_OFF}" if self.colour and tone and text else text


def style_of(stream: TextIO | None) -> Style:
    """Return how to show text on a stream: as it is, unless the stream is a terminal."""
    if stream is None or not stream.isatty():
        return Style()
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(colour, max(20, shutil.get_terminal_size().columns))
