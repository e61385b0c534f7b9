"""The tree against the RFC's own words, and its proofs against our verifier, for every small size."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import Tree
from affidavit.crypto.hashing import EMPTY_ROOT, plain_leaf_hash
from affidavit.crypto.merkle import RootBuilder
from affidavit.crypto.proofs import (
    inclusion_length,
    root_from_inclusion,
    verify_consistency_path,
    verify_inclusion,
)
from tests.crypto.oracles.rfc9162 import Reference
from tests.crypto.samples import code_of

SIZES = 300
LEAVES = [plain_leaf_hash(str(index).encode()) for index in range(SIZES)]


def grown(size: int) -> Tree:
    """The tree over the first leaves."""
    tree = Tree()
    for leaf in LEAVES[:size]:
        tree.append(leaf)
    return tree


WHOLE = grown(SIZES)
REFERENCE = Reference(LEAVES)


def test_roots_and_paths_are_those_of_the_rfc() -> None:
    """For every size and index, root and inclusion path equal the recursive definition."""
    for size in range(SIZES + 1):
        assert WHOLE.root(size) == REFERENCE.root(size)
        for index in range(size):
            path = WHOLE.inclusion(index, size)
            assert list(path) == REFERENCE.path(index, size)
            assert len(path) == inclusion_length(index, size)


def test_consistency_paths_are_those_of_the_rfc() -> None:
    """For every pair of sizes, the path equals the recursive definition and verifies."""
    for new in range(1, SIZES + 1):
        for old in range(1, new + 1):
            path = WHOLE.consistency(old, new)
            assert list(path) == REFERENCE.proof(old, new)
            root = WHOLE.root(new)
            assert verify_consistency_path(old, WHOLE.root(old), new, root, path) == root


def test_every_inclusion_path_verifies() -> None:
    """What the tree makes, the verifier accepts, for every size and index."""
    for size in range(1, SIZES + 1):
        root = WHOLE.root(size)
        for index in range(size):
            path = WHOLE.inclusion(index, size)
            assert verify_inclusion(LEAVES[index], index, size, path, root) == LEAVES[index]


def test_a_path_holds_at_one_index_of_one_size_only() -> None:
    """A path moved to another index, or to a size of another shape, never leads to the root."""
    limit = min(SIZES, 24)
    for size in range(1, limit):
        root = WHOLE.root(size)
        for index in range(size):
            path = WHOLE.inclusion(index, size)
            for other in range(size):
                accepted = code_of(verify_inclusion, LEAVES[index], other, size, path, root) is None
                assert accepted == (other == index)


def test_a_consistency_path_refuses_other_roots_and_sizes() -> None:
    """No other old size, and neither root changed, passes with a path that was made for one pair."""
    limit = min(SIZES, 20)
    for new in range(2, limit):
        for old in range(1, new):
            path, roots = WHOLE.consistency(old, new), (WHOLE.root(old), WHOLE.root(new))
            for wrong in (0, old - 1, new + 1):
                assert code_of(verify_consistency_path, wrong, roots[0], new, roots[1], path) is not None
            assert code_of(verify_consistency_path, old, EMPTY_ROOT, new, roots[1], path) is not None
            assert code_of(verify_consistency_path, old, roots[0], new, EMPTY_ROOT, path) is not None


@given(st.data())
def test_a_changed_node_never_verifies(data: st.DataObject) -> None:
    """Any bit of any node of an inclusion path matters."""
    size = data.draw(st.integers(2, SIZES))
    index = data.draw(st.integers(0, size - 1))
    path = list(WHOLE.inclusion(index, size))
    place = data.draw(st.integers(0, len(path) - 1))
    bit = data.draw(st.integers(0, 255))
    node = bytearray(path[place])
    node[bit // 8] ^= 1 << bit % 8
    path[place] = bytes(node)
    root = WHOLE.root(size)
    assert code_of(verify_inclusion, LEAVES[index], index, size, path, root) == "merkle.inclusion_invalid"


@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 2047, 2048, 2049, 5 * 1024, 5 * 1024 + 3])
def test_the_root_builder_agrees_around_its_chunks(size: int) -> None:
    """A root folded chunk by chunk is the tree's root, at and around the chunk's edges."""
    tree, builder = Tree(), RootBuilder()
    for index in range(size):
        leaf = plain_leaf_hash(index.to_bytes(4, "big"))
        tree.append(leaf)
        builder.add(leaf)
    assert builder.size == size
    assert builder.root() == tree.root()
    assert builder.root() == tree.root(), "asking for the root changes nothing"


def test_a_tree_refuses_what_it_never_had() -> None:
    """Sizes, indexes and hashes out of range are errors of the caller."""
    tree = grown(3)
    for wrong in (
        lambda: tree.root(4),
        lambda: tree.root(-1),
        lambda: tree.inclusion(3),
        lambda: tree.inclusion(-1),
    ):
        with pytest.raises(ValueError, match="tree"):
            wrong()
    for old, new in ((0, 3), (3, 2), (1, 4)):
        with pytest.raises(ValueError, match=r"size|leaves"):
            tree.consistency(old, new)
    with pytest.raises(ValueError, match="32 bytes"):
        tree.append(b"short")


def test_older_roots_and_paths_stay_as_they_were() -> None:
    """Appending never changes the root or a path of an earlier size."""
    tree = Tree()
    seen: list[tuple[bytes, tuple[bytes, ...]]] = []
    for leaf in LEAVES[:40]:
        tree.append(leaf)
        seen.append((tree.root(), tree.inclusion(0)))
    for size, (root, path) in enumerate(seen, 1):
        assert (tree.root(size), tree.inclusion(0, size)) == (root, path)
    assert len({root for root, _ in seen}) == len(seen)
    for (first, _), (second, _) in pairwise(seen):
        assert first != second


def test_the_root_from_a_path_is_returned_even_where_it_is_another() -> None:
    """Rebuilding and comparing are two steps: a caller can see which root a path leads to."""
    path = WHOLE.inclusion(2, 5)
    assert root_from_inclusion(LEAVES[2], 2, 5, path) == WHOLE.root(5)
    assert root_from_inclusion(LEAVES[3], 2, 5, path) != WHOLE.root(5)
