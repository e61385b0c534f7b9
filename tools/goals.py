"""The goals that a run has handed work to, as a person names them: by the whole id, its last part, or a unique beginning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from affidavit.actors.fanout import FanoutChild, FanoutState
from affidavit.tools._verify_report import plain
from affidavit.tools.errors import UsageError

_SHOWN: Final = 5
_STATES: Final = (FanoutState.RUNNING, FanoutState.DONE, FanoutState.FAILED)


def goal_label(goal: str) -> str:
    """Return what tells a goal from the others of its run: the part of its id after the last dot, or all of one without a dot."""
    return goal.rpartition(".")[2] or goal


def find_goal(children: Sequence[FanoutChild], run_id: str, text: str) -> FanoutChild:
    """Return the goal that a person means, of those that a run has handed work to.

    Args:
        children: The run's children.
        run_id: The run, for the sentence.
        text: A whole id, the part of one after its last dot, or the beginning of one that no other has.

    Raises:
        UsageError: None is meant by it, or several are.
    """
    for meant in (
        [child for child in children if child.id == text],
        [child for child in children if goal_label(child.id) == text],
        [child for child in children if text and child.id.startswith(text)],
    ):
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise UsageError(
                f"{len(meant)} goals of run {run_id} are meant by {text!r}: {_ids(meant)}; give more of the id"
            )
    if not children:
        raise UsageError(f"run {run_id} has handed work to no other goal")
    raise UsageError(f"run {run_id} has handed work to no goal {text!r}; there are {_ids(children)}")


def children_words(children: Sequence[FanoutChild]) -> str:
    """Return how many children there are in each state, such as `3 running, 1 failed`; empty for none."""
    counts = Counter(child.state for child in children)
    return ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])


def _ids(children: Sequence[FanoutChild]) -> str:
    more = ", ..." if len(children) > _SHOWN else ""
    return ", ".join(plain(child.id) for child in children[:_SHOWN]) + more
