"""The budgets: steps, tokens, money and time. What an action may use at most is held back before it begins, and settled after.

A run has one pool, however many goals share it: `Standing.spent` counts what all of them used and hold back. What does not fit
only because of what others hold back is not refused: they seldom use all of it, so it waits until they have ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.amounts import Amounts
from affidavit.actors.deciders.port import Action, Denial, Later, Standing, Trim
from affidavit.actors.events import FaultClass


@dataclass(frozen=True, slots=True)
class StepBudget:
    """At most so many model turns of one goal, counted anew each time a person has spoken.

    Attributes:
        limit: The most turns.
    """

    limit: int

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse a model call for a turn beyond the limit; another attempt at the same turn costs no step."""
        if action.is_model_call and action.turn - action.renewed > self.limit:
            return _exceeded("steps", f"the budget of {self.limit} model turns is used up")
        return None


@dataclass(frozen=True, slots=True)
class SharedStepBudget:
    """At most so many model turns of all goals of a run together, counted anew each time a person has spoken.

    Attributes:
        limit: The most turns.
    """

    limit: int

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse a model call that would begin a turn beyond the limit."""
        if action.is_model_call and action.opens_turn and standing.turns >= self.limit:
            return _exceeded("steps", f"the run's budget of {self.limit} model turns is used up")
        return None


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """At most so many tokens, in and out together.

    Attributes:
        limit: The most tokens; 0 for no limit.
    """

    limit: int

    def decide(self, action: Action, standing: Standing) -> Denial | Later | None:
        """Refuse an action whose reservation would not fit."""
        need, spent = action.reserve.tokens, standing.spent.tokens
        if not self.limit or not need or spent + need <= self.limit:
            return None
        used = spent - standing.held.tokens
        if used + need <= self.limit:
            return Later()
        return _exceeded("tokens", f"{used} of {self.limit} tokens are used and this call may need {need}")


@dataclass(frozen=True, slots=True)
class CostBudget:
    """At most so much money.

    Attributes:
        limit_micros: The most, in millionths of the currency.
        currency: Its name.
    """

    limit_micros: int
    currency: str

    def decide(self, action: Action, standing: Standing) -> Denial | Later | None:
        """Refuse an action whose reservation would not fit."""
        need, spent = action.reserve.cost_micros, standing.spent.cost_micros
        used = spent - standing.held.cost_micros
        if need and used + need > self.limit_micros:
            return _exceeded(
                "cost",
                f"{_money(used)} of {_money(self.limit_micros)} {self.currency} are used and this call may cost "
                f"{_money(need)}",
            )
        return Later() if need and spent + need > self.limit_micros else None


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """At most so much time at work, summed over all actions. Waiting for a person costs none.

    Attributes:
        limit_ms: The most, in milliseconds.
    """

    limit_ms: int

    def decide(self, action: Action, standing: Standing) -> Denial | Later | Trim | None:
        """Hold back the action's own limit of time, or what is left if that is less; refuse once nothing is left."""
        left = self.limit_ms - standing.spent.ms
        if left <= 0 < left + standing.held.ms:
            return Later()
        if left <= 0:
            return _exceeded("time", f"the budget of {self.limit_ms / 1000:g} s of work is used up")
        reserve = action.reserve
        own = reserve.ms or action.limit_ms
        return Trim(Amounts(reserve.tokens, reserve.cost_micros, min(own or left, left)))


def _exceeded(code: str, reason: str) -> Denial:
    return Denial(FaultClass.BUDGET_EXCEEDED, code, reason)


def _money(micros: int) -> str:
    return f"{micros / 1_000_000:.6f}".rstrip("0").rstrip(".") or "0"
