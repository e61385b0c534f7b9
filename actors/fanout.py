"""The tree of delegated children as a flat tuple in spawn order, and how each event moves it.

The rule: a child is said to be sealed or verified only where the signed size reaches its own child.completed.
Pure functions; an event that names no known child leaves the tree as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from affidavit.actors.events import Event


class RecordState(StrEnum):
    """How far a record has come. The order of the members is the only direction it moves in."""

    RECORDING = "recording"
    SEALED = "sealed"
    VERIFIED = "verified"


_ORDER: Final = {state: rank for rank, state in enumerate(RecordState)}


def further(one: RecordState, other: RecordState) -> RecordState:
    """Return whichever state comes later in recording, sealed, verified."""
    return max(one, other, key=_ORDER.__getitem__)


class FanoutState(StrEnum):
    """Where a child stands. Only `RUNNING` is ever left; the first outcome stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FanoutChild:
    """One delegated child.

    Attributes:
        id: The child goal's id, which its own events carry in `goal`.
        parent: The id of the goal that spawned it.
        objective: What it was asked to do.
        state: Running until it folds back into its parent, then done or failed.
        turns: Model turns it has completed.
        result: Its answer once it is done or failed.
        trust: Trust level of its latest admitted or rejected action; empty before the first.
        blocked: How many of its actions were refused.
        seal: How far its own events are covered by the run's signed record.
        completed_seq: The seq of its child.completed, 0 while it runs.
    """

    id: str
    parent: str
    objective: str
    state: FanoutState = FanoutState.RUNNING
    turns: int = 0
    result: str = ""
    trust: str = ""
    blocked: int = 0
    seal: RecordState = RecordState.RECORDING
    completed_seq: int = 0


Children = tuple[FanoutChild, ...]


def with_spawn(children: Children, event: Event) -> Children:
    """Return the tree after child.spawned; a child without an id, or with a known one, adds nothing."""
    if not event.child or any(child.id == event.child for child in children):
        return children
    return (*children, FanoutChild(event.child, event.goal, event.text))


def with_completion(children: Children, event: Event) -> Children:
    """Return the tree after child.completed; the first completion of a child stands."""

    def fold_back(child: FanoutChild) -> FanoutChild:
        if child.state is not FanoutState.RUNNING:
            return child
        state = FanoutState.FAILED if event.is_error else FanoutState.DONE
        return replace(child, state=state, result=event.result, completed_seq=event.seq)

    return _changed(children, event.child, fold_back)


def with_turn(children: Children, goal: str) -> Children:
    """Return the tree after a turn of that goal was completed."""
    return _changed(children, goal, lambda child: replace(child, turns=child.turns + 1))


def with_decision(children: Children, event: Event, *, blocked: bool) -> Children:
    """Return the tree after one of a child's actions was admitted or refused."""
    return _changed(
        children,
        event.goal,
        lambda child: replace(child, trust=event.trust or child.trust, blocked=child.blocked + blocked),
    )


def with_record(children: Children, state: RecordState, size: int) -> Children:
    """Return the tree after the run's record reached a state over events 1..size."""
    return tuple(_covered(child, state, size) for child in children)


def _covered(child: FanoutChild, state: RecordState, size: int) -> FanoutChild:
    seal = further(child.seal, state)
    if child.state is FanoutState.RUNNING or child.completed_seq > size or seal is child.seal:
        return child
    return replace(child, seal=seal)


def _changed(children: Children, goal: str, change: Callable[[FanoutChild], FanoutChild]) -> Children:
    # The run's own events carry no goal, so the tree is only searched for a child's.
    if goal:
        for at, child in enumerate(children):
            if child.id == goal:
                return (*children[:at], change(child), *children[at + 1 :])
    return children
