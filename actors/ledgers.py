"""The two bounded ledgers of the projection, newest last: recent actions and recent egress decisions.

The rule: a ledger is exactly the tail of what it would be without a bound, so an outcome never brings back a
row that fell off. Pure functions over tuples of frozen rows; nothing here counts events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from affidavit.actors.callset import CallSet
from affidavit.actors.events import Event

MAX_LEDGER: Final = 64
MAX_EGRESS: Final = 64


class ActionState(StrEnum):
    """Where one governed action stands. Only `RUNNING` is ever left; the first outcome stands."""

    RUNNING = "running"
    DONE = "done"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class ActionEntry:
    """One governed action in the ledger.

    Attributes:
        call: Pairs an admission with its outcome; 0 for none, and then every event has a row of its own.
        action: The governed action's name; empty when none was recorded.
        trust: The trust level it ran under.
        state: Running once admitted, done once completed, blocked once refused.
        fault: Fault of a blocked or failed action, empty otherwise.
    """

    call: int
    action: str
    trust: str
    state: ActionState
    fault: str = ""


@dataclass(frozen=True, slots=True)
class EgressEntry:
    """One outbound-network decision in the ledger.

    Attributes:
        host: The resolved literal address it concerned.
        allowed: Whether the dial was permitted.
        reason: Why, in short.
    """

    host: str
    allowed: bool
    reason: str


Actions = tuple[ActionEntry, ...]
Egress = tuple[EgressEntry, ...]


def after_actions(
    rows: Actions, seen: CallSet, events: Iterable[tuple[Event, ActionState]]
) -> tuple[Actions, CallSet]:
    """Return the action ledger after some action.* events, and every call that ever had a row by then.

    Args:
        rows: The ledger so far.
        seen: Every call that ever had a row.
        events: The action events in order, each with what it says of its action.

    Returns:
        The ledger with the calls' running rows resolved, and new rows where a call never had one. An event of a call whose row is
        resolved already, or fell off, changes nothing.
    """
    # Cut at the end alone: what would have fallen off on the way does so then, whatever has become of it.
    grown = list(rows)
    for event, state in events:
        if event.call:
            at = _row_of(grown, event.call)
            if at is not None:
                grown[at] = _with_outcome(grown[at], event, state)
                continue
            if event.call in seen:
                continue
            seen = seen.add(event.call)
        grown.append(_entry(event, state))
    return tuple(grown[-MAX_LEDGER:]), seen


def _row_of(rows: list[ActionEntry], call: int) -> int | None:
    # From the end, where what is under way stands.
    for at in range(len(rows) - 1, -1, -1):
        if rows[at].call == call:
            return at
    return None


def with_egress(rows: Egress, event: Event) -> Egress:
    """Return the egress ledger after one net.egress event."""
    return (*rows, EgressEntry(event.host, event.allowed, event.reason))[-MAX_EGRESS:]


def _entry(event: Event, state: ActionState) -> ActionEntry:
    fault = "" if state is ActionState.RUNNING else event.fault
    return ActionEntry(event.call, event.action, event.trust, state, fault)


def _with_outcome(row: ActionEntry, event: Event, state: ActionState) -> ActionEntry:
    if row.state is not ActionState.RUNNING or state is ActionState.RUNNING:
        return row
    # An outcome may name the action otherwise or not at all; what was admitted is what the admission says.
    return ActionEntry(row.call, row.action or event.action, row.trust or event.trust, state, event.fault)
