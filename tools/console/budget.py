"""What a run may still use, as far as its record says: steps and tokens from the goal as it was stated, the rest as it is used.

A policy's own budgets stand on the record only by their digest, so of money and time it is told what is used and not what is
left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from affidavit.actors.amounts import NOTHING, Amounts, reserved_by, used_by
from affidavit.actors.events import Event, Kind

_KINDS: Final = frozenset(
    {
        *(Kind.SESSION_STARTED, Kind.USER_MESSAGE, Kind.TURN_STARTED),
        *(Kind.ACTION_ADMITTED, Kind.ACTION_COMPLETED),
    }
)


@dataclass(frozen=True, slots=True)
class Budget:
    """The budgets of a run.

    Attributes:
        max_steps: The most turns of the root goal; 0 where the record does not say.
        max_tokens: The most tokens of the root goal's limit; 0 for none.
        steps: Turns of the root goal that have begun since it was last asked for something.
        used: What ended actions have used, as their ends say.
        held: What running actions hold back, by call.
    """

    max_steps: int = 0
    max_tokens: int = 0
    steps: int = 0
    used: Amounts = NOTHING
    held: Mapping[int, Amounts] = field(default_factory=dict)

    @property
    def reserved(self) -> Amounts:
        """What running actions hold back, together."""
        return sum(self.held.values(), NOTHING)

    @property
    def tokens_left(self) -> int:
        """How many tokens are neither used nor held back; meaningful where there is a limit."""
        return max(self.max_tokens - self.used.tokens - self.reserved.tokens, 0)


def with_event(budget: Budget, event: Event) -> Budget:
    """Return the budgets after one more event."""
    if event.kind not in _KINDS:
        return budget
    match event.kind:
        case Kind.SESSION_STARTED:
            spec = event.detail.get("spec")
            stated = spec if isinstance(spec, Mapping) else {}
            return replace(
                budget,
                max_steps=_count(stated.get("max_steps")),
                max_tokens=_count(stated.get("max_tokens")),
                steps=0,
            )
        case Kind.USER_MESSAGE:
            return replace(budget, steps=0)
        case Kind.TURN_STARTED if not event.goal:
            return replace(budget, steps=budget.steps + 1)
        case Kind.ACTION_ADMITTED if held := reserved_by(event.detail):
            return replace(budget, held={**budget.held, event.call: held})
        case Kind.ACTION_COMPLETED:
            return _ended(budget, event)
        case _:
            return budget


def _ended(budget: Budget, event: Event) -> Budget:
    held = budget.held.get(event.call, NOTHING)
    used = used_by(event.detail)
    if not used and not held:
        return budget
    left = {call: amounts for call, amounts in budget.held.items() if call != event.call}
    return replace(budget, used=budget.used + used, held=left)


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
