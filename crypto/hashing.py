"""The hashes of the Merkle tree (RFC 9162 section 2.1.1, SHA-256): empty root, leaf and node.

A leaf hashes an event's exact bytes behind a domain tag and their length, so that no other kind of data can
pass for an event. Nothing else in the project hashes into a tree.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

HASH_SIZE: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()

_LEAF_PREFIX: Final = b"\x00provetrail/event/v1\n"
_REMEMBERED_LENGTHS: Final = 4096
# Copying a context that has seen the prefix is cheaper than setting one up per node.
_new_node: Final = sha256(b"\x01").copy


class _Prefixes(dict[int, bytes]):
    """What stands before an event of a given length in its leaf: made once for each length that recurs."""

    def __missing__(self, length: int) -> bytes:
        prefix = _LEAF_PREFIX + length.to_bytes(8, "big")
        if length < _REMEMBERED_LENGTHS:
            self[length] = prefix
        return prefix


_prefixes: Final = _Prefixes()


def leaf_hash(event: bytes) -> bytes:
    """Return the leaf hash of one event's canonical bytes."""
    return sha256(_prefixes[len(event)] + event).digest()


def leaf_hashes(events: Sequence[bytes]) -> list[bytes]:
    """Return the leaf hash of each of some events, in their order."""
    prefixes = map(_prefixes.__getitem__, map(len, events))
    return [sha256(prefix + event).digest() for prefix, event in zip(prefixes, events, strict=True)]


def plain_leaf_hash(entry: bytes) -> bytes:
    """Return the leaf hash of RFC 6962 without this format's domain tag, as other logs' test data use it."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node over its two children."""
    context = _new_node()
    context.update(left + right)
    return context.digest()


def subtree_root(leaves: list[bytes]) -> bytes:
    """Return the root over some leaf hashes, at least one: that of the recursive tree of RFC 9162."""
    level, new_node = leaves, _new_node
    while len(level) > 1:
        above: list[bytes] = []
        append, pairs = above.append, iter(level)
        for left, right in zip(pairs, pairs, strict=False):
            context = new_node()
            context.update(left + right)
            append(context.digest())
        if len(level) & 1:
            # An odd last node is promoted, which gives the tree that the RFC splits from above.
            append(level[-1])
        level = above
    return level[0]
