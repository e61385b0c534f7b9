"""An event in words: which of its fields a person at a terminal is shown, and how loudly. One small function for each kind.

The rule: nothing is hidden. A kind that is not known here still shows its seq, its kind and its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from affidavit.actors.changed_words import changed_words
from affidavit.actors.events import Event, Kind, Usage
from affidavit.tools import check_words as ground_truth
from affidavit.tools import governance_words as governance
from affidavit.tools.goals import goal_label
from affidavit.tools.terminal import Tone
from affidavit.tools.words import Words, quiet


def words_of(event: Event, arguments: str | None = None) -> Words:
    """Return what to say of an event.

    Args:
        event: The event.
        arguments: The exact arguments of the tool call that it is about, where they are known.
    """
    say = _SAY.get(event.kind)
    if event.kind == Kind.APPROVAL_REQUESTED:
        words = governance.approval_requested(event, arguments)
    else:
        words = Words(event.text) if say is None else say(event)
    # A child's start and end name the child, and not the goal that they are shown to.
    of = "" if event.kind in (Kind.CHILD_SPAWNED, Kind.CHILD_COMPLETED) else event.goal
    return Words(f"[{goal_label(of)}] {words.text}", words.tone, words.folded) if of else words


def usage_words(usage: Usage) -> str:
    """Return a token cost in words."""
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def _started(event: Event) -> Words:
    fork = event.detail.get("fork")
    if not isinstance(fork, Mapping):
        return _asked(event)
    return Words(f"{event.text} (forked from {fork.get('run')} at {fork.get('n')})", Tone.STRONG)


def _asked(event: Event) -> Words:
    return Words(event.text, Tone.STRONG)


def _phase(event: Event) -> Words:
    changed = event.detail.get("changed")
    accepted = f", with {changed_words(map(str, changed))}" if isinstance(changed, list | tuple) else ""
    by = f", by {event.principal}" if event.principal else ""
    return quiet(f"{event.detail.get('phase', '')}{by}{accepted}")


def _turn_started(event: Event) -> Words:
    return quiet(f"turn {event.turn}" + (", to check the answer" if "self_check" in event.detail else ""))


def _assistant(event: Event) -> Words:
    return Words(event.text, Tone.STRONG) if event.text else quiet("(no words)")


def _tool_call(event: Event) -> Words:
    return Words(f"{event.tool} {event.input}", folded=True)


def _tool_result(event: Event) -> Words:
    if event.is_error:
        return Words(f"{event.tool} FAILED: {event.result}", Tone.BAD, folded=True)
    return Words(f"{event.tool} gave {event.result}", folded=True)


def _turn_completed(event: Event) -> Words:
    cost = f", {usage_words(event.usage)}" if event.usage else ""
    return quiet(f"turn {event.turn} ended ({event.stop_reason or 'no reason given'}){cost}")


def _spawned(event: Event) -> Words:
    spec = event.detail.get("spec")
    profile = spec.get("profile") if isinstance(spec, Mapping) else None
    agent = f", {profile}" if isinstance(profile, str) and profile else ""
    model = event.detail.get("model")
    on = f" on {model}" if isinstance(model, str) and model else ""
    return Words(f"child {goal_label(event.child)}{_below(event)}{agent}{on}: {event.text}", folded=True)


def _folded_back(event: Event) -> Words:
    how = "FAILED" if event.is_error else "ended"
    return Words(
        f"child {goal_label(event.child)}{_below(event)} {how}: {event.result}",
        Tone.BAD if event.is_error else Tone.PLAIN,
        folded=True,
    )


def _below(event: Event) -> str:
    """Return which goal a child works for, unless it is the run's own, whose id has no dot."""
    return f" of [{goal_label(event.goal)}]" if "." in event.goal else ""


def _converged(event: Event) -> Words:
    return Words(event.text, Tone.GOOD)


def _stalled(event: Event) -> Words:
    by = f", by {event.principal}" if event.principal else ""
    return Words(f"STALLED ({event.error_class or 'no class'}{by}): {event.err}", Tone.BAD)


_SAY: Final[dict[str, Callable[[Event], Words]]] = {
    Kind.SESSION_STARTED: _started,
    Kind.USER_MESSAGE: _asked,
    Kind.GOAL_PHASE: _phase,
    Kind.TURN_STARTED: _turn_started,
    Kind.ASSISTANT: _assistant,
    Kind.TOOL_CALL: _tool_call,
    Kind.TOOL_RESULT: _tool_result,
    Kind.TURN_COMPLETED: _turn_completed,
    Kind.CHILD_SPAWNED: _spawned,
    Kind.CHILD_COMPLETED: _folded_back,
    Kind.ACTION_ADMITTED: governance.admitted,
    Kind.ACTION_COMPLETED: governance.completed,
    Kind.ACTION_REJECTED: governance.rejected,
    Kind.APPROVAL_DECIDED: governance.approval_decided,
    Kind.BRAKE_ENGAGED: governance.brake_engaged,
    Kind.BRAKE_RELEASED: governance.brake_released,
    Kind.CHECK: ground_truth.checked,
    Kind.OUTCOME: ground_truth.claimed,
    Kind.EGRESS_DECISION: governance.egress,
    Kind.RECORD_SEALED: governance.sealed,
    Kind.RECORD_VERIFIED: governance.verified,
    Kind.RECORD_REJECTED: governance.record_rejected,
    Kind.CONVERGED: _converged,
    Kind.STALLED: _stalled,
}
