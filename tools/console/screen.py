"""Puts the regions together into a frame of exactly the size of the terminal, whatever that is.

Wide screens have the panels beside the transcript, others below it. As a screen gets smaller the panels go first; the transcript
and the status line stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from affidavit.tools.console import fanout_region, governance_region, prompt_region, status_region
from affidavit.tools.console.ink import EMPTY, QUIET, Line, fit, piece, rule
from affidavit.tools.console.transcript_region import TranscriptRegion
from affidavit.tools.console.ui import Mode, Ui
from affidavit.tools.console.view import View

_WIDE: Final = 100
_SIDE: Final = 46
_LOW: Final = 12
_NARROW: Final = 40
_GOVERNANCE: Final = 7
_ASKS: Final = frozenset({Mode.APPROVE, Mode.REFUSE})

Frame = tuple[Line, ...]


@final
class Screen:
    """Lays out frames; it keeps the layout of the transcript from one to the next."""

    def __init__(self) -> None:
        """Begin with nothing laid out."""
        self.transcript = TranscriptRegion()

    def frame(self, view: View, ui: Ui, width: int, height: int) -> Frame:
        """Return a frame of exactly so many lines of exactly so many columns."""
        width, height = max(width, 1), max(height, 1)
        ui = self.having_read(view, ui, width, height)
        top = [status_region.title(view, width)]
        bottom = [
            *status_region.status_lines(view, width, 3 if height >= _LOW else 1),
            status_region.hints(view, ui, width)
            if ui.mode is Mode.LOOK
            else prompt_region.question_line(ui, width),
        ]
        room = height - len(top) - len(bottom)
        if room < 1:
            return tuple((self._body(view, ui, width, 1) + bottom)[:height])
        return (*top, *self._body(view, ui, width, room), *bottom)

    def having_read(self, view: View, ui: Ui, width: int, height: int) -> Ui:
        """Return the state after a frame of a size has been shown: with how much was read of what is being decided about."""
        if ui.mode not in _ASKS:
            return ui
        width, height = max(width, 1), max(height, 1)
        return prompt_region.having_read(ui, width, self._room(view, width, height))

    def _room(self, view: View, width: int, height: int) -> int:
        """Return the lines between the title and the status."""
        bottom = 1 + len(status_region.status_lines(view, width, 3 if height >= _LOW else 1))
        return max(height - 1 - bottom, 1)

    def transcript_size(self, view: View, ui: Ui, width: int, height: int) -> tuple[int, int]:
        """Return the columns and lines that the transcript has in a frame of a size."""
        room = self._room(view, width, height)
        if width >= _WIDE and _has_panels(view, ui):
            return width - _SIDE - 2, room
        return width, max(room - sum(_panel_heights(view, ui, width, room)), 1)

    def _body(self, view: View, ui: Ui, width: int, height: int) -> list[Line]:
        if ui.mode is Mode.HELP:
            return prompt_region.help_lines(width, height)
        if ui.mode in _ASKS:
            return prompt_region.decision_lines(ui, width, height)
        if width >= _WIDE and _has_panels(view, ui):
            left = self._transcript(view, ui, width - _SIDE - 2, height)
            right = _side(view, ui, height)
            return [(*one, piece("│ ", QUIET), *other) for one, other in zip(left, right, strict=True)]
        governance, fanout = _panel_heights(view, ui, width, height)
        lines = self._transcript(view, ui, width, height - governance - fanout)
        if fanout:
            lines += _fanout(view, width, fanout)
        if governance:
            lines += _governance(view, width, governance)
        return lines

    def _transcript(self, view: View, ui: Ui, width: int, height: int) -> list[Line]:
        lines = [fit(each, width) for each in self.transcript.lines(view, ui, width, height)]
        return lines + [fit(EMPTY, width)] * (height - len(lines))


def _has_panels(view: View, ui: Ui) -> bool:
    return ui.governance or _has_tree(view, ui)


def _has_tree(view: View, ui: Ui) -> bool:
    return ui.fanout and bool(view.status.fanout)


def _panel_heights(view: View, ui: Ui, width: int, height: int) -> Sequence[int]:
    """Return the lines of the governance panel and of the tree below a transcript, titles included; 0 for none."""
    if height < _LOW or width < _NARROW:
        # Where there is hardly room, what a person must decide is still shown.
        urgent = ui.governance and bool(view.waiting.pending) and height >= 6  # noqa: PLR2004  # half and half
        return (height // 2 if urgent else 0), 0
    governance = fanout = 0
    if ui.governance:
        wanted = governance_region.wanted_height(view, width)
        most = height // 2 if view.waiting.pending else _GOVERNANCE
        governance = 1 + max(min(wanted, most, height // 2), 3)
    if _has_tree(view, ui):
        fanout = 1 + min(len(view.status.fanout), max((height - governance) // 3, 2))
    return governance, fanout


def _side(view: View, ui: Ui, height: int) -> list[Line]:
    fanout = 0
    if _has_tree(view, ui):
        wanted = 1 + len(view.status.fanout)
        fanout = min(wanted, height // 2) if ui.governance else height
    lines: list[Line] = []
    if ui.governance:
        lines += _governance(view, _SIDE, height - fanout)
    if fanout:
        lines += _fanout(view, _SIDE, fanout)
    return lines


def _governance(view: View, width: int, height: int) -> list[Line]:
    return [rule("governance", width), *governance_region.governance_lines(view, width, height - 1)]


def _fanout(view: View, width: int, height: int) -> list[Line]:
    title = f"fan-out {len(view.status.fanout)}"
    return [rule(title, width), *fanout_region.fanout_lines(view.status.fanout, width, height - 1)]
