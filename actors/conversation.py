"""The conversation that a mission continues from: a fold of the goal's events, the same live as after a restart.

There is no other progress state. A mission feeds each event it has recorded through `apply`; a resumed one feeds it the whole
log. So what a run knows and what its record says cannot differ. The root goal's conversation holds those of all goals that work
was handed to, and passes on to each the events that bear its id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, final

from affidavit.actors.checks_fold import Verdicts
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.fork_context import begins_with
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
        renewed: The last turn announced before a person last spoke; the goal's steps count from there.
        turn_open: Whether that turn has not completed.
        self_checks: How often the model was asked to check its own answer.
        answered: Whether the open turn has its assistant message.
        stop_reason: Why the last assistant message stopped.
        turn_usage: That message's usage.
        pending: Tool calls without a result, in call order.
        verdicts: The checks of the answer that stands.
        book: What the run's goals share: calls, budgets, open actions, approvals.
        seen: The seq of the last event folded.
        phase: The goal's phase.
        terminal: The standing terminal event.
        goal: The goal's id as its events bear it; empty for the root.
        parent: The id of the goal that handed it its work, as its own events bear it.
        served: The parent's tool call that it works for.
        depth: How many goals are above it.
        folded_back: Whether its end stands with its parent.
        in_flight: The goals that this one waits for, by the tool call that each serves, in call order.
        goals: On the root, every goal that work was handed to, by id, in the order of spawning: none comes before its parent.
    """

    spec: GoalSpec | None = None
    digests: dict[str, object] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    turn: int = 0
    renewed: int = 0
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
    goal: str = ""
    parent: str = ""
    served: str = ""
    depth: int = 0
    folded_back: bool = False
    in_flight: dict[str, str] = field(default_factory=dict)
    goals: dict[str, Conversation] = field(default_factory=dict)
    _order: dict[str, int] = field(default_factory=dict)

    @property
    def last_text(self) -> str:
        """The model's last words: the answer, when the run ends."""
        return next((message.text for message in reversed(self.messages) if message.role == "assistant"), "")

    @property
    def going(self) -> Iterator[Conversation]:
        """On the root, the goals that have not folded back, each after those that it waits for; the root itself comes last."""
        yield from (each for each in reversed(self.goals.values()) if not each.folded_back)
        yield self

    def above(self, child: Conversation) -> Conversation:
        """On the root, return the conversation of the goal that handed a child its work."""
        return self.goals[child.parent] if child.parent else self

    def apply(self, event: Event) -> None:
        """Fold one event of the run, unless it was folded before. To be called on the root."""
        if event.seq:
            if event.seq <= self.seen:
                return
            self.seen = event.seq
        self.book.apply(event)
        edge = _EDGES.get(event.kind)
        if edge is not None:
            edge(self, event)
            return
        of = self.goals.get(event.goal) if event.goal else self
        if of is not None:
            of.fold_own(event)

    def fold_own(self, event: Event) -> None:
        """Fold an event of this very goal. Called by the root."""
        self.verdicts.apply(event)
        own = _OWN.get(event.kind)
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
    c.messages += begins_with(event.detail, event.text)


def _said(c: Conversation, event: Event) -> None:
    """Open the goal anew: what was said stands behind the whole conversation, and an answer to it has not been begun."""
    c.messages.append(Message("user", event.text))
    c.phase, c.terminal = Phase.PENDING, None
    c.turn_open = c.answered = False
    c.self_checks, c.renewed = 0, c.turn


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
    c._order.clear()  # noqa: SLF001  # the class's own steps


def _tool_call(c: Conversation, event: Event) -> None:
    c.pending[event.tool_use_id] = PendingCall(
        event.turn, event.tool_use_id, event.tool, event.input, event.args_digest
    )
    c._order[event.tool_use_id] = len(c._order)  # noqa: SLF001  # the class's own steps
    for index in range(len(c.messages) - 1, -1, -1):
        message = c.messages[index]
        if message.role == "assistant":
            call = ToolCall(event.tool_use_id, event.tool, event.input)
            c.messages[index] = replace(message, tool_calls=(*message.tool_calls, call))
            return


def _tool_result(c: Conversation, event: Event) -> None:
    c.pending.pop(event.tool_use_id, None)
    c.in_flight.pop(event.tool_use_id, None)
    message = Message("tool", event.result, tool_use_id=event.tool_use_id, is_error=event.is_error)
    c.messages.insert(_place(c, event.tool_use_id), message)


def _place(c: Conversation, tool_use_id: str) -> int:
    """Return where a result belongs: results are shown in the order of the calls, in whichever they come."""
    order: dict[str, int] = c._order  # noqa: SLF001  # the class's own steps
    number, at = order.get(tool_use_id, len(order)), len(c.messages)
    while at and (before := c.messages[at - 1]).role == "tool" and order.get(before.tool_use_id, -1) > number:
        at -= 1
    return at


def _turn_completed(c: Conversation, event: Event) -> None:
    c.turn_open = c.turn_open and event.turn < c.turn


def _terminal(c: Conversation, event: Event) -> None:
    c.terminal = event


def _spawned(root: Conversation, event: Event) -> None:
    if not event.child or event.child in root.goals:
        return
    known = _parent(root, event)
    # One whose goal above nobody began can come from another runtime. It answers no call, and ends with the run at the latest.
    above, served = (root, "") if known is None else (known, event.tool_use_id)
    root.goals[event.child] = Conversation(
        spec=_spec(event),
        messages=[Message("user", event.text)],
        book=root.book,
        goal=event.child,
        parent=above.goal,
        served=served,
        depth=above.depth + 1,
    )
    if known is not None:
        known.in_flight[served] = event.child


def _folded_back(root: Conversation, event: Event) -> None:
    child = root.goals.get(event.child)
    if child is not None:
        child.folded_back = True
        root.above(child).in_flight.pop(child.served, None)


def _parent(root: Conversation, event: Event) -> Conversation | None:
    """Return the conversation of the goal that an edge of the tree begins at. The root is named by the run's id there."""
    if not event.goal or (root.spec is not None and event.goal == root.spec.name):
        return root
    return root.goals.get(event.goal)


_Step = Callable[[Conversation, Event], None]

_EDGES: Final[dict[str, _Step]] = {
    Kind.CHILD_SPAWNED: _spawned,
    Kind.CHILD_COMPLETED: _folded_back,
}

_OWN: Final[dict[str, _Step]] = {
    Kind.SESSION_STARTED: _started,
    Kind.USER_MESSAGE: _said,
    Kind.GOAL_PHASE: _phase,
    Kind.TURN_STARTED: _turn_started,
    Kind.ASSISTANT: _assistant,
    Kind.TOOL_CALL: _tool_call,
    Kind.TOOL_RESULT: _tool_result,
    Kind.TURN_COMPLETED: _turn_completed,
    Kind.CONVERGED: _terminal,
    Kind.STALLED: _terminal,
}
