"""Trust against containment: the less an action's work is trusted, the more strongly it must be held. Never lowered."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.containment.levels import meets, required
from affidavit.actors.deciders.port import Action, Denial, Standing
from affidavit.actors.events import FaultClass


@dataclass(frozen=True, slots=True)
class ContainmentGate:
    """Refuses what would run less contained than its trust asks for."""

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse an action whose containment does not meet what its trust requires; what does not exist is another's affair."""
        need = required(action.trust)
        if not action.known or meets(action.containment, need):
            return None
        return Denial(
            FaultClass.FORBIDDEN,
            "containment_insufficient",
            f"{action.name!r} is {action.trust} and needs containment {need}, and there is only {action.containment}",
        )
