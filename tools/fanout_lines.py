"""The tree of delegated children as lines. Whatever a record says, each child stands in it once, and it comes to an end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from affidavit.actors.fanout import FanoutChild
from affidavit.tools._verify_report import plain
from affidavit.tools.cells import columns, cut_cells
from affidavit.tools.fanout_order import in_order
from affidavit.tools.goals import goal_label

_FOLD: Final = 160
_DEEPEST: Final = 16  # beyond it lines move no further to the right
_STEP: Final = "   "


def fanout_lines(children: Sequence[FanoutChild], width: int | None = None) -> Iterator[str]:
    """Go through the lines of the tree, each child under the one that spawned it.

    Args:
        children: In the order in which they were spawned.
        width: The most columns of a line; None for where lines are not cut to a screen.
    """
    for child, depth, _ in in_order(children):
        line = f"{_STEP * min(depth, _DEEPEST)}- {plain(goal_label(child.id))}: {_words(child)}"
        text = plain(" ".join(child.objective.split()))
        yield _cut(f"{line}: {text}" if text else line, width or _FOLD)


def _words(child: FanoutChild) -> str:
    turns = f"{child.turns} turn" if child.turns == 1 else f"{child.turns} turns"
    refused = f", {child.blocked} refused" if child.blocked else ""
    return f"{child.state}, {turns}{refused}, {child.seal}"


def _cut(line: str, width: int) -> str:
    return line if columns(line) <= width else cut_cells(line, width - 3) + "..."
