"""What a run may still use, as its record says: the goal's own limits, the budget of its policy, what is used and held back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from affidavit.actors.amounts import NOTHING, Amounts, reserved_by, used_by
from affidavit.actors.events import Event, Kind

_KINDS: Final = frozenset(
    {
        *(Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.USER_MESSAGE, Kind.TURN_STARTED),
        *(Kind.ACTION_ADMITTED, Kind.ACTION_COMPLETED),
    }
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a policy gives a run, all its goals together; 0 for no limit.

    Attributes:
        steps: Model turns.
        amounts: Tokens, money and time.
        currency: What the money is in.
    """

    steps: int = 0
    amounts: Amounts = NOTHING
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """The budgets of a run.

    Attributes:
        max_steps: The most turns of the root goal; 0 where the record does not say.
        max_tokens: The most tokens of the root goal's limit; 0 for none.
        limits: The budget of its policy.
        steps: Turns of the root goal that have begun since it was last asked for something.
        all_steps: Those of all its goals together.
        used: What ended actions have used, as their ends say.
        held: What running actions hold back, by call.
    """

    max_steps: int = 0
    max_tokens: int = 0
    limits: Limits = Limits()
    steps: int = 0
    all_steps: int = 0
    used: Amounts = NOTHING
    held: Mapping[int, Amounts] = field(default_factory=dict)

    @property
    def reserved(self) -> Amounts:
        """What running actions hold back, together."""
        return sum(self.held.values(), NOTHING)

    @property
    def tokens(self) -> int:
        """The limit of tokens: the goal's or the policy's, whichever is less; 0 for none."""
        stated = [limit for limit in (self.max_tokens, self.limits.amounts.tokens) if limit]
        return min(stated, default=0)

    @property
    def tokens_left(self) -> int:
        """How many tokens are neither used nor held back; meaningful where there is a limit."""
        return max(self.tokens - self.used.tokens - self.reserved.tokens, 0)

    @property
    def left(self) -> Amounts:
        """What is neither used nor held back of the policy's money and time; meaningful where there is a limit."""
        limits, gone = self.limits.amounts, self.used + self.reserved
        return Amounts(
            self.tokens_left, max(limits.cost_micros - gone.cost_micros, 0), max(limits.ms - gone.ms, 0)
        )


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
                limits=_limits(event),
                steps=0,
                all_steps=0,
            )
        case Kind.GOAL_PHASE if not event.goal and "digests" in event.detail:
            return replace(budget, limits=_limits(event))
        case Kind.USER_MESSAGE:
            return replace(budget, steps=0, all_steps=0)
        case Kind.TURN_STARTED:
            return replace(budget, steps=budget.steps + (not event.goal), all_steps=budget.all_steps + 1)
        case Kind.ACTION_ADMITTED if held := reserved_by(event.detail):
            return replace(budget, held={**budget.held, event.call: held})
        case Kind.ACTION_COMPLETED:
            return _ended(budget, event)
        case _:
            return budget


def _limits(event: Event) -> Limits:
    stated = event.detail.get("budget")
    if not isinstance(stated, Mapping):
        return Limits()
    currency = stated.get("currency")
    return Limits(
        _count(stated.get("steps")), Amounts.read(stated), currency if isinstance(currency, str) else ""
    )


def _ended(budget: Budget, event: Event) -> Budget:
    held = budget.held.get(event.call, NOTHING)
    used = used_by(event.detail)
    if not used and not held:
        return budget
    left = {call: amounts for call, amounts in budget.held.items() if call != event.call}
    return replace(budget, used=budget.used + used, held=left)


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
