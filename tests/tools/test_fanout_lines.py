"""The tree of children: every child once, under its parent, whatever a record claims about who spawned whom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.fanout import FanoutChild, FanoutState, RecordState
from affidavit.tools.cells import columns
from affidavit.tools.fanout_lines import fanout_lines

NAMES = st.sampled_from(["run", "a", "b", "c", "d", "e"])
CHILDREN = st.lists(
    st.builds(FanoutChild, NAMES, NAMES, st.text(max_size=8)), max_size=6, unique_by=lambda child: child.id
)


def test_the_tree() -> None:
    """A child stands under its parent, in the order in which they were spawned, and in its own words escaped."""
    children = (
        FanoutChild("read", "run", "Read the ledger", FanoutState.DONE, 3, seal=RecordState.VERIFIED),
        FanoutChild("pay", "run", "Pay\nwhat is \x1b open", FanoutState.FAILED, 1, blocked=2),
        FanoutChild("sum", "read", "Add it up"),
    )
    assert list(fanout_lines(children)) == [
        "- read: done, 3 turns, verified: Read the ledger",
        "   - sum: running, 0 turns, recording: Add it up",
        "- pay: failed, 1 turn, 2 refused, recording: Pay what is \\x1b open",
    ]
    assert next(iter(fanout_lines(children, 40))) == "- read: done, 3 turns, verified: Read..."


@given(children=CHILDREN)
def test_each_child_stands_once(children: list[FanoutChild]) -> None:
    """Also where some are their own ancestors; no line is wider than the screen."""
    lines = list(fanout_lines(children, 60))
    assert sorted(line.lstrip()[2:].split(":")[0] for line in lines) == sorted(child.id for child in children)
    assert all(columns(line) <= 60 for line in lines)


def test_a_deep_tree_comes_to_an_end() -> None:
    """A thousand generations are a thousand lines, and none of them is driven off the screen."""
    children = [FanoutChild(f"c{n}", f"c{n - 1}", "") for n in range(1000)]
    lines = list(fanout_lines(children, 80))
    assert len(lines) == 1000
    assert lines[-1].strip().startswith("- c999: ")
