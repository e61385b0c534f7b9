"""The two bounded ledgers of the projection, newest last: recent actions and recent egress decisions.

The rule: a ledger is exactly the tail of what it would be without a bound, so an outcome never brings back a
row that fell off. Pure functions over tuples of frozen rows; nothing here counts events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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


def with_action(rows: Actions, seen: CallSet, event: Event, state: ActionState) -> Actions:
    """Return the action ledger after one action.* event.

    Args:
        rows: The ledger so far.
        seen: Every call that ever had a row.
        event: The action event.
        state: What the event says of the action.

    Returns:
        The ledger with the call's running row resolved, or with a new row where the call never had one. An
        event of a call whose row is resolved already, or fell off, changes nothing.
    """
    if event.call:
        for at in range(len(rows) - 1, -1, -1):
            if rows[at].call == event.call:
                return _with_outcome(rows, at, event, state)
        if event.call in seen:
            return rows
    return (*rows, _entry(event, state))[-MAX_LEDGER:]


def with_egress(rows: Egress, event: Event) -> Egress:
    """Return the egress ledger after one net.egress event."""
    return (*rows, EgressEntry(event.host, event.allowed, event.reason))[-MAX_EGRESS:]


def _entry(event: Event, state: ActionState) -> ActionEntry:
    fault = "" if state is ActionState.RUNNING else event.fault
    return ActionEntry(event.call, event.action, event.trust, state, fault)


def _with_outcome(rows: Actions, at: int, event: Event, state: ActionState) -> Actions:
    row = rows[at]
    if row.state is not ActionState.RUNNING or state is ActionState.RUNNING:
        return rows
    # An outcome may name the action otherwise or not at all; what was admitted is what the admission says.
    resolved = replace(
        row, action=row.action or event.action, trust=row.trust or event.trust, state=state, fault=event.fault
    )
    return (*rows[:at], resolved, *rows[at + 1 :])
