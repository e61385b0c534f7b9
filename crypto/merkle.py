"""The Merkle tree of RFC 9162: grown by appending, asked for roots and proofs at any size it has had.

`Tree` keeps every complete node, one byte array per level, so a proof is a look-up. `RootBuilder` keeps only
the right edge, for a reader that needs one root. Neither verifies anything: `proofs` does, independently.
"""

from collections.abc import Iterable
from typing import Final, final

from affidavit.crypto.hashing import EMPTY_ROOT, HASH_SIZE, node_hash, subtree_root

_CHUNK: Final = 1024


@final
class Tree:
    """An append-only tree over leaf hashes."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]

    @property
    def size(self) -> int:
        """How many leaves the tree has."""
        return len(self._levels[0]) // HASH_SIZE

    def append(self, leaf: bytes) -> int:
        """Add a leaf hash and return its zero-based index.

        Raises:
            ValueError: Where the hash is not 32 bytes.
        """
        if len(leaf) != HASH_SIZE:
            raise ValueError(f"a leaf hash has {HASH_SIZE} bytes, not {len(leaf)}")
        index = self.size
        node, level, position = leaf, 0, index
        self._levels[0] += node
        while position & 1:
            node = node_hash(self._complete(level, position - 1), node)
            level += 1
            position >>= 1
            if level == len(self._levels):
                self._levels.append(bytearray())
            self._levels[level] += node
        return index

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first `size` leaves, all of them by default.

        Raises:
            ValueError: Where the tree never had that size.
        """
        size = self._known_size(size)
        return self._edge(0, size) if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int | None = None) -> tuple[bytes, ...]:
        """Return the inclusion path of one leaf in the tree of `size` leaves (RFC 9162 section 2.1.3.1).

        Raises:
            ValueError: Where there is no such leaf or the tree never had that size.
        """
        size = self._known_size(size)
        if not 0 <= index < size:
            raise ValueError(f"no leaf {index} in a tree of {size}")
        path, level, last = [], 0, size - 1
        while last:
            if index ^ 1 <= last:
                path.append(self._node(level, index ^ 1, size))
            index, last, level = index >> 1, last >> 1, level + 1
        return tuple(path)

    def consistency(self, old: int, new: int | None = None) -> tuple[bytes, ...]:
        """Return the path from the tree of `old` leaves to that of `new` (RFC 9162 section 2.1.4.1).

        Raises:
            ValueError: Where `old` is 0, exceeds `new`, or the tree never had that size.
        """
        new = self._known_size(new)
        if not 0 < old <= new:
            raise ValueError(f"no consistency path from size {old} to size {new}")
        if old == new:
            return ()
        level, node, last = 0, old - 1, new - 1
        while node & 1:
            node, last, level = node >> 1, last >> 1, level + 1
        path = [self._node(level, node, new)] if node else []
        while last:
            if node & 1:
                path.append(self._node(level, node - 1, new))
            elif node < last:
                path.append(self._node(level, node + 1, new))
            node, last, level = node >> 1, last >> 1, level + 1
        return tuple(path)

    def _known_size(self, size: int | None) -> int:
        if size is None:
            return self.size
        if not 0 <= size <= self.size:
            raise ValueError(f"the tree has {self.size} leaves, not {size}")
        return size

    def _complete(self, level: int, position: int) -> bytes:
        start = position * HASH_SIZE
        return bytes(self._levels[level][start : start + HASH_SIZE])

    def _node(self, level: int, position: int, size: int) -> bytes:
        if (position + 1) << level <= size:
            return self._complete(level, position)
        return self._edge(position << level, size)

    def _edge(self, start: int, size: int) -> bytes:
        # The ragged right edge from leaf `start`: complete subtrees, smallest last, folded from the right.
        rest, end, folded = size - start, size, b""
        for level in range(rest.bit_length()):
            if rest >> level & 1:
                end -= 1 << level
                subtree = self._complete(level, end >> level)
                folded = node_hash(subtree, folded) if folded else subtree
        return folded


@final
class Frontier:
    """The roots of complete subtrees along the right edge, merged as they pair up.

    Takes the roots of subtrees that all have one size, a power of two, and at last one that may be smaller.
    """

    __slots__ = ("_pushed", "_stack")

    def __init__(self) -> None:
        self._pushed = 0
        # Sizes fall by powers of two.
        self._stack: list[bytes] = []

    def push(self, root: bytes) -> None:
        """Add the root of the next complete subtree."""
        position = self._pushed
        while position & 1:
            root = node_hash(self._stack.pop(), root)
            position >>= 1
        self._stack.append(root)
        self._pushed += 1

    def root(self, last: bytes | None = None) -> bytes:
        """Return the root of all that was added, and of a last, smaller subtree where there is one."""
        edge = self._stack if last is None else [*self._stack, last]
        if not edge:
            return EMPTY_ROOT
        root = edge[-1]
        for node in edge[-2::-1]:
            root = node_hash(node, root)
        return root


@final
class RootBuilder:
    """Folds leaf hashes into one root, in memory that grows with the logarithm of their number."""

    __slots__ = ("_chunk", "_chunks", "_frontier")

    def __init__(self) -> None:
        self._chunk: list[bytes] = []
        self._chunks = 0
        self._frontier = Frontier()

    @property
    def size(self) -> int:
        """How many leaves were added."""
        return self._chunks * _CHUNK + len(self._chunk)

    def add(self, leaf: bytes) -> None:
        """Add the next leaf hash."""
        self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaf hashes in their order."""
        self._chunk += leaves
        while len(self._chunk) >= _CHUNK:
            self._frontier.push(subtree_root(self._chunk[:_CHUNK]))
            del self._chunk[:_CHUNK]
            self._chunks += 1

    def root(self) -> bytes:
        """Return the root over the leaves added so far; more may be added afterwards."""
        return self._frontier.root(subtree_root(self._chunk) if self._chunk else None)
