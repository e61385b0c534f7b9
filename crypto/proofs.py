"""Merkle paths checked: roots rebuilt from paths (RFC 9162 sections 2.1.3.2 and 2.1.4.2).

Shape first, hashes last: sizes, positions, path lengths and node widths are compared before anything is
hashed. This module never sees the tree that made a path, so that each tests the other.
"""

from collections.abc import Sequence
from typing import Final

from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.hashing import HASH_SIZE, node_hash

_INCLUSION: Final = FailureCode.MERKLE_INCLUSION_INVALID
_CONSISTENCY: Final = FailureCode.MERKLE_CONSISTENCY_INVALID


def inclusion_length(index: int, size: int) -> int:
    """Return how many nodes an inclusion path has for a leaf of a tree; 0 <= index < size."""
    length, last = 0, size - 1
    while last:
        length += (index ^ 1) <= last
        index, last = index >> 1, last >> 1
    return length


def require_path_shape(index: int, size: int, path: Sequence[bytes]) -> None:
    """Check that an inclusion path has the shape that its tree requires.

    Raises:
        VerificationError: `record.index_out_of_range`; `merkle.missing_node` where it is too short;
            `merkle.inclusion_invalid` where it is too long or a node is not 32 bytes.
    """
    if not 0 <= index < size:
        raise VerificationError(
            FailureCode.RECORD_INDEX_OUT_OF_RANGE,
            f"no leaf {index} in a tree of {size}",
            expected=size,
            actual=index,
        )
    wanted = inclusion_length(index, size)
    if len(path) < wanted:
        raise VerificationError(
            FailureCode.MERKLE_MISSING_NODE,
            f"a path of {len(path)} nodes where the tree needs {wanted}",
            expected=wanted,
            actual=len(path),
        )
    if len(path) > wanted:
        raise VerificationError(
            _INCLUSION,
            f"a path of {len(path)} nodes where the tree has {wanted}",
            expected=wanted,
            actual=len(path),
        )
    _require_width(path, _INCLUSION)


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the root that an inclusion path leads to.

    Args:
        leaf: The leaf hash.
        index: Its zero-based position.
        size: How many leaves the tree has.
        path: The sibling hashes, from the leaf upwards.

    Raises:
        VerificationError: As `require_path_shape`; `merkle.inclusion_invalid` for a leaf hash that is none.
    """
    require_path_shape(index, size, path)
    _require_width((leaf,), _INCLUSION)
    node, last = leaf, size - 1
    for sibling in path:
        # At a promoted right edge there is no sibling: climb to where there is one.
        while not index & 1 and index == last:
            index, last = index >> 1, last >> 1
        node = node_hash(sibling, node) if index & 1 else node_hash(node, sibling)
        index, last = index >> 1, last >> 1
    return node


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bytes:
    """Return the leaf hash that the path shows to be in the tree of this root.

    Raises:
        VerificationError: As `require_path_shape`; `merkle.inclusion_invalid` where the root is another.
    """
    found = root_from_inclusion(leaf, index, size, path)
    if found != root:
        raise VerificationError(
            _INCLUSION, "the path does not lead to the signed root", expected=root, actual=found
        )
    return leaf


def verify_consistency_path(
    old_size: int, old_root: bytes, new_size: int, new_root: bytes, path: Sequence[bytes]
) -> bytes:
    """Return the new root, of a tree that the path shows to extend the old one.

    Args:
        old_size: Leaves of the old tree, at least 1: every tree extends the empty one, so that shows nothing.
        old_root: Its root.
        new_size: Leaves of the new tree.
        new_root: Its root.
        path: The hashes of section 2.1.4.1.

    Raises:
        VerificationError: `merkle.consistency_invalid`.
    """
    if old_size < 1:
        raise VerificationError(
            _CONSISTENCY,
            "that a tree extends the empty one shows nothing",
            expected="1 or above",
            actual=old_size,
        )
    if new_size < old_size:
        raise VerificationError(
            _CONSISTENCY,
            f"size {new_size} does not extend size {old_size}",
            expected=f"{old_size} or above",
            actual=new_size,
        )
    _require_width(path, _CONSISTENCY)
    if old_size == new_size:
        if path:
            raise VerificationError(
                _CONSISTENCY, "a path between equal sizes has no nodes", expected=0, actual=len(path)
            )
        _require_equal(new_root, old_root, "two trees of one size have different roots")
        return new_root
    old_found, new_found = _roots_from_consistency(old_size, new_size, old_root, path)
    _require_equal(old_root, old_found, "the path does not lead to the old root")
    _require_equal(new_root, new_found, "the path does not lead to the new root")
    return new_root


def _roots_from_consistency(
    old_size: int, new_size: int, old_root: bytes, path: Sequence[bytes]
) -> tuple[bytes, bytes]:
    node, last = old_size - 1, new_size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    # Where the old tree is a complete subtree of the new one, its root is the first node and is left out.
    nodes = list(path) if node else [old_root, *path]
    if not nodes:
        raise VerificationError(_CONSISTENCY, "a path without nodes")
    old_found = new_found = nodes[0]
    for sibling in nodes[1:]:
        if not last:
            raise VerificationError(_CONSISTENCY, "the path is too long")
        if node & 1 or node == last:
            old_found = node_hash(sibling, old_found)
            new_found = node_hash(sibling, new_found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            new_found = node_hash(new_found, sibling)
        node, last = node >> 1, last >> 1
    if last:
        raise VerificationError(_CONSISTENCY, "the path is too short")
    return old_found, new_found


def _require_width(path: Sequence[bytes], code: FailureCode) -> None:
    for node in path:
        if len(node) != HASH_SIZE:
            raise VerificationError(
                code, f"a hash of {len(node)} bytes", expected=HASH_SIZE, actual=len(node)
            )


def _require_equal(expected: bytes, actual: bytes, detail: str) -> None:
    if expected != actual:
        raise VerificationError(_CONSISTENCY, detail, expected=expected, actual=actual)
