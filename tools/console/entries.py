"""The transcript as a person reads it: an entry for each thing said, asked, called or refused; a tool's result joins its call.

A fold of events, with a bound: the newest entries, and of a long text its beginning. The record has all of it. What is only
book-keeping (turns, phases, admissions) has no entry: the status line and the governance panel tell of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from affidavit.actors.events import Event, Kind
from affidavit.tools.console.parts import parts_of
from affidavit.tools.event_words import words_of
from affidavit.tools.goals import goal_label
from affidavit.tools.terminal import Tone

MAX_ENTRIES: Final = 400
MAX_TEXT: Final = 16 * 1024
_SAME: Final = "(the answer above)"
_KNOWN: Final = frozenset(Kind)
_BOOK_KEEPING: Final = frozenset(
    {Kind.GOAL_PHASE, Kind.TURN_STARTED, Kind.TURN_COMPLETED, Kind.ACTION_ADMITTED}
)


class Role(StrEnum):
    """What an entry is."""

    ASKED = "asked"
    SAID = "said"
    TOOL = "tool"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the transcript.

    Attributes:
        seq: The event it began with.
        role: What it is.
        text: The words; of a tool call, its arguments.
        goal: The child goal it belongs to; empty for the run's own.
        tone: How a note is meant.
        name: The tool.
        use_id: Pairs a tool's call with its result.
        result: What the tool gave; None while it has not.
        failed: Whether the tool failed.
        part: Which part of a long answer it is, from 0.
        lead: What must stand before the part for it to be read as it is meant.
    """

    seq: int
    role: Role
    text: str
    goal: str = ""
    tone: Tone = Tone.PLAIN
    name: str = ""
    use_id: str = ""
    result: str | None = None
    failed: bool = False
    part: int = 0
    lead: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """What tells it from every other, in order."""
        return self.seq, self.part


Entries = tuple[Entry, ...]


def bounded(text: str) -> str:
    """Return a text, or the beginning of a very long one and how long it is."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n… the first {MAX_TEXT:,} of {len(text):,} characters; the record has them all"


def with_event(entries: Entries, event: Event, arguments: str | None = None) -> Entries:
    """Return the entries after one more event.

    Args:
        entries: Those so far.
        event: The event.
        arguments: The exact arguments that a request for approval is about, where they are known.
    """
    if event.kind == Kind.TOOL_RESULT:
        return _with_result(entries, event)
    if event.kind == Kind.ASSISTANT and event.text.strip():
        return (*entries, *_answer(event))[-MAX_ENTRIES:]
    entry = _entry(entries, event, arguments)
    if entry is None:
        return entries
    return (*entries[-MAX_ENTRIES + 1 :], entry)


def _with_result(entries: Entries, event: Event) -> Entries:
    result, use_id = bounded(event.result), event.tool_use_id
    for at in range(len(entries) - 1, -1, -1):
        each = entries[at]
        # The id alone tells nearly all of them apart, and this looks at many.
        if (
            each.use_id == use_id
            and each.goal == event.goal
            and each.role is Role.TOOL
            and each.result is None
        ):
            done = replace(each, result=result, failed=event.is_error)
            return (*entries[:at], done, *entries[at + 1 :])
    alone = Entry(
        event.seq,
        Role.TOOL,
        "",
        event.goal,
        name=event.tool,
        use_id=event.tool_use_id,
        result=result,
        failed=event.is_error,
    )
    return (*entries[-MAX_ENTRIES + 1 :], alone)


def _answer(event: Event) -> Iterator[Entry]:
    for number, (lead, part) in enumerate(parts_of(bounded(event.text))):
        yield Entry(event.seq, Role.SAID, part, event.goal, part=number, lead=lead)


def _entry(entries: Entries, event: Event, arguments: str | None) -> Entry | None:
    if _is_book_keeping(event):
        return None
    if event.kind == Kind.TOOL_CALL:
        return Entry(
            event.seq,
            Role.TOOL,
            bounded(event.input),
            event.goal,
            name=event.tool,
            use_id=event.tool_use_id,
        )
    text = bounded(event.text)
    match event.kind:
        case Kind.SESSION_STARTED | Kind.USER_MESSAGE:
            return Entry(event.seq, Role.ASKED, text)
        case Kind.CONVERGED:
            said = _SAME if text and text == _last_answer(entries) else text
            return Entry(event.seq, Role.NOTE, f"converged: {said}", tone=Tone.GOOD)
    words = words_of(event, arguments)
    text = words.text.removeprefix(f"[{goal_label(event.goal)}] ") if event.goal else words.text
    known = text if event.kind in _KNOWN else f"{event.kind} {text}"
    return Entry(event.seq, Role.NOTE, bounded(known), event.goal, words.tone)


def _is_book_keeping(event: Event) -> bool:
    if event.kind in _BOOK_KEEPING:
        return True
    match event.kind:
        case Kind.ASSISTANT:
            return True
        case Kind.ACTION_COMPLETED:
            return not event.fault
        case Kind.EGRESS_DECISION:
            return event.allowed
        case _:
            return False


def _last_answer(entries: Entries) -> str:
    seq = next((each.seq for each in reversed(entries) if each.role is Role.SAID and not each.goal), 0)
    return "".join(each.text for each in entries if each.seq == seq) if seq else ""
