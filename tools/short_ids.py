"""The shortest beginnings of ids that still tell them apart, for a screen that has no room for whole ones."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

_LEAST: Final = 8


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return for each id its shortest beginning that no other id has, of 8 letters at least where it has as many.

    A command that is given such a beginning finds the run, for as long as no further one begins like it.
    """
    ordered = sorted(set(ids))
    shared = dict.fromkeys(ordered, 0)
    for one, other in pairwise(ordered):
        # In sorted order, whichever id shares most with another stands next to it.
        common = _common(one, other)
        shared[one], shared[other] = max(shared[one], common), max(shared[other], common)
    return {each: each[: max(_LEAST, shared[each] + 1)] for each in ordered}


def _common(one: str, other: str) -> int:
    """Return how many letters two texts begin with that are the same."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
