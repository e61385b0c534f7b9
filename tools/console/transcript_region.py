"""The transcript on the screen: what was asked and said, tool calls folded to a line, refusals, and the answer in the making.

It is laid out from its end, as far as the screen goes. The layout of an entry is kept while the entry and the width stay.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from affidavit.tools.console.ui import FAR, Anchor, Ui
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
        self._kept: dict[tuple[tuple[int, int], int, bool], tuple[Entry, Lines]] = {}

    def lines(self, view: View, ui: Ui, width: int, height: int) -> list[Line]:
        """Return the last lines that fit, oldest first; fewer if there are no more.

        Args:
            view: What there is to show.
            ui: Where it is held, and whether tools are unfolded.
            width: Columns, at least 1.
            height: Lines, at least 1.
        """
        anchor = self._anchor(view, ui, width, height)
        shown: list[Line] = []
        if anchor is None:
            for draft in reversed(view.drafts):
                shown[:0] = _draft(draft, width)
        for entry in reversed(view.entries):
            if len(shown) >= height:
                break
            if anchor is not None and entry.place > anchor.place:
                continue
            lines = self._laid_out(entry, width, unfolded=ui.tools)
            if anchor is not None and entry.place == anchor.place and anchor.hidden:
                lines = lines[: -anchor.hidden]
            shown[:0] = lines
        return shown[-height:]

    def scrolled(self, view: View, ui: Ui, width: int, height: int, by: int) -> Anchor | None:
        """Return where the transcript is held after scrolling. It lays out no more than it passes.

        Args:
            view: As for `lines`.
            ui: As for `lines`.
            width: As for `lines`.
            height: As for `lines`.
            by: How many lines back, negative for forward; `FAR` goes to the very end.
        """
        if by <= -FAR:
            return None
        if by >= FAR:
            return self._top(view, ui, width, height)
        anchor = self._anchor(view, ui, width, height)
        at, hidden = len(view.entries) - 1, by
        if anchor is not None:
            at = next((n for n, each in enumerate(view.entries) if each.place == anchor.place), at)
            hidden = anchor.hidden + by
        while at >= 0 and hidden >= (size := self._size(view.entries[at], width, ui)):
            hidden -= size
            at -= 1
        while hidden < 0 and at + 1 < len(view.entries):
            at += 1
            hidden += self._size(view.entries[at], width, ui)
        if hidden < 0 or (hidden == 0 and at == len(view.entries) - 1):
            return None
        if self._reaches(view, ui, width, at, height + hidden):
            return Anchor(view.entries[at].place, hidden)
        return self._top(view, ui, width, height)

    def _anchor(self, view: View, ui: Ui, width: int, height: int) -> Anchor | None:
        """Return where the transcript is held: at the oldest entries that are kept, if those it was held at are not any more."""
        if ui.anchor is None or not view.entries:
            return None
        if ui.anchor.place < view.entries[0].place:
            return self._top(view, ui, width, height)
        return ui.anchor

    def _top(self, view: View, ui: Ui, width: int, height: int) -> Anchor | None:
        """Return where to hold it so that the oldest entry is at the top; None if all of it fits."""
        total = 0
        for entry in view.entries:
            total += self._size(entry, width, ui)
            if total > height or (total == height and entry is not view.entries[-1]):
                return Anchor(entry.place, total - height)
        return None

    def _reaches(self, view: View, ui: Ui, width: int, at: int, wanted: int) -> bool:
        """Tell whether there are so many lines up to an entry."""
        for entry in reversed(view.entries[: at + 1]):
            wanted -= self._size(entry, width, ui)
            if wanted <= 0:
                return True
        return False

    def _size(self, entry: Entry, width: int, ui: Ui) -> int:
        return len(self._laid_out(entry, width, unfolded=ui.tools))

    def _laid_out(self, entry: Entry, width: int, *, unfolded: bool) -> Lines:
        key = (entry.place, width, unfolded)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is entry:
            return kept[1]
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        lines = tuple(_entry(entry, width, unfolded=unfolded))
        self._kept[key] = (entry, lines)
        return lines


def _entry(entry: Entry, width: int, *, unfolded: bool) -> Iterator[Line]:
    match entry.role:
        case Role.ASKED:
            yield from _marked(piece("> ", ASKED), wrapped(entry.text, width - _INDENT, STRONG))
            yield EMPTY
        case Role.SAID:
            lines = words_of_model(entry.lead + entry.text, width - _INDENT)
            whose = (line(f"[{entry.goal}]", ASKED),) if entry.goal and not entry.part else ()
            yield from _marked(piece("  " if entry.part else "• ", GOOD), (*whose, *lines))
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
