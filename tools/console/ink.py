"""Lines of a screen: pieces of clean text with a style, cut and padded to a width.

The rule: every piece of a frame passes `clean`, so text of a model or a tool can neither move the cursor nor change a colour.
Colour never stands alone: whatever has one has a mark or a word beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from rich.segment import Segment
from rich.style import Style

from affidavit.tools._verify_report import plain
from affidavit.tools.cells import chopped, columns, cut_cells, wrap
from affidavit.tools.lookalikes import spelled_out
from affidavit.tools.terminal import Tone

Line: TypeAlias = tuple[Segment, ...]

PLAIN: Final = Style()
STRONG: Final = Style(bold=True)
QUIET: Final = Style(dim=True)
GOOD: Final = Style(color="green")
BAD: Final = Style(color="red", bold=True)
WAITS: Final = Style(color="yellow", bold=True)
BAR: Final = Style(reverse=True)
ASKED: Final = Style(color="cyan", bold=True)

RUNNING_MARK: Final = "…"
DONE_MARK: Final = "✓"
BAD_MARK: Final = "✗"
WAITS_MARK: Final = "?"
EMPTY: Final[Line] = ()
_TAB: Final = 4
_LONGEST_LINE: Final = 4096
_OF_TONE: Final = {
    Tone.PLAIN: (PLAIN, " "),
    Tone.STRONG: (WAITS, "!"),
    Tone.QUIET: (QUIET, "·"),
    Tone.BAD: (BAD, BAD_MARK),
    Tone.GOOD: (GOOD, DONE_MARK),
}


def of_tone(tone: Tone) -> tuple[Style, str]:
    """Return the style and the mark that stand for a tone."""
    return _OF_TONE[tone]


def clean(text: str) -> str:
    """Return one line of text that is safe to paint."""
    return text if text.isascii() and text.isprintable() else plain(text.expandtabs(_TAB))


def piece(text: str, style: Style = PLAIN) -> Segment:
    """Return clean text in a style."""
    return Segment(clean(text), style)


def line(text: str, style: Style = PLAIN) -> Line:
    """Return a line of one piece."""
    return (piece(text, style),)


def one_line(text: str) -> str:
    """Return the beginning of a text on one line, its white space folded; more than any line can hold."""
    return " ".join(text[:_LONGEST_LINE].split())


def taken(text: str) -> int:
    """Return how many columns a text takes. Most text is of letters of one column each, which need no look."""
    return len(text) if text.isascii() else columns(text)


def shortened(text: str, width: int) -> str:
    """Return a clean line cut to a width, with a mark where something was left out."""
    text = clean(text)
    if taken(text) <= width:
        return text
    return cut_cells(text, width - 1) + "…" if width > 1 else cut_cells(text, width)


def wrapped(text: str, width: int, style: Style = PLAIN) -> Iterator[Line]:
    """Go through the lines of a text of any number of lines, broken to a width of at least 2."""
    for each in text.splitlines() or [""]:
        for part in wrap(clean(each), max(width, 2)):
            yield line(part, style)


@lru_cache(maxsize=16)
def exact(text: str, width: int, style: Style = PLAIN) -> tuple[Line, ...]:
    """Return the lines of a text of which nothing is left out, no blank either; what cannot be seen is spelled out.

    Kept for a while, since such a text may be long and stands on the screen from one frame to the next.
    """
    return tuple((Segment(part, style),) for part in chopped(spelled_out(text), max(width, 2)))


def hung(lines: Iterable[Line], first: Segment, indent: int) -> Iterator[Line]:
    """Go through lines with a piece before the first one and as much blank before the others."""
    blank = Segment(" " * indent, PLAIN)
    for number, each in enumerate(lines):
        yield (first if number == 0 else blank, *each)


def width_of(pieces: Line) -> int:
    """Return how many columns a line takes."""
    return sum(taken(each.text) for each in pieces)


def fit(pieces: Line, width: int, style: Style = PLAIN) -> Line:
    """Return a line of exactly a width: cut, or filled up with blanks in a style."""
    room = width - width_of(pieces)
    if room >= 0:
        return (*pieces, Segment(" " * room, style)) if room else pieces
    cut: list[Segment] = []
    room = width
    for each in pieces:
        kept = cut_cells(each.text, room)
        cut.append(Segment(kept, each.style))
        room -= taken(kept)
        if kept != each.text:
            break
    return (*cut, Segment(" " * room, style)) if room else tuple(cut)


def block(lines: Iterable[Line], width: int, height: int) -> list[Line]:
    """Return exactly so many lines of exactly a width: the first ones, filled up with blank ones."""
    shown = [fit(each, width) for _, each in zip(range(height), lines, strict=False)]
    return shown + [fit(EMPTY, width)] * (height - len(shown))


def rule(title: str, width: int) -> Line:
    """Return the line above a region."""
    head = shortened(f"── {title} ", width)
    return (Segment(head + "─" * max(width - columns(head), 0), QUIET),)
