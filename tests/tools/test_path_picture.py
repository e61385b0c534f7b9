"""The picture of a path: what it shows is the tree, and its top is the root."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto.merkle import Tree
from affidavit.tools.path_picture import picture, way_up

PICTURE = """\
events 1 to 6        * 45ce015b046a428d...  the root
|- events 1 to 4     * 3c27c71481d08c13...
|  |- events 1 to 2    c71a16f21f917ed8...
|  `- events 3 to 4  * 9e5bc02c9d0c9b8b...
|     |- event 3     * dbc1b4c900ffe48d...  this event
|     `- event 4       084fed08b978af4d...
`- events 5 to 6       3d0451d0ec0dae09...
"""


def tree_of(size: int) -> tuple[Tree, list[bytes]]:
    """A tree of so many leaves, and the leaves."""
    tree, leaves = Tree(), [sha256(bytes([n])).digest() for n in range(size)]
    for leaf in leaves:
        tree.append(leaf)
    return tree, leaves


def test_the_picture() -> None:
    """The root first, each pair of nodes beneath the one that is made of it, and a star at what is computed."""
    tree, leaves = tree_of(6)
    assert "\n".join(picture(leaves[2], 2, 6, tree.inclusion(2, 6))) + "\n" == PICTURE


def test_a_single_event_is_its_own_root() -> None:
    """There is nothing beside it."""
    (line,) = picture(bytes(32), 0, 1, ())
    assert line == "event 1  * 0000000000000000...  the root, this event"


def test_a_high_tree_is_drawn_narrow() -> None:
    """A million events are twenty levels, and fit a screen of eighty columns."""
    lines = list(picture(bytes(32), 612_345, 1_000_000, [bytes(32)] * 20))
    assert len(lines) == 41
    assert max(map(len, lines)) <= 78


@given(size=st.integers(1, 80), data=st.data())
def test_the_way_up_ends_at_the_root(size: int, data: st.DataObject) -> None:
    """Each node that is computed is that of the tree over exactly the events that it is said to stand for."""
    index = data.draw(st.integers(0, size - 1))
    tree, leaves = tree_of(size)
    steps = way_up(leaves[index], index, size, tree.inclusion(index, size))
    first = last = index + 1
    for sibling, above in steps:
        assert sibling.side == ("left" if sibling.last < first else "right")
        first, last = min(first, sibling.first), max(last, sibling.last)
        assert (above.first, above.last) == (first, last)
        part = Tree()
        for leaf in leaves[first - 1 : last]:
            part.append(leaf)
        assert above.hash == part.root(last - first + 1)
    assert (first, last) == (1, size)
    assert not steps or steps[-1][1].hash == tree.root(size)
    assert (
        sum(line.count("* ") for line in picture(leaves[index], index, size, tree.inclusion(index, size)))
        == len(steps) + 1
    )
