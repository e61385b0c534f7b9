"""How many goals one goal may hand work to.

How deep that may go is a matter of the grant: the last ones are not given the tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from affidavit.actors.deciders.port import Action, Denial, Standing
from affidavit.actors.events import FaultClass

SPAWN_ACTION: Final = "spawn"
DEFAULT_DEPTH: Final = 2
DEFAULT_CHILDREN: Final = 16
MAX_DEPTH: Final = 8
MAX_CHILDREN: Final = 1_000


@dataclass(frozen=True, slots=True)
class FanoutLimit:
    """At most so many children of one goal.

    Attributes:
        limit: The most of them.
    """

    limit: int

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse a delegation beyond the limit."""
        if action.name == SPAWN_ACTION and action.tool_use_id and standing.children >= self.limit:
            reason = f"this goal has handed work to {standing.children} others, which is the most it may"
            return Denial(FaultClass.BUDGET_EXCEEDED, "children", reason)
        return None
