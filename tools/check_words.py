"""The events of ground truth in words: what a check found, and what was claimed on it."""

from __future__ import annotations

from typing import Final

from affidavit.actors.events import Event
from affidavit.tools.terminal import Tone
from affidavit.tools.words import Words

# Of an output, the end says most; the whole stands on the record.
_SHOWN_LINES: Final = 12


def checked(event: Event) -> Words:
    """Return what to say of a check's verdict."""
    name, detail = event.detail.get("name", ""), str(event.detail.get("detail", "")).strip()
    said = f": {detail}" if detail else ""
    if event.detail.get("passed") is True:
        return Words(f"{name} passed{said}", Tone.GOOD, folded=True)
    lines = said.splitlines()
    left_out = len(lines) - 1 - _SHOWN_LINES
    if left_out > 0:
        lines[1:-_SHOWN_LINES] = [f"[{left_out} lines left out]"]
    return Words("\n".join([f"{name} FAILED{lines[0] if lines else ''}", *lines[1:]]), Tone.BAD)


def claimed(event: Event) -> Words:
    """Return what to say of an outcome."""
    succeeded = event.result == "success"
    rests = f", as check {event.detail.get('check')} ({event.detail.get('name', '')}) found"
    return Words(f"{event.result}{rests}", Tone.GOOD if succeeded else Tone.BAD)
