"""The fan-out tree: who was handed what by whom, how far each is, and how it was governed."""

from __future__ import annotations

from collections.abc import Sequence

from affidavit.actors.fanout import FanoutChild, FanoutState
from affidavit.actors.projection import RecordState
from affidavit.tools.console.ink import (
    BAD,
    BAD_MARK,
    DONE_MARK,
    GOOD,
    QUIET,
    RUNNING_MARK,
    WAITS,
    Line,
    block,
    line,
    one_line,
    piece,
    shortened,
    width_of,
)
from affidavit.tools.fanout_order import in_order

_MARKS = {
    FanoutState.RUNNING: (RUNNING_MARK, WAITS),
    FanoutState.DONE: (DONE_MARK, GOOD),
    FanoutState.FAILED: (BAD_MARK, BAD),
}
_SEALS = {RecordState.RECORDING: "", RecordState.SEALED: " sealed", RecordState.VERIFIED: " verified"}
_DEEPEST = 8


def fanout_lines(children: Sequence[FanoutChild], width: int, height: int) -> list[Line]:
    """Return the tree, exactly so large; where it is larger, its beginning and how much is left out."""
    lines = [_child(child, depth, last, width) for child, depth, last in in_order(children)]
    if len(lines) > height:
        running = sum(child.state is FanoutState.RUNNING for child in children)
        left = len(lines) - height + 1
        lines = [*lines[: height - 1], line(f"… {left} more; {running} of {len(children)} running", WAITS)]
    return block(lines, width, height)


def _child(child: FanoutChild, depth: int, last: bool, width: int) -> Line:  # noqa: FBT001  # a place in the tree
    mark, style = _MARKS[child.state]
    branch = "  " * min(depth, _DEEPEST) + ("└ " if last else "├ ")
    trust = f" {child.trust}" if child.trust else ""
    facts = f"  {child.turns} turn{'' if child.turns == 1 else 's'}{trust}{_SEALS[child.seal]}"
    refused = f" {BAD_MARK}{child.blocked} blocked" if child.blocked else ""
    head = (piece(branch, QUIET), piece(f"{mark} ", style), piece(_short(child.id)))
    room = width - width_of(head) - len(facts) - len(refused) - 1
    said = one_line(child.result if child.state is FanoutState.FAILED else child.objective)
    words = f" {shortened(said, room)}" if room > 1 else ""
    return (*head, piece(words), piece(facts, QUIET), piece(refused, BAD))


def _short(name: str) -> str:
    return shortened(name, 12)
