"""The path from an event to the signed root as a picture: the tree's nodes beside it, each with the events that it stands for.

Everything in it is computed from the event's bytes and the path; that the last hash is the one that was signed is checked by
whoever made the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.crypto.hashing import node_hash
from affidavit.crypto.path_builder import sibling_ranges

_HASH: Final = 16  # digits of a hash that are shown
# Drawn with more room while the tree is low; a tree of a million events is 20 levels high.
_STEPS: Final = (("|- ", "|  ", "`- ", "   "), ("|", "|", "`", " "))
_LOW: Final = 10


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the tree that the path touches.

    Attributes:
        level: How many levels it stands above the event.
        first: The seq of the first event that it stands for.
        last: The seq of the last.
        hash: Its hash.
        computed: Whether it lies on the way up and so was computed; a sibling was given.
        side: `left` or `right` of the way up, for a sibling; empty for a node on the way.
    """

    level: int
    first: int
    last: int
    hash: bytes
    computed: bool
    side: str = ""


def way_up(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> tuple[tuple[Node, Node], ...]:
    """Return for each level, from the event upwards, the sibling and the node that is computed from it.

    Args:
        leaf: The event's leaf hash.
        index: Its zero-based position.
        size: How many events the tree has.
        path: The sibling hashes, from the leaf upwards.
    """
    found: list[tuple[Node, Node]] = []
    node, first, last = leaf, index, index + 1
    ranges = sibling_ranges(index, size)[::-1]
    for level, (sibling, (start, end)) in enumerate(zip(path, ranges, strict=True)):
        is_left = end <= first
        node = node_hash(sibling, node) if is_left else node_hash(node, sibling)
        first, last = min(first, start), max(last, end)
        found.append(
            (
                Node(level, start + 1, end, sibling, False, "left" if is_left else "right"),
                Node(level + 1, first + 1, last, node, True),
            )
        )
    return tuple(found)


def picture(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> Iterator[str]:
    """Go through the lines of the picture, the root first.

    Args: As `way_up`.
    """
    branch, along, last_branch, beyond = _STEPS[len(path) > _LOW]
    this = Node(0, index + 1, index + 1, leaf, True)
    drawn = [("", this)]
    for sibling, above in way_up(leaf, index, size, path):
        left, right = ([("", sibling)], drawn) if sibling.side == "left" else (drawn, [("", sibling)])
        drawn = [
            ("", above),
            *_hung(left, branch, along),
            *_hung(right, last_branch, beyond),
        ]
    labels = [(f"{indent}{_range(node)}", node) for indent, node in drawn]
    width = max(len(label) for label, _ in labels)
    for number, (label, node) in enumerate(labels):
        mark = "*" if node.computed else " "
        words = [word for word, fits in (("the root", number == 0), ("this event", node is this)) if fits]
        yield f"{label:<{width}}  {mark} {node.hash.hex()[:_HASH]}...  {', '.join(words)}".rstrip()


def _hung(drawn: list[tuple[str, Node]], first: str, rest: str) -> Iterator[tuple[str, Node]]:
    for number, (indent, node) in enumerate(drawn):
        yield (rest if number else first) + indent, node


def _range(node: Node) -> str:
    return f"event {node.first}" if node.first == node.last else f"events {node.first} to {node.last}"
