"""The inclusion path of one leaf made from leaf hashes that come by once: no tree is held, only the right edge of a few subtrees.

For a producer that needs one proof of a long run. `merkle.Tree` gives any number of them without reading anything again.
"""

from collections.abc import Iterable
from typing import Final, final

from affidavit.crypto.merkle import RootBuilder


@final
class PathBuilder:
    """Takes all leaf hashes of a tree in order, and gives the path of one of them (RFC 9162 section 2.1.3.1)."""

    __slots__ = ("_leaf", "_parts", "_size", "_taken", "_upwards", "index")

    def __init__(self, index: int, size: int) -> None:
        """Begin.

        Args:
            index: The leaf's zero-based position.
            size: How many leaves the tree has.

        Raises:
            ValueError: There is no such leaf.
        """
        if not 0 <= index < size:
            raise ValueError(f"no leaf {index} in a tree of {size}")
        self.index: Final = index
        self._size = size
        self._taken = 0
        self._leaf = b""
        siblings = _siblings(index, size)
        # Where each sibling subtree ends, from the leaf upwards for the path, and in the order of the leaves for reading.
        self._upwards = [(end, RootBuilder()) for _, end in reversed(siblings)]
        self._parts = sorted([*self._upwards, (index + 1, None)], key=lambda part: part[0])

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Take the next leaf hashes.

        Raises:
            ValueError: They are more than the tree has.
        """
        pending = list(leaves)
        while pending:
            if not self._parts:
                raise ValueError(f"more leaves than the {self._size} of the tree")
            end, builder = self._parts[0]
            room = end - self._taken
            piece, pending = pending[:room], pending[room:]
            if builder is None:
                self._leaf = piece[0]
            else:
                builder.extend(piece)
            self._taken += len(piece)
            if self._taken == end:
                del self._parts[0]

    def path(self) -> tuple[bytes, ...]:
        """Return the path, from the leaf upwards.

        Raises:
            ValueError: Leaves are missing.
        """
        if self._taken != self._size:
            raise ValueError(f"{self._taken} leaves of the {self._size} of the tree")
        return tuple(builder.root() for _, builder in self._upwards)

    @property
    def leaf(self) -> bytes:
        """The hash of the leaf itself; empty until it has come by."""
        return self._leaf


def _siblings(index: int, size: int) -> list[tuple[int, int]]:
    """Return start and end of each subtree beside the way from the root down to a leaf."""
    found: list[tuple[int, int]] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + (1 << (end - start - 1).bit_length() - 1)
        if index < middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start = middle
    return found
