"""The breaker on repetition counts what was asked for, however it is spelled and however much is asked for at once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.json_values import same_input
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.model import Breakers, Grant, Policy
from affidavit.actors.run_book import WINDOW, RunBook
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import FakeTool, KeptLog, run_to_end, script

POLICY = Policy(grant=Grant(tools=("note",)), breakers=Breakers(repeated_calls=3))
SPELLINGS = (
    '{"a": 1, "b": "x"}',
    '{"b":"x","a":1}',
    '{ "a" :1.0, "b":"\\u0078"}',
    '{"\\u0061": 1e0,\n"b": "x"}\n',
    '\t{"a": 10e-1, "b": "x"}',
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("number", [4, WINDOW, WINDOW + 1, 3 * WINDOW])
async def test_a_call_that_one_turn_repeats_runs_no_more_often_than_allowed(number: int) -> None:
    """However many a turn holds: more than the breaker looks back upon are still so many."""
    tool, log = FakeTool("note"), KeptLog()
    turns = ({"tool_calls": [{"name": "note", "input": {"a": 1}}] * number}, {"text": "Done."})
    await run_to_end(log, MissionConfig(script(*turns), Toolbox([tool]), policy=POLICY), GoalSpec("Note it."))
    assert tool.runs == 3


async def test_another_spelling_of_the_same_arguments_is_the_same_call() -> None:
    """White space, escapes, the order of keys, and 1 or 1.0 do not make it another."""
    tool, log = FakeTool("note"), KeptLog()
    turns = [{"tool_calls": [{"name": "note", "input": each}]} for each in SPELLINGS]
    config = MissionConfig(script(*turns, {"text": "Done."}), Toolbox([tool]), policy=POLICY)
    await run_to_end(log, config, GoalSpec("Note it."))
    assert tool.runs == 3
    assert len({same_input(each) for each in SPELLINGS}) == 1


@given(VALUES, VALUES)
def test_what_means_something_else_is_something_else(one: object, other: object) -> None:
    """Two values are the same input only if they are equal, apart from truth values, which are no numbers."""
    same = same_input(json.dumps(one)) == same_input(json.dumps(other, ensure_ascii=False, indent=1))
    assert same == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@pytest.mark.parametrize("text", ["", "no JSON", '{"a":1,"a":1}', "[" * 500, "1e999", "9" * 5000])
def test_what_is_no_json_value_is_its_own_text(text: str) -> None:
    """It fails as a call; it is counted all the same."""
    assert same_input(text) == same_input(f" {text}\n")
    assert same_input(text) != same_input(f"{text}x")


def test_answered_calls_are_not_kept() -> None:
    """What is counted of a call is forgotten once it is answered."""
    book = RunBook()
    for number in range(1000):
        book.apply(Event(Kind.TOOL_CALL, tool="note", tool_use_id=f"t{number}", input="{}"))
        book.apply(Event(Kind.TOOL_RESULT, tool="note", tool_use_id=f"t{number}"))
    empty = RunBook()
    assert book._repeats == empty._repeats == {}
