"""What is said of an event, before it is laid out: the text, how it is meant, and whether it may be cut."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.tools.terminal import Tone


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of an event.

    Attributes:
        text: In words; several lines where the event's own text has several.
        tone: How it is meant.
        folded: Whether it is cut to one line.
    """

    text: str
    tone: Tone = Tone.PLAIN
    folded: bool = False


def quiet(text: str) -> Words:
    """Return words about book-keeping."""
    return Words(text, Tone.QUIET, folded=True)
