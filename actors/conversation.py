"""The conversation that a mission continues from: a fold of the goal's events, the same live as after a restart.

There is no other progress state. A mission feeds each event it has recorded through `apply`; a resumed one feeds it the whole
log. So what a run knows and what its record says cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, final

from affidavit.actors.checks_fold import Verdicts
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.goal import GoalSpec, Phase
from affidavit.actors.models.port import Message, ToolCall
from affidavit.actors.run_book import RunBook

SELF_CHECK: Final = "self_check"
"""Marks a turn.started whose text asks the model to check its own answer."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call on the record that has no result yet.

    Attributes:
        turn: The turn that asked for it.
        id: Its toolUseID.
        name: The tool.
        input: The arguments as text.
        args_digest: What its admission is bound to.
    """

    turn: int
    id: str
    name: str
    input: str
    args_digest: bytes


@final
@dataclass(slots=True)
class Conversation:
    """The state of one goal, advanced by `apply` and read by the mission.

    Attributes:
        spec: The goal, once session.started was seen.
        digests: The parts of the configuration it was last driven with, as far as the record names them.
        messages: What the model is shown, oldest first.
        turn: The last turn announced.
        turn_open: Whether that turn has not completed.
        self_checks: How often the model was asked to check its own answer.
        answered: Whether the open turn has its assistant message.
        stop_reason: Why the last assistant message stopped.
        turn_usage: That message's usage.
        pending: Tool calls without a result, in call order.
        verdicts: The checks of the answer that stands.
        book: What the run's goals share: calls, budgets, open actions, approvals.
        seen: The seq of the last event folded.
        phase: The root goal's phase.
        terminal: The standing terminal event.
    """

    spec: GoalSpec | None = None
    digests: dict[str, object] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    turn: int = 0
    turn_open: bool = False
    self_checks: int = 0
    answered: bool = False
    stop_reason: str = ""
    turn_usage: Usage | None = None
    pending: dict[str, PendingCall] = field(default_factory=dict)
    verdicts: Verdicts = field(default_factory=Verdicts)
    book: RunBook = field(default_factory=RunBook)
    seen: int = 0
    phase: Phase = Phase.PENDING
    terminal: Event | None = None

    @property
    def last_text(self) -> str:
        """The model's last words: the answer, when the run ends."""
        return next((message.text for message in reversed(self.messages) if message.role == "assistant"), "")

    def apply(self, event: Event) -> None:
        """Fold one event, unless it was folded before. Those of child goals only count for what the run shares."""
        if event.seq:
            if event.seq <= self.seen:
                return
            self.seen = event.seq
        self.book.apply(event)
        own = _OWN.get(event.kind)
        if not event.goal:
            self.verdicts.apply(event)
            if own is not None:
                own(self, event)


def fold(events: tuple[Event, ...]) -> Conversation:
    """Return the conversation that a run's events leave."""
    conversation = Conversation()
    for event in events:
        conversation.apply(event)
    return conversation


def _started(c: Conversation, event: Event) -> None:
    c.spec = _spec(event)
    _driven_with(c, event)
    c.messages.append(Message("user", event.text))


def _phase(c: Conversation, event: Event) -> None:
    c.phase = Phase.read(event.detail.get("phase")) or c.phase
    _driven_with(c, event)


def _driven_with(c: Conversation, event: Event) -> None:
    digests = event.detail.get("digests")
    if isinstance(digests, dict):
        c.digests = {**c.digests, **digests}


def _spec(event: Event) -> GoalSpec | None:
    """Read the goal; one that some other program stated in a form of its own cannot be driven, only read."""
    stated = event.detail.get("spec", {"objective": event.text})
    try:
        return GoalSpec.from_detail(stated) if isinstance(stated, dict) else None
    except ValueError:
        return None


def _turn_started(c: Conversation, event: Event) -> None:
    c.turn, c.turn_open, c.answered = event.turn, True, False
    if SELF_CHECK in event.detail:
        c.self_checks += 1
        c.messages.append(Message("user", event.text))


def _assistant(c: Conversation, event: Event) -> None:
    blocks = event.detail.get("blocks", "")
    c.messages.append(Message("assistant", event.text, blocks=blocks if isinstance(blocks, str) else ""))
    c.answered, c.stop_reason, c.turn_usage = True, event.stop_reason, event.usage


def _tool_call(c: Conversation, event: Event) -> None:
    c.pending[event.tool_use_id] = PendingCall(
        event.turn, event.tool_use_id, event.tool, event.input, event.args_digest
    )
    for index in range(len(c.messages) - 1, -1, -1):
        message = c.messages[index]
        if message.role == "assistant":
            call = ToolCall(event.tool_use_id, event.tool, event.input)
            c.messages[index] = replace(message, tool_calls=(*message.tool_calls, call))
            return


def _tool_result(c: Conversation, event: Event) -> None:
    c.pending.pop(event.tool_use_id, None)
    c.messages.append(Message("tool", event.result, tool_use_id=event.tool_use_id, is_error=event.is_error))


def _turn_completed(c: Conversation, event: Event) -> None:
    c.turn_open = c.turn_open and event.turn < c.turn


def _terminal(c: Conversation, event: Event) -> None:
    c.terminal = event


_Step = Callable[[Conversation, Event], None]

_OWN: Final[dict[str, _Step]] = {
    Kind.SESSION_STARTED: _started,
    Kind.GOAL_PHASE: _phase,
    Kind.TURN_STARTED: _turn_started,
    Kind.ASSISTANT: _assistant,
    Kind.TOOL_CALL: _tool_call,
    Kind.TOOL_RESULT: _tool_result,
    Kind.TURN_COMPLETED: _turn_completed,
    Kind.CONVERGED: _terminal,
    Kind.STALLED: _terminal,
}
