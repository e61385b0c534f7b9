"""A decision against a call is final for that call, whatever the rules that asked for it say by now."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.deciders.port import Action, Denial, Standing
from affidavit.actors.events import FaultClass
from affidavit.crypto.approval import APPROVED, REFUSED


@dataclass(frozen=True, slots=True)
class RefusalStands:
    """Refuses a call that a person has refused, or that nobody approved in time.

    A run may be resumed under a changed policy that asks for no approval any more; what was decided stands all the same.
    """

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse what was decided against."""
        approval = standing.approval
        if approval is None or approval.decision in ("", APPROVED):
            return None
        if approval.decision == REFUSED:
            why = f": {approval.reason}" if approval.reason else ""
            return Denial(
                FaultClass.NEEDS_APPROVAL, approval.decision, f"{approval.principal} refused it{why}"
            )
        return Denial(FaultClass.NEEDS_APPROVAL, approval.decision, "nobody approved it in time")
