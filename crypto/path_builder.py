"""Merkle paths made from leaf hashes that come by once: no tree is held, only the right edge of a few subtrees.

For a producer that needs one proof of a long run. `merkle.Tree` gives any number of them without reading anything again.
"""

from collections.abc import Iterable, Sequence
from typing import final

from affidavit.crypto.merkle import RootBuilder

_Range = tuple[int, int]


@final
class PathBuilder:
    """Takes all leaf hashes of a tree in order, and gives a path; made by `inclusion` or `consistency`."""

    __slots__ = ("_builders", "_parts", "_path", "_size", "_taken")

    def __init__(self, ranges: Sequence[_Range], path: Sequence[_Range], size: int) -> None:
        """Use `inclusion` or `consistency`.

        Args:
            ranges: Start and end of subtrees that together are the tree, in any order.
            path: Those of them whose roots are the path, in its order.
            size: How many leaves the tree has.
        """
        self._builders = {where: RootBuilder() for where in ranges}
        self._parts = sorted(ranges)
        self._path = path
        self._size = size
        self._taken = 0

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Take the next leaf hashes.

        Raises:
            ValueError: They are more than the tree has.
        """
        pending = list(leaves)
        while pending:
            if not self._parts:
                raise ValueError(f"more leaves than the {self._size} of the tree")
            start, end = self._parts[0]
            room = end - self._taken
            self._builders[start, end].extend(pending[:room])
            self._taken = min(self._taken + len(pending), end)
            del pending[:room]
            if self._taken == end:
                del self._parts[0]

    def path(self) -> tuple[bytes, ...]:
        """Return the path.

        Raises:
            ValueError: Leaves are missing.
        """
        if self._taken != self._size:
            raise ValueError(f"{self._taken} leaves of the {self._size} of the tree")
        return tuple(self._builders[where].root() for where in self._path)


def inclusion(index: int, size: int) -> PathBuilder:
    """Return what makes the inclusion path of a leaf, from the leaf upwards (RFC 9162 section 2.1.3.1).

    Args:
        index: The leaf's zero-based position.
        size: How many leaves the tree has.

    Raises:
        ValueError: There is no such leaf.
    """
    siblings = sibling_ranges(index, size)
    return PathBuilder([*siblings, (index, index + 1)], siblings[::-1], size)


def sibling_ranges(index: int, size: int) -> list[tuple[int, int]]:
    """Return which leaves each node of an inclusion path stands for, from the root downwards.

    Args:
        index: The leaf's zero-based position.
        size: How many leaves the tree has.

    Returns:
        The first leaf of each, and the one after its last.

    Raises:
        ValueError: There is no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    siblings: list[_Range] = []
    start, end = 0, size
    while end - start > 1:
        middle = _split(start, end)
        if index < middle:
            siblings.append((middle, end))
            end = middle
        else:
            siblings.append((start, middle))
            start = middle
    return siblings


def consistency(old: int, new: int) -> PathBuilder:
    """Return what makes the path from the tree of the first `old` leaves to that of `new` (RFC 9162 section 2.1.4.1).

    Raises:
        ValueError: `old` is 0 or exceeds `new`.
    """
    if not 0 < old <= new:
        raise ValueError(f"no consistency path from size {old} to size {new}")
    siblings: list[_Range] = []
    start, end = 0, new
    while old != end:
        middle = _split(start, end)
        if old <= middle:
            siblings.append((middle, end))
            end = middle
        else:
            siblings.append((start, middle))
            start = middle
    # The last subtree ends where the old tree does. Where it is all of the old tree, its root is known and left out.
    last = (start, end)
    return PathBuilder([*siblings, last], [*([last] if start else []), *siblings[::-1]], new)


def _split(start: int, end: int) -> int:
    """Return where the tree over these leaves has its two halves: after the largest power of two that is not all of it."""
    return start + (1 << (end - start - 1).bit_length() - 1)
