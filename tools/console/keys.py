"""What a terminal sends as a person types, told apart: characters, named keys, and text that was pasted.

Pasted text comes as one key, so that no letter within it can mean `approve`. Pure; the reading is done elsewhere.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, final

# What a person pastes beyond this is cut; a line of input is never longer.
MAX_PASTE: Final = 4096
_ESC: Final = "\x1b"
_PASTE_BEGINS: Final = "\x1b[200~"
_PASTE_ENDS: Final = "\x1b[201~"
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])")
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
# A sequence that goes on for longer than this is none.
_LONGEST: Final = 32


class Name(StrEnum):
    """A key that is no character."""

    UP = "up"
    DOWN = "down"
    LEFT = "left"
    RIGHT = "right"
    PAGE_UP = "page up"
    PAGE_DOWN = "page down"
    HOME = "home"
    END = "end"
    ENTER = "enter"
    ESCAPE = "escape"
    BACKSPACE = "backspace"
    DELETE = "delete"
    PASTE = "paste"
    CHARACTER = "character"


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Attributes:
        name: Which.
        text: The character, or what was pasted.
    """

    name: Name
    text: str = ""


_SEQUENCES: Final = {
    **dict.fromkeys(("\x1b[A", "\x1bOA"), Name.UP),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), Name.DOWN),
    **dict.fromkeys(("\x1b[C", "\x1bOC"), Name.RIGHT),
    **dict.fromkeys(("\x1b[D", "\x1bOD"), Name.LEFT),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"), Name.HOME),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~"), Name.END),
    "\x1b[5~": Name.PAGE_UP,
    "\x1b[6~": Name.PAGE_DOWN,
    "\x1b[3~": Name.DELETE,
}
_CONTROLS: Final = {
    "\r": Name.ENTER,
    "\n": Name.ENTER,
    "\x7f": Name.BACKSPACE,
    "\x08": Name.BACKSPACE,
    "\x01": Name.HOME,
    "\x05": Name.END,
}


@final
class KeyReader:
    """Turns bytes into keys, however they are cut."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._paste: str | None = None

    @property
    def is_unsure(self) -> bool:
        """Whether what was read last may be a lone Escape, or the beginning of another key."""
        return self._paste is None and bool(self._text)

    def feed(self, data: bytes) -> list[Key]:
        """Return the keys that are complete after some more bytes."""
        self._text += self._decoder.decode(data)
        return list(self._keys())

    def flush(self) -> list[Key]:
        """Return what was read last as what it is, since nothing followed in time."""
        text, self._text = self._text, ""
        if not text:
            return []
        return [Key(Name.ESCAPE)] if text.startswith(_ESC) else []

    def _keys(self) -> Iterator[Key]:
        while self._text:
            if self._paste is not None:
                if not self._took_paste():
                    return
                pasted, self._paste = self._paste, None
                yield Key(Name.PASTE, pasted[:MAX_PASTE])
                continue
            if not self._text.startswith(_ESC):
                letter, self._text = self._text[0], self._text[1:]
                yield from _of_letter(letter)
                continue
            found = _SEQUENCE.match(self._text)
            if found is None:
                if _UNFINISHED.match(self._text) and len(self._text) < _LONGEST:
                    return
                self._text = self._text[1:]
                yield Key(Name.ESCAPE)
                continue
            self._text = self._text[found.end() :]
            if found.group() == _PASTE_BEGINS:
                self._paste = ""
            elif found.group() in _SEQUENCES:
                yield Key(_SEQUENCES[found.group()])

    def _took_paste(self) -> bool:
        """Take what belongs to a paste; False if its end has not come. What is beyond the limit is let go."""
        before, end, after = self._text.partition(_PASTE_ENDS)
        if not end:
            # The end may be cut in two, so as much of it as may be there stays.
            keep = len(_PASTE_ENDS) - 1
            before, after = self._text[:-keep], self._text[-keep:]
        self._paste = ((self._paste or "") + before)[:MAX_PASTE]
        self._text = after
        return bool(end)


def _of_letter(letter: str) -> Iterator[Key]:
    if letter in _CONTROLS:
        yield Key(_CONTROLS[letter])
    elif letter.isprintable():
        yield Key(Name.CHARACTER, letter)
