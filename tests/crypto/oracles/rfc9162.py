"""RFC 9162 section 2.1 in the words of the RFC: recursive, and sharing no code with the product.

Where the RFC writes a list of entries D[start:end], a pair of bounds stands here, so that a subtree that occurs
in many trees is hashed once.
"""

import hashlib


def sha(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def largest_power_below(n: int) -> int:
    """The k of the RFC: the largest power of two smaller than n."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k


class Reference:
    """Hashes and paths over the first so many of some leaf hashes."""

    def __init__(self, leaves: list[bytes]) -> None:
        self._leaves = leaves
        self._known: dict[tuple[int, int], bytes] = {}

    def root(self, size: int) -> bytes:
        """Section 2.1.1."""
        return self._mth(0, size)

    def path(self, m: int, size: int) -> list[bytes]:
        """Section 2.1.3.1."""
        return self._path(m, 0, size)

    def proof(self, m: int, size: int) -> list[bytes]:
        """Section 2.1.4.1."""
        return self._subproof(m, 0, size, complete=True)

    def _mth(self, start: int, end: int) -> bytes:
        if (start, end) not in self._known:
            self._known[start, end] = self._hash(start, end)
        return self._known[start, end]

    def _hash(self, start: int, end: int) -> bytes:
        n = end - start
        if n == 0:
            return sha(b"")
        if n == 1:
            return self._leaves[start]
        k = largest_power_below(n)
        return sha(b"\x01" + self._mth(start, start + k) + self._mth(start + k, end))

    def _path(self, m: int, start: int, end: int) -> list[bytes]:
        n = end - start
        if n == 1:
            return []
        k = largest_power_below(n)
        if m < k:
            return [*self._path(m, start, start + k), self._mth(start + k, end)]
        return [*self._path(m - k, start + k, end), self._mth(start, start + k)]

    def _subproof(self, m: int, start: int, end: int, *, complete: bool) -> list[bytes]:
        n = end - start
        if m == n:
            return [] if complete else [self._mth(start, end)]
        k = largest_power_below(n)
        if m <= k:
            return [*self._subproof(m, start, start + k, complete=complete), self._mth(start + k, end)]
        return [*self._subproof(m - k, start + k, end, complete=False), self._mth(start, start + k)]
