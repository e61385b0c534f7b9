"""What a person is asked, and the line they type: a call to decide about, with its exact arguments; a reason; whether to stop.

The input line stands by itself, so that whatever takes a line of text can use it.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from affidavit.tools.console.ui import Mode, Typed, Ui

HELP = (
    ("↑ ↓ PgUp PgDn", "scroll; Home for the oldest that is kept, End to follow again"),
    ("t", "unfold or fold the tool calls"),
    ("g", "unfold or fold the governance panel"),
    ("f", "unfold or fold the fan-out tree"),
    ("a", "approve the call that waits; its exact arguments are shown first"),
    ("r", "refuse it, with a reason"),
    (
        "q or Ctrl-C",
        "stop: a run that is driven here is parked and sealed, and can be resumed; watching ends",
    ),
    ("?", "this; any key leaves it"),
)
_KEY = 16


def help_lines(width: int, height: int) -> list[Line]:
    """Return the list of keys."""
    rows = [line("keys", STRONG), EMPTY]
    for key, meaning in HELP:
        head = (piece(f"  {key:<{_KEY}}", ASKED),)
        first, *more = list(wrapped(meaning, max(width - _KEY - 2, 2)))
        rows.append((*head, *first))
        rows += [(piece(" " * (_KEY + 2)), *each) for each in more]
    return block(rows, width, height)


def decision_lines(ui: Ui, width: int, height: int) -> list[Line]:
    """Return the call that is being decided about, with as many of its arguments as fit, from the page a person has turned to."""
    asked = ui.asked
    if asked is None:
        return block((), width, height)
    verb = "approve" if ui.mode is Mode.APPROVE else "refuse"
    head = [
        line(f"{WAITS_MARK} {verb} this call?", WAITS),
        EMPTY,
        *wrapped(pending_words(asked), width, STRONG),
        EMPTY,
        line("with exactly these arguments:", QUIET),
    ][: max(height - 2, 1)]
    return block([*head, *_page(asked, ui.page, width, height - len(head))], width, height)


def _page(asked: Pending, page: int, width: int, height: int) -> Sequence[Line]:
    lines = [(piece("  "), *each) for each in arguments_lines(asked, width - 2)]
    if len(lines) <= height:
        return lines
    room = max(height - 1, 1)
    start = min(page * room, max(len(lines) - room, 0))
    shown = lines[start : start + room]
    where = f"lines {start + 1} to {start + len(shown)} of {len(lines)}; PgUp and PgDn turn"
    return [*shown, line(where, WAITS)]


def question_line(ui: Ui, width: int) -> Line:
    """Return the bottom line while a person is asked something."""
    match ui.mode:
        case Mode.APPROVE:
            return fit(line("y approves it as you; any other key leaves it waiting", WAITS), width)
        case Mode.REFUSE:
            return input_line("reason, Enter refuses, Esc leaves it: ", ui.typed, width)
        case Mode.STOP:
            return fit(line(_stop_words(ui), WAITS), width)
        case _:
            return fit(line("any key goes back", QUIET), width)


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
