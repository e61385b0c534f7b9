"""What a person is asked, and the line they type: a call to decide about, with its exact arguments; a reason; whether to stop.

The input line stands by itself, so that whatever takes a line of text can use it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from affidavit.tools.cells import columns, cut_cells
from affidavit.tools.console.governance_region import arguments_lines, pending_words
from affidavit.tools.console.ink import (
    ASKED,
    BAR,
    EMPTY,
    QUIET,
    STRONG,
    WAITS,
    WAITS_MARK,
    Line,
    block,
    clean,
    fit,
    line,
    piece,
    shortened,
    wrapped,
)
from affidavit.tools.console.pending import Pending
from affidavit.tools.console.ui import Mode, Read, Typed, Ui
from affidavit.tools.lookalikes import lookalike_line

HELP = (
    ("↑ ↓ PgUp PgDn", "scroll; Home for the oldest that is kept, End to follow again"),
    ("t", "unfold or fold the tool calls"),
    ("g", "unfold or fold the governance panel"),
    ("f", "unfold or fold the fan-out tree"),
    ("a", "approve the call that waits, once its exact arguments were shown to their end"),
    ("r", "refuse it, with a reason"),
    (
        "q or Ctrl-C",
        "stop: a run that is driven here is parked and sealed, and can be resumed; watching ends",
    ),
    ("?", "this; any key leaves it"),
)
_KEY = 16
# On a narrower screen lines are cut, so nothing counts as read there.
_NARROWEST = 16


def help_lines(width: int, height: int) -> list[Line]:
    """Return the list of keys."""
    rows = [line("keys", STRONG), EMPTY]
    for key, meaning in HELP:
        head = (piece(f"  {key:<{_KEY}}", ASKED),)
        first, *more = list(wrapped(meaning, max(width - _KEY - 2, 2)))
        rows.append((*head, *first))
        rows += [(piece(" " * (_KEY + 2)), *each) for each in more]
    return block(rows, width, height)


@dataclass(frozen=True, slots=True)
class _Page:
    """The part of what is being decided about that is on the screen.

    Attributes:
        lines: All of it: which call, with which arguments, and what in them may be taken for something else.
        start: The first line that is shown.
        end: The one after the last that is shown.
        number: Which page it is.
    """

    lines: tuple[Line, ...]
    start: int
    end: int
    number: int


def decision_lines(ui: Ui, width: int, height: int) -> list[Line]:
    """Return the call that is being decided about, whole or the page of it that a person has turned to."""
    if ui.asked is None:
        return block((), width, height)
    verb = "approve" if ui.mode is Mode.APPROVE else "refuse"
    page = _page(ui, ui.asked, width, height)
    shown = list(page.lines[page.start : page.end])
    if len(shown) < len(page.lines) and height > 1:
        where = f"lines {page.start + 1} to {page.end} of {len(page.lines)}; PgUp and PgDn turn"
        shown.append(line(where, WAITS))
    if _has_title(height):
        shown.insert(0, line(f"{WAITS_MARK} {verb} this call?", WAITS))
    return block(shown, width, height)


def having_read(ui: Ui, width: int, height: int) -> Ui:
    """Return the state after a decision has been shown at a size: at a page that there is, and with how much was read."""
    if ui.asked is None:
        return ui
    page = _page(ui, ui.asked, width, height)
    before = ui.read.lines if ui.read.width == width else 0
    lines = max(before, page.end) if page.start <= before else before
    is_whole = ui.read.is_whole or (lines >= len(page.lines) and width >= _NARROWEST)
    read = Read(width, lines, is_whole)
    return replace(ui, page=page.number, read=read)


def _has_title(height: int) -> bool:
    return height > 2  # noqa: PLR2004  # else a line of the call, and the one that says how it goes on


def _page(ui: Ui, asked: Pending, width: int, height: int) -> _Page:
    lines = _document(asked, width)
    room = height - _has_title(height)
    if len(lines) <= room:
        return _Page(lines, 0, len(lines), 0)
    room = max(room - 1, 1)
    number = min(ui.page, (len(lines) - 1) // room)
    start = min(number * room, len(lines) - room)
    return _Page(lines, start, start + room, number)


@lru_cache(maxsize=4)
def _document(asked: Pending, width: int) -> tuple[Line, ...]:
    """Return all that is read before a decision; kept for a while, since it stands from one frame to the next."""
    doubtful = lookalike_line(asked.arguments or "")
    return (
        EMPTY,
        *wrapped(pending_words(asked), width, STRONG),
        EMPTY,
        line("with exactly these arguments:", QUIET),
        *((piece("  "), *each) for each in arguments_lines(asked, width - 2)),
        *((EMPTY, *wrapped(doubtful, width, WAITS)) if doubtful else ()),
    )


def question_line(ui: Ui, width: int) -> Line:
    """Return the bottom line while a person is asked something."""
    match ui.mode:
        case Mode.APPROVE:
            return fit(line(_approve_words(ui, width), WAITS), width)
        case Mode.REFUSE:
            return input_line("reason, Enter refuses, Esc leaves it: ", ui.typed, width)
        case Mode.STOP:
            return fit(line(_stop_words(ui), WAITS), width)
        case _:
            return fit(line("any key goes back", QUIET), width)


def _approve_words(ui: Ui, width: int) -> str:
    if width < _NARROWEST and not ui.read.is_whole:
        return shortened("too narrow", width)
    if not ui.read.is_whole:
        return shortened("PgDn shows the rest; then y approves, any other key leaves it waiting", width)
    return shortened("y approves it as you; any other key leaves it waiting", width)


def _stop_words(ui: Ui) -> str:
    return "q again parks the run; any other key goes on" if ui.owns else "q again leaves"


def input_line(prompt: str, typed: Typed, width: int) -> Line:
    """Return a line that is being typed, with its cursor; where it is too long, the part around the cursor.

    Args:
        prompt: What is asked.
        typed: The text and the cursor.
        width: Columns.
    """
    prompt = shortened(prompt, max(width // 2, 1))
    room = max(width - columns(prompt) - 1, 1)
    before, after = clean(typed.text[: typed.at]), clean(typed.text[typed.at :])
    while columns(before) > room:
        before = before[max(len(before) - room, 1) :]
    under, rest = (after[:1] or " "), after[1:]
    rest = cut_cells(rest, max(room - columns(before), 0)) if rest else ""
    return fit((piece(prompt, WAITS), piece(before), piece(under, BAR), piece(rest)), width)
