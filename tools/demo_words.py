"""What the demo says of a run's events: each from the event itself, and checked where it says more than one event shows."""

from __future__ import annotations

from collections.abc import Mapping

from affidavit.actors.events import Event, Kind
from affidavit.crypto.approval import APPROVED
from affidavit.crypto.failures import AffidavitError


def payments(events: tuple[Event, ...]) -> tuple[Event, Event]:
    """Return the decision that let a payment run, and the refusal of the other, having checked that they are what is said."""
    decisions = [event for event in events if event.kind == Kind.APPROVAL_DECIDED]
    rejected = [event for event in events if event.kind == Kind.ACTION_REJECTED]
    (paid,) = (event for event in events if "approval" in event.detail and event.kind == Kind.ACTION_ADMITTED)
    approved, refused = decisions
    if paid.detail["approval"] != approved.seq or paid.detail["args"] != approved.detail["args"]:
        raise AffidavitError("the payment does not rest on the approval")
    if rejected[-1].call != refused.call or refused.detail["args"] == approved.detail["args"]:
        raise AffidavitError("the other payment was not refused")
    return approved, rejected[-1]


def egress(events: tuple[Event, ...]) -> Event:
    """Return the one decision about a connection, having checked that it was refused."""
    (decision,) = (event for event in events if event.kind == Kind.EGRESS_DECISION)
    if decision.allowed:
        raise AffidavitError("the connection was not refused")
    return decision


def words(event: Event, inputs: Mapping[str, str]) -> tuple[str, str] | None:
    """Return how the screen shows an event; None for the book-keeping between the steps, which is recorded all the same."""
    match event.kind:
        case Kind.SESSION_STARTED:
            return "asked", event.text
        case Kind.ASSISTANT if event.stop_reason == "tool_use":
            return "agent", event.text
        case Kind.APPROVAL_REQUESTED:
            return "waits", f"for a person: {event.action} {inputs[event.tool_use_id]}"
        case Kind.APPROVAL_DECIDED if event.detail["decision"] == APPROVED:
            return "approved", f"by {event.principal}: {event.reason}"
        case Kind.TOOL_RESULT:
            return _result(event)
        case Kind.CONVERGED:
            return "answer", event.text
        case _:
            return None


def _result(event: Event) -> tuple[str, str]:
    told = event.result.removeprefix("refused: ")
    if not event.is_error:
        return "tool", told
    # The tool was admitted and ran: what was refused is its connection, which does not count among the refused actions.
    return ("blocked" if told.startswith("no connection") else "refused"), told
