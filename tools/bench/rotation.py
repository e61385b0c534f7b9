"""Many cases measured in one run: each once in every round, in an order that turns, so that none has the best place."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping


def rotate(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return what each case said in each round.

    Args:
        cases: By name; each does its work and returns what it took.
        rounds: How many.
    """
    taken: dict[str, list[float]] = {name: [] for name in cases}
    names = list(cases)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            taken[name].append(cases[name]())
    return taken


def ratio(ours: list[float], baseline: list[float]) -> float:
    """Return the median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(ours, baseline, strict=True))
