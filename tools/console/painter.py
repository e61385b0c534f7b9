"""Turns frames into bytes for a terminal: only the lines that changed, all of them at once where the terminal can do that."""

from __future__ import annotations

from typing import Final, final

from rich.color import ColorSystem

from affidavit.tools.console.ink import Line, taken
from affidavit.tools.console.screen import Frame

_BEGIN: Final = "\x1b[?2026h"
_END: Final = "\x1b[?2026l"
_CLEAR: Final = "\x1b[0m\x1b[2J"


@final
class FramePainter:
    """Knows what the terminal shows, as far as it was sent."""

    def __init__(self) -> None:
        """Begin with a screen of which nothing is known."""
        self._shown: Frame = ()
        self._size = (0, 0)

    def forget(self) -> None:
        """Paint the next frame whole: the terminal may show anything."""
        self._size = (0, 0)

    def paint(self, frame: Frame, width: int, height: int) -> bytes:
        """Return what makes a terminal of a size show a frame that fills it; empty if it shows that already."""
        parts: list[str] = []
        whole = self._size != (width, height)
        if whole:
            parts.append(_CLEAR)
        for row, line in enumerate(frame):
            if whole or row >= len(self._shown) or self._shown[row] != line:
                parts.append(f"\x1b[{row + 1};1H\x1b[2K{_painted(line)}")
        self._shown, self._size = frame, (width, height)
        return "".join((_BEGIN, *parts, _END)).encode("utf-8", "backslashreplace") if parts else b""


def _painted(line: Line) -> str:
    """Return a line as text with its styles. A piece behind text that may be drawn narrower is put in its column."""
    parts: list[str] = []
    column, is_sure = 1, True
    for piece in line:
        if not is_sure:
            parts.append(f"\x1b[{column}G")
        parts.append(
            piece.style.render(piece.text, color_system=ColorSystem.STANDARD) if piece.style else piece.text
        )
        column += taken(piece.text)
        is_sure = piece.text.isascii()
    return "".join(parts)
