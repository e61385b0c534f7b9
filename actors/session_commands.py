"""The frozen commands that a session's mailbox carries."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.crew import Stop
from affidavit.actors.events import Event
from affidavit.actors.mailbox import Reply


@dataclass(frozen=True, slots=True)
class SealRun:
    """Seal everything recorded so far; the answer is the record.sealed event."""

    reply: Reply[Event]


@dataclass(frozen=True, slots=True)
class CancelRun:
    """End the run as cancelled; the answer is its terminal event.

    Attributes:
        principal: Who asks.
        reason: Why.
        reply: Where the answer goes.
    """

    principal: str
    reason: str
    reply: Reply[Event]


@dataclass(frozen=True, slots=True)
class CancelGoal:
    """End one goal that work was handed to; the answer is its child.completed event.

    Attributes:
        goal: Its id.
        stop: Who asks, and why.
        reply: Where the answer goes.
    """

    goal: str
    stop: Stop
    reply: Reply[Event]


@dataclass(frozen=True, slots=True)
class SealDue:
    """A terminal event was recorded; seal it. Nobody waits for an answer."""


@dataclass(frozen=True, slots=True)
class SignDue:
    """A going run has recorded so much that no seal covers; sign it, unchecked. Nobody waits for an answer."""


@dataclass(frozen=True, slots=True)
class InboxDue:
    """Others may have asked for something; look, carry it out and answer it. Nobody waits for an answer here."""


@dataclass(frozen=True, slots=True)
class AttendInbox:
    """As `InboxDue`, for somebody who waits until it is done; the answer is how many events the run holds then."""

    reply: Reply[int]


Command = SealRun | CancelRun | CancelGoal | SealDue | SignDue | InboxDue | AttendInbox
