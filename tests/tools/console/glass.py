"""The little of a terminal that the view uses, so that a test can read the screen: cursor by row, clearing, the other screen.

Whatever the view must never send makes it fail.
"""

import codecs
import re

from rich.cells import cell_len, set_cell_size

_TOKEN = re.compile(r"\x1b\[([?]?)([0-9;]*)([A-Za-z])|\x18|([^\x1b\x18]+)", re.DOTALL)
_KNOWN = {"?1049h", "?1049l", "?25h", "?25l", "?7h", "?7l", "?2004h", "?2004l", "?2026h", "?2026l"}


class Glass:
    """A screen that bytes are written to.

    Attributes:
        rows: What it shows, by row from 1.
        modes: The modes that are set, such as ``?1049``.
        frames: Every state at the end of an update.
        last: What the other screen showed when it was left.
    """

    def __init__(self) -> None:
        self.rows: dict[int, str] = {}
        self.modes: set[str] = set()
        self.frames = 0
        self.last = ""
        self.after = ""
        self._row = 0
        self._rest = b""
        # Strict: the view writes UTF-8 and nothing else.
        self._letters = codecs.getincrementaldecoder("utf-8")()

    @property
    def text(self) -> str:
        """The screen, line by line."""
        most = max(self.rows, default=0)
        return "\n".join(self.rows.get(row, "").rstrip() for row in range(1, most + 1))

    def feed(self, data: bytes) -> None:
        """Take bytes that the view wrote, cut anywhere."""
        data = self._rest + data
        cut = data.rfind(b"\x1b")
        # The last sequence may be cut in two, and so may be a letter.
        if cut >= 0 and not re.match(rb"\x1b\[[?]?[0-9;]*[A-Za-z]", data[cut:]):
            data, self._rest = data[:cut], data[cut:]
        else:
            self._rest = b""
        text = self._letters.decode(data)
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            assert token is not None, f"not of the view: {text[at : at + 20]!r}"
            at = token.end()
            self._take(token)

    def _take(self, token: re.Match[str]) -> None:
        private, numbers, letter, words = token.groups()
        if words is not None:
            if "?1049" in self.modes:
                assert words.isprintable(), words
                self.rows[self._row] = self.rows.get(self._row, "") + words
            else:
                self.after += words
        elif letter in {"h", "l"}:
            assert private + numbers + letter in _KNOWN, token.group()
            self._mode(f"?{numbers}", on=letter == "h")
        elif letter == "H":
            row, column = numbers.split(";")
            assert column == "1"
            self._row = int(row)
        elif letter == "G":
            # Where text was drawn narrower or wider than it was measured, what follows stands in its column all the same.
            row = self.rows.get(self._row, "")
            self.rows[self._row] = set_cell_size(row, int(numbers) - 1)
        elif letter == "K":
            self.rows[self._row] = ""
        elif letter == "J":
            self.rows = {}
        elif letter is not None:
            assert letter == "m", token.group()

    def _mode(self, mode: str, *, on: bool) -> None:
        if mode == "?1049" and not on:
            self.last = self.text
        if mode == "?2026" and not on and "?2026" in self.modes:
            self.frames += 1
        self.modes = self.modes | {mode} if on else self.modes - {mode}

    def width(self) -> int:
        """The columns of the widest line, blanks at its end included."""
        return max(map(cell_len, self.rows.values()), default=0)
