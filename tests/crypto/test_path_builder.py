"""A path made in one pass over the leaves is the path that the whole tree gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.path_builder import PathBuilder, consistency, inclusion
from affidavit.crypto.proofs import root_from_inclusion, verify_consistency_path
from tests.crypto.samples import tree

EVENTS = [bytes([number & 0xFF, number >> 8]) for number in range(2100)]
LEAVES = [leaf_hash(event) for event in EVENTS]
TREE = tree(EVENTS)


def path_of(builder: PathBuilder, size: int, step: int) -> tuple[bytes, ...]:
    """The path, with the leaves handed over a few at a time."""
    for start in range(0, size, step):
        builder.extend(LEAVES[start : min(start + step, size)])
    return builder.path()


def test_every_path_of_every_small_tree_is_that_of_the_tree() -> None:
    """All sizes to 40, all indexes and all earlier sizes."""
    for size in range(1, 41):
        for index in range(size):
            assert path_of(inclusion(index, size), size, 7) == TREE.inclusion(index, size)
            assert path_of(consistency(index + 1, size), size, 7) == TREE.consistency(index + 1, size)


@given(st.data())
def test_a_path_does_not_depend_on_how_the_leaves_come(data: st.DataObject) -> None:
    """Any size, place and length of the pieces; and it leads to the root."""
    size = data.draw(st.integers(1, len(LEAVES)))
    index = data.draw(st.integers(0, size - 1))
    step = data.draw(st.integers(1, size))
    path = path_of(inclusion(index, size), size, step)
    assert path == TREE.inclusion(index, size)
    assert root_from_inclusion(LEAVES[index], index, size, path) == TREE.root(size)
    old = index + 1
    path = path_of(consistency(old, size), size, step)
    assert path == TREE.consistency(old, size)
    assert verify_consistency_path(old, TREE.root(old), size, TREE.root(size), path) == TREE.root(size)


def test_a_tree_that_is_not_as_it_was_said_gives_no_path() -> None:
    """No such leaf or size, too many leaves, too few: an error each time."""
    for index, size in [(0, 0), (3, 3), (-1, 3)]:
        with pytest.raises(ValueError, match="no leaf"):
            inclusion(index, size)
    for old, new in [(0, 3), (4, 3), (0, 0)]:
        with pytest.raises(ValueError, match="no consistency path"):
            consistency(old, new)
    builder = inclusion(1, 3)
    builder.extend(LEAVES[:2])
    with pytest.raises(ValueError, match="2 leaves of the 3"):
        builder.path()
    with pytest.raises(ValueError, match="more leaves than the 3"):
        builder.extend(LEAVES[:2])
