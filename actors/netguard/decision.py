"""What the guard puts on the record, the port through which it does so, and the error of what it refused."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, final

from affidavit.actors.errors import ActorError
from affidavit.actors.events import Event, FaultClass, Kind


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision about one connection.

    Attributes:
        host: The literal address that was about to be dialed; of a name refused before any look-up, the name.
        name: What was asked for, as written.
        port: The port.
        allowed: Whether the dial was permitted.
        reason: Why, in short.
        goal: The goal it belongs to; empty for the run's root goal.
    """

    host: str
    name: str
    port: int
    allowed: bool
    reason: str
    goal: str = ""

    def as_event(self) -> Event:
        """Return it as the event `net.egress`."""
        return Event(
            Kind.EGRESS_DECISION,
            host=self.host,
            allowed=self.allowed,
            reason=self.reason,
            goal=self.goal,
            detail=MappingProxyType({"name": self.name, "port": self.port}),
        )


class Recorder(Protocol):
    """Where decisions are recorded."""

    async def record(self, decision: Decision) -> None:
        """Record one decision and return when it is durable.

        Raises:
            Exception: It could not be recorded. The guard then dials nothing and lets the error through.

        Cancellation: Cancelled means that it was not recorded.
        """
        ...


class EventSink(Protocol):
    """Whatever records events in one append; a session's reporter is one."""

    async def report(self, *events: Event) -> object:
        """Record events and return when they are durable."""
        ...


@final
class ReportingRecorder:
    """Records decisions as events of a run, through the run's own reporter."""

    def __init__(self, reporter: EventSink) -> None:
        """Take the reporter, which stays its owner's."""
        self._reporter = reporter

    async def record(self, decision: Decision) -> None:
        """Record one decision.

        Raises:
            LogError: It could not be recorded.

        Cancellation: Cancelled means that it was not recorded.
        """
        await self._reporter.report(decision.as_event())


class EgressDenied(ActorError):
    """The policy refused a connection, and that stands on the record. Nothing was sent.

    Attributes:
        decision: What was refused and why.
        fault: The fault class, `forbidden`.
        code: `egress_denied`.
    """

    fault: str = FaultClass.FORBIDDEN
    code: str = "egress_denied"

    def __init__(self, decision: Decision) -> None:
        where = f"{_bracketed(decision.host)}:{decision.port}" if decision.port else decision.host
        asked = f" ({decision.name})" if decision.name not in {"", decision.host} else ""
        super().__init__(f"no connection to {where}{asked}: {decision.reason}")
        self.decision = decision


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
