"""The hashes of the Merkle tree (RFC 9162 section 2.1.1, SHA-256): empty root, leaf and node.

A leaf hashes an event's exact bytes behind a domain tag and their length, so that no other kind of data can
pass for an event. Nothing else in the project hashes into a tree.
"""

from hashlib import sha256
from typing import Final

HASH_SIZE: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()

_LEAF_PREFIX: Final = b"\x00provetrail/event/v1\n"
# Copying a context that has seen the prefix is cheaper than setting one up per node.
_new_node: Final = sha256(b"\x01").copy


def leaf_hash(event: bytes) -> bytes:
    """Return the leaf hash of one event's canonical bytes."""
    return sha256(_LEAF_PREFIX + len(event).to_bytes(8, "big") + event).digest()


def plain_leaf_hash(entry: bytes) -> bytes:
    """Return the leaf hash of RFC 6962 without this format's domain tag, as other logs' test data use it."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node over its two children."""
    context = _new_node()
    context.update(left + right)
    return context.digest()
