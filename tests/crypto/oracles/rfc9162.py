"""RFC 9162 section 2.1 in the words of the RFC: slow, recursive, and sharing no code with the product."""

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


def mth(leaves: list[bytes]) -> bytes:
    """Section 2.1.1, over leaf hashes."""
    if not leaves:
        return sha(b"")
    if len(leaves) == 1:
        return leaves[0]
    k = largest_power_below(len(leaves))
    return sha(b"\x01" + mth(leaves[:k]) + mth(leaves[k:]))


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """Section 2.1.3.1."""
    if len(leaves) == 1:
        return []
    k = largest_power_below(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def proof(m: int, leaves: list[bytes]) -> list[bytes]:
    """Section 2.1.4.1."""
    return _subproof(m, leaves, complete=True)


def _subproof(m: int, leaves: list[bytes], *, complete: bool) -> list[bytes]:
    n = len(leaves)
    if m == n:
        return [] if complete else [mth(leaves)]
    k = largest_power_below(n)
    if m <= k:
        return [*_subproof(m, leaves[:k], complete=complete), mth(leaves[k:])]
    return [*_subproof(m - k, leaves[k:], complete=False), mth(leaves[:k])]
