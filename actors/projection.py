"""The status of a run, folded from its events: what a status line, a governance panel, a resume picker read.

The rule: `reduce` is the only place where a stream becomes status. It is pure and total (no event makes it
fail), so a live client, a replay and a client that comes back compute the same value. It carries no
presentation, reads no log and keeps no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from functools import reduce as fold_left
from itertools import groupby
from typing import Final

from affidavit.actors.callset import CallSet
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.fanout import (
    FanoutChild,
    FanoutState,
    RecordState,
    further,
    with_completion,
    with_decision,
    with_record,
    with_spawn,
    with_turn,
)
from affidavit.actors.ledgers import (
    MAX_EGRESS,
    MAX_LEDGER,
    ActionEntry,
    ActionState,
    EgressEntry,
    after_actions,
    with_egress,
)

__all__ = [
    "MAX_EGRESS",
    "MAX_LEDGER",
    "ActionEntry",
    "ActionState",
    "EgressEntry",
    "FanoutChild",
    "FanoutState",
    "Projection",
    "RecordState",
    "project",
    "reduce",
]

_RECORD_PREFIX: Final = "record."
_NO_USAGE: Final = Usage()
_NO_CALLS: Final = CallSet()


@dataclass(frozen=True, slots=True)
class Projection:
    """The status of a run after some of its events; `Projection()` is that of a run with none.

    Attributes:
        objective: The run's opening goal.
        result: The final answer once converged.
        turns: Model turns completed, the children's included.
        usage: Token cost of those turns, summed.
        record: The badge: recording, then sealed, then verified; it never goes back.
        containment: Trust level of the latest admitted or refused action; empty before the first.
        admitted: Governed actions admitted.
        completed: Governed actions completed.
        rejected: Governed actions refused.
        actions: The most recent actions, newest last, at most `MAX_LEDGER`.
        egress_allowed: Outbound dials permitted.
        egress_blocked: Outbound dials refused.
        egress: The most recent egress decisions, newest last, at most `MAX_EGRESS`.
        fanout: Delegated children in spawn order.
        terminal: Whether the run, or its latest continuation, reached a terminal event.
        err: The stall reason; empty on a clean convergence.
        events: The seq of the last event that is not record.*; the only field an unknown kind moves.
        sealed_through: The size of the largest seal: events 1..n are under a signed root.
        calls: Every call that ever had a row; tells an outcome whose row fell off from one that had none.
    """

    objective: str = ""
    result: str = ""
    turns: int = 0
    usage: Usage = _NO_USAGE
    record: RecordState = RecordState.RECORDING
    containment: str = ""
    admitted: int = 0
    completed: int = 0
    rejected: int = 0
    actions: tuple[ActionEntry, ...] = ()
    egress_allowed: int = 0
    egress_blocked: int = 0
    egress: tuple[EgressEntry, ...] = ()
    fanout: tuple[FanoutChild, ...] = ()
    terminal: bool = False
    err: str = ""
    events: int = 0
    sealed_through: int = 0
    calls: CallSet = _NO_CALLS

    @property
    def sealed_events(self) -> int:
        """How many of `events` are under a signed root: the n of "sealed n/m", equal to m once all are."""
        return min(self.sealed_through, self.events)


_NOTHING: Final = Projection()


def reduce(p: Projection, event: Event) -> Projection:
    """Return the status after one more event.

    Args:
        p: The status so far; it is left as it is.
        event: The next event in seq order, of any kind.
    """
    if event.kind in _ACTIONS:
        return _acted(p, (event,))
    fold = _FOLDS.get(event.kind)
    after = p if fold is None else fold(p, event)
    if after.events >= event.seq or event.kind.startswith(_RECORD_PREFIX):
        return after
    return _at(after, event.seq)


def _at(p: Projection, seq: int) -> Projection:
    """Return the same status with another `events`. Spelled out, since `replace` takes three times as long, for every event."""
    return Projection(
        p.objective,
        p.result,
        p.turns,
        p.usage,
        p.record,
        p.containment,
        p.admitted,
        p.completed,
        p.rejected,
        p.actions,
        p.egress_allowed,
        p.egress_blocked,
        p.egress,
        p.fanout,
        p.terminal,
        p.err,
        seq,
        p.sealed_through,
        p.calls,
    )


def project(events: Iterable[Event], p: Projection = _NOTHING) -> Projection:
    """Return the status of a run after some more events, as folding each with `reduce` does.

    Args:
        events: The next events in seq order.
        p: The status so far; by default that of a run with no events.
    """
    for is_action, alike in groupby(events, lambda event: event.kind in _ACTIONS):
        stretch = tuple(alike)
        p = _acted(p, stretch) if is_action else fold_left(reduce, stretch, p)
    return p


def _started(p: Projection, event: Event) -> Projection:
    return replace(p, objective=event.text)


def _continued(p: Projection, _event: Event) -> Projection:
    return replace(p, terminal=False, err="", result="")


def _turn_completed(p: Projection, event: Event) -> Projection:
    usage = p.usage if event.usage is None else p.usage + event.usage
    return replace(p, turns=p.turns + 1, usage=usage, fanout=with_turn(p.fanout, event.goal))


def _spawned(p: Projection, event: Event) -> Projection:
    return replace(p, fanout=with_spawn(p.fanout, event))


def _folded_back(p: Projection, event: Event) -> Projection:
    return replace(p, fanout=with_completion(p.fanout, event))


def _converged(p: Projection, event: Event) -> Projection:
    return replace(p, terminal=True, result=event.text, err="")


def _stalled(p: Projection, event: Event) -> Projection:
    return replace(p, terminal=True, result="", err=event.err)


def _acted(p: Projection, events: Sequence[Event]) -> Projection:
    """Fold action.* events in one go, since they come in numbers and all but their ledger is counted quickly."""
    states = [_ACTIONS[event.kind] for event in events]
    containment, fanout = p.containment, p.fanout
    for event, state in zip(events, states, strict=True):
        # A completion decides nothing, so it moves neither the posture of the run nor that of a child.
        if state is not ActionState.DONE:
            containment = event.trust or containment
            if event.goal:
                fanout = with_decision(fanout, event, blocked=state is ActionState.BLOCKED)
    actions, calls = after_actions(p.actions, p.calls, zip(events, states, strict=True))
    # Spelled out like `_at`, and with `events`, since these are most of a run's events.
    return Projection(
        p.objective,
        p.result,
        p.turns,
        p.usage,
        p.record,
        containment,
        p.admitted + states.count(ActionState.RUNNING),
        p.completed + states.count(ActionState.DONE),
        p.rejected + states.count(ActionState.BLOCKED),
        actions,
        p.egress_allowed,
        p.egress_blocked,
        p.egress,
        fanout,
        p.terminal,
        p.err,
        max(p.events, events[-1].seq),
        p.sealed_through,
        calls,
    )


def _dialed(p: Projection, event: Event) -> Projection:
    return replace(
        p,
        egress_allowed=p.egress_allowed + event.allowed,
        egress_blocked=p.egress_blocked + (not event.allowed),
        egress=with_egress(p.egress, event),
    )


def _sealed(p: Projection, event: Event) -> Projection:
    return replace(
        _recorded(RecordState.SEALED, p, event), sealed_through=max(p.sealed_through, _size(event))
    )


def _recorded(state: RecordState, p: Projection, event: Event) -> Projection:
    return replace(p, record=further(p.record, state), fanout=with_record(p.fanout, state, _size(event)))


def _size(event: Event) -> int:
    size = event.detail.get("size")
    return size if type(size) is int else 0


_ACTIONS: Final[dict[str, ActionState]] = {
    Kind.ACTION_ADMITTED: ActionState.RUNNING,
    Kind.ACTION_COMPLETED: ActionState.DONE,
    Kind.ACTION_REJECTED: ActionState.BLOCKED,
}
_FOLDS: Final[dict[str, Callable[[Projection, Event], Projection]]] = {
    Kind.SESSION_STARTED: _started,
    Kind.USER_MESSAGE: _continued,
    Kind.TURN_COMPLETED: _turn_completed,
    Kind.CHILD_SPAWNED: _spawned,
    Kind.CHILD_COMPLETED: _folded_back,
    Kind.CONVERGED: _converged,
    Kind.STALLED: _stalled,
    Kind.EGRESS_DECISION: _dialed,
    Kind.RECORD_SEALED: _sealed,
    Kind.RECORD_VERIFIED: partial(_recorded, RecordState.VERIFIED),
}
