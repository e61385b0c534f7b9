"""Measures and breaks text by the columns it takes on a terminal, where some characters take two and some none.

Counting characters instead would let wide text from a model overflow its column and begin a line of the screen by itself, where
it could pass for a line of ours. Terminals do not agree about all characters (vowel signs, joined emoji), so each counts as the
most that one of them gives it: a line may be drawn narrower than it was measured, and never wider.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from rich.cells import cell_len

# It may make the character before it a wide one.
_WIDENS: Final = "\ufe0f"


def columns(text: str) -> int:
    """Return how many columns the text takes at most."""
    return len(text) if text.isascii() else sum(map(_most, text))


@lru_cache(maxsize=4096)
def _most(letter: str) -> int:
    if found := cell_len(letter):
        return found
    return int(letter == _WIDENS or unicodedata.category(letter) not in {"Mn", "Me"})


def chopped(text: str, width: int) -> list[str]:
    """Break a text wherever a line of `width` columns is full; at least one line."""
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)] or [""]
    lines, start, taken = list[str](), 0, 0
    for at, letter in enumerate(text):
        taken += (size := _most(letter))
        if taken > width:
            lines.append(text[start:at])
            start, taken = at, size
    return [*lines, text[start:]]


def wrap(text: str, width: int) -> Iterator[str]:
    """Break a line at blanks into lines of at most `width` columns; a longer word is broken where the line is full.

    Args:
        text: One line.
        width: The most columns of a line, at least 2.
    """
    line = ""
    for piece in re.findall(r"\s+|\S+", text):
        if columns(line + piece) <= width:
            line += piece
            continue
        if piece.isspace():
            yield line
            line = ""
            continue
        if line.strip():
            yield line.rstrip()
        *full, line = chopped(piece, width)
        yield from full
    if line.strip() or not text.strip():
        yield line.rstrip()


def cut_cells(text: str, width: int) -> str:
    """Return as much of the beginning of a line as fits in `width` columns."""
    return chopped(text, width)[0] if width > 0 else ""
