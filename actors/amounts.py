"""What an action may use and has used of a budget: tokens, money and time. Whole numbers, so that sums are exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from affidavit.actors.events import Detail


@dataclass(frozen=True, slots=True)
class Amounts:
    """An amount of each thing that is budgeted.

    Attributes:
        tokens: Model tokens, in and out together.
        cost_micros: Money, in millionths of the policy's currency.
        ms: Milliseconds of work.
    """

    tokens: int = 0
    cost_micros: int = 0
    ms: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        """Return the sum, each thing by itself."""
        return Amounts(self.tokens + other.tokens, self.cost_micros + other.cost_micros, self.ms + other.ms)

    def __bool__(self) -> bool:
        """Whether it is anything at all."""
        return bool(self.tokens or self.cost_micros or self.ms)

    def as_detail(self) -> dict[str, object]:
        """Return the amounts as a payload value, zeros left out."""
        pairs = {"tokens": self.tokens, "cost_micros": self.cost_micros, "ms": self.ms}
        return {name: amount for name, amount in pairs.items() if amount}

    @classmethod
    def read(cls, value: object) -> Amounts:
        """Return the amounts that a payload value holds; what is no whole number from 0 counts as 0."""
        if not value or not isinstance(value, Mapping):
            return NOTHING
        return cls(_count(value.get("tokens")), _count(value.get("cost_micros")), _count(value.get("ms")))


def reserved_by(detail: Detail) -> Amounts:
    """Return what an admission holds back."""
    return Amounts.read(detail.get("reserved"))


def used_by(detail: Detail) -> Amounts:
    """Return what an ended action has used."""
    return Amounts.read(detail.get("used"))


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


NOTHING = Amounts()
