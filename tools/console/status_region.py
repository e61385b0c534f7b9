"""The status line, always on: badge, turns, tokens, containment, actions and connections, in as few lines as they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.segment import Segment

from affidavit.actors.events import Usage
from affidavit.actors.projection import RecordState
from affidavit.tools.console.ink import (
    BAD,
    BAD_MARK,
    BAR,
    DONE_MARK,
    GOOD,
    PLAIN,
    QUIET,
    RUNNING_MARK,
    WAITS,
    WAITS_MARK,
    Line,
    fit,
    piece,
    shortened,
    width_of,
)
from affidavit.tools.console.ui import Ui
from affidavit.tools.console.view import View
from affidavit.tools.status import sealed_words

_BADGE: Final = {
    RecordState.RECORDING: ("○", WAITS),
    RecordState.SEALED: ("◐", PLAIN),
    RecordState.VERIFIED: ("●", GOOD),
}
_GAP: Final = "   "
_THOUSAND: Final = 10_000


def title(view: View, width: int) -> Line:
    """Return the top line: which run, with which model, and how it stands."""
    text, mark = _state(view)
    state = f" {mark} {text} "
    room = width - width_of((piece(state),))
    left = shortened(f" affidavit  {view.run_id}  {view.model}", max(room, 0))
    return fit((*fit((piece(left, BAR),), max(room, 0), BAR), piece(state, BAR)), width, BAR)


def _state(view: View) -> tuple[str, str]:
    status = view.status
    if status.terminal:
        return ("stalled", BAD_MARK) if status.err else ("converged", DONE_MARK)
    if view.waiting.braked:
        return "braked", BAD_MARK
    if view.waiting.pending:
        return "waits for you", WAITS_MARK
    return "running", RUNNING_MARK


def status_lines(view: View, width: int, most: int) -> list[Line]:
    """Return the status in as few lines as it needs, at most so many; what then finds no room is the least that matters."""
    lines: list[Line] = []
    at: Line = ()
    for part in _parts(view):
        together = (*at, piece(_GAP), *part) if at else part
        if at and width_of(together) > width:
            lines.append(at)
            at = part
        else:
            at = together
    if at:
        lines.append(at)
    return [fit(each, width) for each in lines[:most]]


def _parts(view: View) -> Iterator[Line]:
    status = view.status
    mark, style = _BADGE[status.record]
    yield (piece(f"{mark} {status.record}", style), piece(f" {sealed_words(status)}"))
    yield (piece(f"turns {status.turns}"),)
    yield (piece(_tokens(status.usage)),)
    blocked = piece(f"{BAD_MARK}{status.rejected} blocked", BAD if status.rejected else QUIET)
    yield (piece(f"{status.admitted} admitted {DONE_MARK}{status.completed} done "), blocked)
    yield (piece(f"contained as {status.containment or 'nothing yet'}"),)
    refused = piece(f"{BAD_MARK}{status.egress_blocked} blocked", BAD if status.egress_blocked else QUIET)
    yield (piece(f"egress {DONE_MARK}{status.egress_allowed} allowed "), refused)


def _tokens(usage: Usage) -> str:
    cached = usage.cache_read_tokens * 100 // usage.input_tokens if usage.input_tokens else 0
    return (
        f"tokens {count(usage.input_tokens)} in {count(usage.output_tokens)} out, {min(cached, 100)}% cached"
    )


def count(number: int) -> str:
    """Return a number in few characters: exact below ten thousand, then in thousands or millions."""
    if number < _THOUSAND:
        return f"{number:,}"
    if number < _THOUSAND * 100:
        return f"{number / 1000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def hints(view: View, ui: Ui, width: int) -> Line:
    """Return the bottom line: what was last told, else which keys there are."""
    if ui.notice:
        return fit((piece(shortened(ui.notice, width), WAITS),), width)
    keys = ["q stop" if ui.owns else "q leave", "↑↓ scroll", "t tools", "g governance", "f fan-out", "? help"]
    if view.waiting.pending and ui.can_decide:
        keys[:0] = ["a approve", "r refuse"]
    held = "▼ held; End follows  " if ui.anchor is not None else ""
    parts: list[Segment] = [piece(held, WAITS), piece(shortened("  ".join(keys), width - len(held)), QUIET)]
    return fit(tuple(parts), width)
