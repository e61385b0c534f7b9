"""The goals that a run has handed work to, as a person names them and as they are counted and shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.events import Event, Kind
from affidavit.actors.fanout import FanoutChild, FanoutState
from affidavit.tools.errors import UsageError
from affidavit.tools.event_words import words_of
from affidavit.tools.goals import children_words, find_goal, goal_label


def children(*ids: str) -> tuple[FanoutChild, ...]:
    """Children of these ids."""
    return tuple(FanoutChild(each, "r", "work") for each in ids)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("r.1", "r.1"),
        ("1", "r.1"),
        ("12", "r.12"),
        ("r.12", "r.12"),
        ("x-", "x-foreign"),
        ("x-foreign", "x-foreign"),
    ],
)
def test_a_goal_is_named_whole_by_its_last_part_or_by_a_beginning(text: str, meant: str) -> None:
    """What is named exactly is meant, also where it is the beginning of another."""
    assert find_goal(children("r.1", "r.12", "x-foreign"), "r", text).id == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("r.", "2 goals of run r are meant by 'r.': r.1, r.12; give more of the id"),
        ("", "run r has handed work to no goal ''; there are r.1, r.12"),
        ("2", "run r has handed work to no goal '2'; there are r.1, r.12"),
    ],
)
def test_what_names_no_goal_or_several_is_said(text: str, said: str) -> None:
    """In one sentence, with those that there are."""
    with pytest.raises(UsageError) as caught:
        find_goal(children("r.1", "r.12"), "r", text)
    assert str(caught.value) == said


def test_of_many_goals_some_are_named_and_of_none_that_is_said() -> None:
    """An id that another program wrote moves no cursor."""
    with pytest.raises(UsageError, match=r"there are r\.\\x1b, r\.2, r\.3, r\.4, r\.5, \.\.\.$"):
        find_goal(children("r.\x1b", "r.2", "r.3", "r.4", "r.5", "r.6"), "r", "9")
    with pytest.raises(UsageError, match="run r has handed work to no other goal"):
        find_goal((), "r", "1")


@given(st.lists(st.from_regex(r"[a-z0-9.]{1,6}", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_every_goal_can_be_named_by_its_whole_id(ids: list[str]) -> None:
    """However much the ids resemble one another."""
    assert [find_goal(children(*ids), "r", each).id for each in ids] == ids
    assert all(goal_label(each) for each in ids)


def test_children_are_counted_by_state_and_none_is_left_out() -> None:
    """Those that run first; a state that none is in is not spoken of."""
    states = [FanoutState.DONE, FanoutState.RUNNING, FanoutState.FAILED, FanoutState.RUNNING]
    counted = tuple(FanoutChild(f"r.{n}", "r", "work", state) for n, state in enumerate(states))
    assert children_words(counted) == "2 running, 1 done, 1 failed"
    assert children_words(counted[:1]) == "1 done"
    assert children_words(()) == ""


def test_the_words_for_a_child_say_which_and_whose_it_is() -> None:
    """A child of the run's own goal alone; one further down with the goal above it; who ended one, if anybody did."""
    spec = {"profile": "reader"}
    begun = Event(
        Kind.CHILD_SPAWNED, goal="r", child="r.2", text="Look", detail={"spec": spec, "model": "local"}
    )
    below = Event(Kind.CHILD_SPAWNED, goal="r.2", child="r.9", text="Look", detail={"spec": "none"})
    ended = Event(Kind.CHILD_COMPLETED, goal="r.2", child="r.9", result="no", is_error=True)
    phase = Event(Kind.GOAL_PHASE, goal="r.9", principal="ada", detail={"phase": "stalled"})
    turn = Event(Kind.TURN_STARTED, goal="r.9", turn=3)
    assert [words_of(each).text for each in (begun, below, ended, phase, turn)] == [
        "child 2, reader on local: Look",
        "child 9 of [2]: Look",
        "child 9 of [2] FAILED: no",
        "[9] stalled, by ada",
        "[9] turn 3",
    ]
