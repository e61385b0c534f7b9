"""An event in words: which of its fields a person at a terminal is shown, and how loudly. One small function for each kind.

The rule: nothing is hidden. A kind that is not known here still shows its seq, its kind and its text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from affidavit.actors.events import Event, Kind, Usage
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


def words_of(event: Event) -> Words:
    """Return what to say of an event."""
    say = _SAY.get(event.kind)
    words = Words(event.text) if say is None else say(event)
    return Words(f"[{event.goal}] {words.text}", words.tone, words.folded) if event.goal else words


def usage_words(usage: Usage) -> str:
    """Return a token cost in words."""
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def _quiet(text: str) -> Words:
    return Words(text, Tone.QUIET, folded=True)


def _asked(event: Event) -> Words:
    return Words(event.text, Tone.STRONG)


def _phase(event: Event) -> Words:
    changed = event.detail.get("changed")
    accepted = (
        f", with another {' and '.join(map(str, changed))}" if isinstance(changed, list | tuple) else ""
    )
    return _quiet(f"{event.detail.get('phase', '')}{accepted}")


def _turn_started(event: Event) -> Words:
    return _quiet(f"turn {event.turn}")


def _assistant(event: Event) -> Words:
    return Words(event.text, Tone.STRONG) if event.text else _quiet("(no words)")


def _tool_call(event: Event) -> Words:
    return Words(f"{event.tool} {event.input}", folded=True)


def _tool_result(event: Event) -> Words:
    if event.is_error:
        return Words(f"{event.tool} FAILED: {event.result}", Tone.BAD, folded=True)
    return Words(f"{event.tool} gave {event.result}", folded=True)


def _turn_completed(event: Event) -> Words:
    cost = f", {usage_words(event.usage)}" if event.usage else ""
    return _quiet(f"turn {event.turn} ended ({event.stop_reason or 'no reason given'}){cost}")


def _admitted(event: Event) -> Words:
    return _quiet(f"call {event.call}: {event.action}, {event.trust}")


def _completed(event: Event) -> Words:
    if event.fault:
        return Words(f"call {event.call}: {event.action} failed: {event.fault}", Tone.BAD, folded=True)
    return _quiet(f"call {event.call}: {event.action} ended")


def _rejected(event: Event) -> Words:
    why = event.detail.get("denial") or event.reason
    return Words(
        f"REFUSED call {event.call}: {event.action} ({event.fault or 'no code'}){f': {why}' if why else ''}",
        Tone.BAD,
    )


def _egress(event: Event) -> Words:
    name = event.detail.get("name")
    where = f"{event.host}{f' ({name})' if name and name != event.host else ''}"
    if event.allowed:
        return _quiet(f"connection to {where} allowed: {event.reason}")
    return Words(f"REFUSED connection to {where}: {event.reason}", Tone.BAD)


def _spawned(event: Event) -> Words:
    return Words(f"child {event.child}: {event.text}", folded=True)


def _folded_back(event: Event) -> Words:
    how = "FAILED" if event.is_error else "ended"
    return Words(
        f"child {event.child} {how}: {event.result}", Tone.BAD if event.is_error else Tone.PLAIN, folded=True
    )


def _sealed(event: Event) -> Words:
    root = event.detail.get("root")
    shown = root.hex()[:16] if isinstance(root, bytes) else "unknown"
    return Words(
        f"events 1 to {event.detail.get('size')} are signed, root {shown}...", Tone.GOOD, folded=True
    )


def _verified(event: Event) -> Words:
    tiers = event.detail.get("tiers")
    named = ", ".join(map(str, tiers)) if isinstance(tiers, list | tuple) else "no tier"
    return Words(
        f"events 1 to {event.detail.get('size')} were read back and checked: {named}", Tone.GOOD, folded=True
    )


def _record_rejected(event: Event) -> Words:
    return Words(f"the record does NOT verify: {event.detail.get('code')}: {event.reason}", Tone.BAD)


def _converged(event: Event) -> Words:
    return Words(event.text, Tone.GOOD)


def _stalled(event: Event) -> Words:
    by = f", by {event.principal}" if event.principal else ""
    return Words(f"STALLED ({event.error_class or 'no class'}{by}): {event.err}", Tone.BAD)


_SAY: Final[dict[str, Callable[[Event], Words]]] = {
    Kind.SESSION_STARTED: _asked,
    Kind.USER_MESSAGE: _asked,
    Kind.GOAL_PHASE: _phase,
    Kind.TURN_STARTED: _turn_started,
    Kind.ASSISTANT: _assistant,
    Kind.TOOL_CALL: _tool_call,
    Kind.TOOL_RESULT: _tool_result,
    Kind.TURN_COMPLETED: _turn_completed,
    Kind.CHILD_SPAWNED: _spawned,
    Kind.CHILD_COMPLETED: _folded_back,
    Kind.ACTION_ADMITTED: _admitted,
    Kind.ACTION_COMPLETED: _completed,
    Kind.ACTION_REJECTED: _rejected,
    Kind.EGRESS_DECISION: _egress,
    Kind.RECORD_SEALED: _sealed,
    Kind.RECORD_VERIFIED: _verified,
    Kind.RECORD_REJECTED: _record_rejected,
    Kind.CONVERGED: _converged,
    Kind.STALLED: _stalled,
}
