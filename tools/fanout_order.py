"""The order in which a tree of delegated children is shown: each child after the one that spawned it, each once. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from affidavit.actors.fanout import FanoutChild


def in_order(children: Sequence[FanoutChild]) -> Iterator[tuple[FanoutChild, int, bool]]:
    """Go through the children depth first; one whose parent is nobody's child hangs from the root.

    Args:
        children: In the order in which they were spawned.

    Yields:
        A child, how many others are above it, and whether it is its parent's last one.
    """
    known = {child.id for child in children}
    below: dict[str, list[FanoutChild]] = {}
    for child in children:
        below.setdefault(child.parent if child.parent in known else "", []).append(child)
    left = dict.fromkeys(known)
    # A record made elsewhere may hold a circle of parents, which hangs from nothing: what was not reached comes after the rest.
    rest = iter(children)
    pending = _level(below.get("", []), 0)
    while left:
        if not pending:
            pending.append((next(child for child in rest if child.id in left), 0, True))
        child, depth, is_last = pending.pop()
        if child.id not in left:
            continue
        del left[child.id]
        yield child, depth, is_last
        pending += _level(below.get(child.id, []), depth + 1)


def _level(siblings: Sequence[FanoutChild], depth: int) -> list[tuple[FanoutChild, int, bool]]:
    """Return siblings as they are put on a stack: the last one at its bottom."""
    return [(child, depth, number == 0) for number, child in enumerate(reversed(siblings))]
