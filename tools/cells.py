"""Measures and breaks text by the columns it takes on a terminal, where some characters take two and some none.

Counting characters instead would let wide text from a model overflow its column and begin a line of the screen by itself, where
it could pass for a line of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells


def columns(text: str) -> int:
    """Return how many columns the text takes."""
    return cell_len(text)


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
        *full, line = chop_cells(piece, width)
        yield from full
    if line.strip() or not text.strip():
        yield line.rstrip()


def cut_cells(text: str, width: int) -> str:
    """Return as much of the beginning of a line as fits in `width` columns."""
    return chop_cells(text, width)[0] if columns(text) > width > 0 else text[: max(width, 0)]
