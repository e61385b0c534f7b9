"""The transcript on the screen: what was asked and said, tool calls folded to a line, refusals, and the answer in the making.

It is laid out from its end, as far as the screen goes. The layout of an entry is kept while the entry and the width stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, final

from rich.segment import Segment

from affidavit.tools.console.entries import Entry, Role
from affidavit.tools.console.ink import (
    ASKED,
    BAD,
    BAD_MARK,
    DONE_MARK,
    EMPTY,
    GOOD,
    PLAIN,
    QUIET,
    RUNNING_MARK,
    STRONG,
    WAITS,
    Line,
    hung,
    line,
    of_tone,
    one_line,
    piece,
    shortened,
    width_of,
    wrapped,
)
from affidavit.tools.console.ui import Anchor, Ui
from affidavit.tools.console.view import Draft, View
from affidavit.tools.console.words_of_model import words_of_model

_KEPT: Final = 1_000
_INDENT: Final = 2
_UNFOLDED: Final = 40
Lines = tuple[Line, ...]


@final
class TranscriptRegion:
    """Lays transcripts out, and keeps what it laid out."""

    def __init__(self) -> None:
        """Begin with nothing laid out."""
        self._kept: dict[tuple[int, int, bool], tuple[Entry, Lines]] = {}

    def lines(self, view: View, ui: Ui, width: int, height: int) -> list[Line]:
        """Return the last lines that fit, oldest first; fewer if there are no more.

        Args:
            view: What there is to show.
            ui: Where it is held, and whether tools are unfolded.
            width: Columns, at least 1.
            height: Lines, at least 1.
        """
        anchor = ui.anchor
        shown: list[Line] = []
        if anchor is None:
            for draft in reversed(view.drafts):
                shown[:0] = _draft(draft, width)
        for entry in reversed(view.entries):
            if len(shown) >= height:
                break
            if anchor is not None and entry.seq > anchor.seq:
                continue
            lines = self._laid_out(entry, width, unfolded=ui.tools)
            if anchor is not None and entry.seq == anchor.seq and anchor.hidden:
                lines = lines[: -anchor.hidden]
            shown[:0] = lines
        return shown[-height:]

    def scrolled(self, view: View, ui: Ui, width: int, height: int, by: int) -> Anchor | None:
        """Return where the transcript is held after scrolling.

        Args:
            view: As for `lines`.
            ui: As for `lines`.
            width: As for `lines`.
            height: As for `lines`.
            by: How many lines back, negative for forward.
        """
        sizes = [(entry.seq, len(self._laid_out(entry, width, unfolded=ui.tools))) for entry in view.entries]
        total = sum(size for _, size in sizes)
        below = _below(sizes, ui.anchor) + by
        if below <= 0 or total <= height:
            return None
        below = min(below, total - height)
        for seq, size in reversed(sizes):
            if below < size:
                return Anchor(seq, below)
            below -= size
        return None

    def _laid_out(self, entry: Entry, width: int, *, unfolded: bool) -> Lines:
        key = (entry.seq, width, unfolded)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is entry:
            return kept[1]
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        lines = tuple(_entry(entry, width, unfolded=unfolded))
        self._kept[key] = (entry, lines)
        return lines


def _below(sizes: Sequence[tuple[int, int]], anchor: Anchor | None) -> int:
    """Return how many lines lie below the place where the transcript is held."""
    if anchor is None:
        return 0
    return sum(size for seq, size in sizes if seq > anchor.seq) + anchor.hidden


def _entry(entry: Entry, width: int, *, unfolded: bool) -> Iterator[Line]:
    match entry.role:
        case Role.ASKED:
            yield from _marked(piece("> ", ASKED), wrapped(entry.text, width - _INDENT, STRONG))
            yield EMPTY
        case Role.SAID:
            lines = words_of_model(entry.text, width - _INDENT)
            whose = (line(f"[{entry.goal}]", ASKED),) if entry.goal else ()
            yield from _marked(piece("• ", GOOD), (*whose, *lines))
            yield EMPTY
        case Role.TOOL if unfolded:
            yield from _unfolded(entry, width)
        case Role.TOOL:
            yield _folded(entry, width)
        case Role.NOTE:
            style, mark = of_tone(entry.tone)
            head = piece(f"{mark} ", style)
            goal = f"[{entry.goal}] " if entry.goal else ""
            yield from _marked(head, wrapped(f"{goal}{entry.text}", width - _INDENT, style))


def _marked(mark: Segment, lines: Iterator[Line] | Lines) -> Iterator[Line]:
    yield from hung(lines, mark, _INDENT)


def _state(entry: Entry) -> Segment:
    if entry.result is None:
        return piece(RUNNING_MARK, WAITS)
    return piece(BAD_MARK, BAD) if entry.failed else piece(DONE_MARK, GOOD)


def _head(entry: Entry, fold: str) -> Line:
    goal = (piece(f"[{entry.goal}] ", ASKED),) if entry.goal else ()
    return (piece(f"{fold} ", QUIET), _state(entry), piece(" "), *goal, piece(entry.name, STRONG))


def _folded(entry: Entry, width: int) -> Line:
    head = _head(entry, "▸")
    room = width - width_of(head) - 1
    if room <= _INDENT:
        return head
    asked = one_line(entry.text)
    if entry.result is None:
        return (*head, piece(f" {shortened(asked, room)}", PLAIN))
    word = "FAILED " if entry.failed else ""
    answer = f" → {word}{one_line(entry.result)}"
    asked = shortened(asked, max(room // 2, room - len(answer)))
    given = shortened(answer, room - width_of(line(asked)))
    return (*head, piece(f" {asked}", PLAIN), piece(given, BAD if entry.failed else QUIET))


def _unfolded(entry: Entry, width: int) -> Iterator[Line]:
    yield _head(entry, "▾")
    blank = piece(" " * (_INDENT * 2))
    room = width - _INDENT * 2
    for each in wrapped(entry.text, room, PLAIN):
        yield (blank, *each)
    if entry.result is not None:
        style = BAD if entry.failed else QUIET
        lines = list(wrapped(entry.result, room - _INDENT, style))
        left = len(lines) - _UNFOLDED
        if left > 0:
            lines = [*lines[:_UNFOLDED], line(f"… {left:,} more lines", WAITS)]
        yield from ((blank, *each) for each in hung(lines, piece("→ ", style), _INDENT))
    yield EMPTY


def _draft(draft: Draft, width: int) -> list[Line]:
    style = QUIET if draft.thinking else PLAIN
    head = "thinking: " if draft.thinking else ""
    goal = f"[{draft.goal}] " if draft.goal else ""
    lines = list(wrapped(f"{goal}{head}{draft.text}▌", width - _INDENT, style))
    return list(_marked(piece("• ", WAITS), iter(lines)))
