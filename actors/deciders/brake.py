"""The brake: the kill switch that a person pulls, and the breakers that trip by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.deciders.port import Action, Denial, Standing
from affidavit.actors.events import FaultClass


@dataclass(frozen=True, slots=True)
class Brake:
    """Refuses everything once somebody has pulled the brake."""

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse, whatever it is, while the brake is on."""
        if standing.brake is None:
            return None
        return Denial(FaultClass.FORBIDDEN, "brake", f"the brake is on: {standing.brake}")


@dataclass(frozen=True, slots=True)
class RepetitionBreaker:
    """Refuses a tool call that its goal repeats too often.

    Attributes:
        most: How often the same tool may be asked for with the same arguments among the goal's last calls.
    """

    most: int

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse the repetition beyond the most; other calls go on."""
        if not action.tool_use_id or standing.repeats <= self.most:
            return None
        return Denial(
            FaultClass.FORBIDDEN,
            "breaker_repetition",
            f"{action.name!r} was asked for with the same arguments {standing.repeats} times, and {self.most} are allowed",
        )


@dataclass(frozen=True, slots=True)
class FailureBreaker:
    """Refuses everything once too many of the last tool calls have failed.

    Attributes:
        failures: So many failures trip it,
        of: among so many last calls.
    """

    failures: int
    of: int

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse, whatever it is, once the breaker has tripped."""
        failed = sum(standing.endings[-self.of :])
        if failed < self.failures:
            return None
        return Denial(
            FaultClass.FORBIDDEN,
            "breaker_failures",
            f"{failed} of the last {self.of} tool calls have failed, and {self.failures} stop the run",
        )
