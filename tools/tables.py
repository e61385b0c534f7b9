"""Lays rows out as a table: as wide as the terminal, in colour where it shows some; plain columns in a pipe.

The rule: a cell is one line and cannot steer the terminal, whatever a record put into it. A table never writes; it returns text.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.tools._verify_report import plain
from affidavit.tools.cells import columns, cut_cells
from affidavit.tools.terminal import Style, Tone

_GAP: Final = 2
_DOTS: Final = "..."
# What the flexible column has at least, before other columns are left out for it; and at most where nothing limits it.
_LEAST: Final = 16
_MOST: Final = 200
_LOOKS: Final = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.BAD: "red",
    Tone.GOOD: "green",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: Its head.
        right: Whether it is aligned to the right.
        flexible: Whether it takes the room that is left, and is cut there; for the last column only.
        spare: Whether it is left out where the terminal has no room for it.
    """

    name: str
    right: bool = False
    flexible: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, and how it is meant."""

    text: str
    tone: Tone = Tone.PLAIN


def table_text(style: Style, heads: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """Return a table as text, the last line ended.

    Args:
        style: How the stream that it is for shows text.
        heads: The columns, in order.
        rows: The cells of each row, one for each column.
    """
    shown = [[Cell(plain(" ".join(cell.text.split(" "))), cell.tone) for cell in row] for row in rows]
    widths = [
        max([columns(head.name), *(columns(row[at].text) for row in shown)]) for at, head in enumerate(heads)
    ]
    kept = _fitting(style, heads, widths)
    room = _room(style, heads, widths, kept)
    if heads[kept[-1]].flexible:
        widths[kept[-1]] = min(widths[kept[-1]], room)
        shown = [[*row[:-1], Cell(_cut(row[-1].text, room), row[-1].tone)] for row in shown]
    if style.width is None:
        return _plain_text(heads, widths, kept, shown)
    return _rich_text(style, heads, widths, kept, shown)


def _fitting(style: Style, heads: Sequence[Column], widths: Sequence[int]) -> list[int]:
    """Return which columns fit: on a narrow terminal those to spare are left out, the last one first."""
    kept = list(range(len(heads)))
    for at in reversed(range(len(heads))):
        if style.width is None or _wanted(heads, widths, kept) <= style.width:
            break
        if heads[at].spare:
            kept.remove(at)
    return kept


def _wanted(heads: Sequence[Column], widths: Sequence[int], kept: Sequence[int]) -> int:
    asked = sum(min(widths[at], _LEAST) if heads[at].flexible else widths[at] for at in kept)
    return asked + _GAP * (len(kept) - 1)


def _room(style: Style, heads: Sequence[Column], widths: Sequence[int], kept: Sequence[int]) -> int:
    if style.width is None:
        return _MOST
    fixed = sum(widths[at] + _GAP for at in kept if not heads[at].flexible)
    return max(len(_DOTS) + 1, style.width - fixed)


def _cut(text: str, room: int) -> str:
    return text if columns(text) <= room else cut_cells(text, room - len(_DOTS)) + _DOTS


def _plain_text(
    heads: Sequence[Column], widths: Sequence[int], kept: Sequence[int], rows: Sequence[Sequence[Cell]]
) -> str:
    lines = [[head.name for head in heads], *([cell.text for cell in row] for row in rows)]
    return "".join(
        (" " * _GAP).join(_padded(line[at], widths[at], right=heads[at].right) for at in kept).rstrip() + "\n"
        for line in lines
    )


def _padded(text: str, width: int, *, right: bool) -> str:
    gap = " " * (width - columns(text))
    return gap + text if right else text + gap


def _rich_text(
    style: Style,
    heads: Sequence[Column],
    widths: Sequence[int],
    kept: Sequence[int],
    rows: Sequence[Sequence[Cell]],
) -> str:
    # Imported here since it is slow to import, and a table in a pipe does not need it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for at in kept:
        head = heads[at]
        table.add_column(
            Text(head.name),
            width=widths[at],
            justify="right" if head.right else "left",
            overflow="fold",
            no_wrap=head.flexible,
        )
    for row in rows:
        table.add_row(*(Text(row[at].text, style=_LOOKS[row[at].tone]) for at in kept))
    out = io.StringIO()
    Console(
        file=out,
        width=style.width,
        force_terminal=style.colour,
        color_system="standard" if style.colour else None,
        no_color=not style.colour,
        legacy_windows=False,
    ).print(table)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
