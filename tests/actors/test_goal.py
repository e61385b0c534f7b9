"""Goals and their phases: a goal stands whole on the record and is read back as it was, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.goal import GoalSpec, Phase
from tests import strategies

SPECS = st.builds(
    GoalSpec,
    objective=strategies.TEXTS,
    system=strategies.TEXTS,
    tools=st.none() | st.lists(strategies.TEXTS, max_size=3).map(tuple),
    max_steps=strategies.COUNTS,
    max_tokens=strategies.COUNTS,
    max_output_tokens=strategies.COUNTS,
    self_checks=strategies.COUNTS,
    name=strategies.TEXTS,
)


@given(SPECS)
def test_a_goal_is_read_back_as_it_was(spec: GoalSpec) -> None:
    """Whatever the goal, its payload form reads back equal; keys of a later version are left aside."""
    assert GoalSpec.from_detail(spec.as_detail()) == spec
    assert GoalSpec.from_detail({**spec.as_detail(), "later": 1}) == spec


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"system": "x"},
        {"objective": 1},
        {"objective": "x", "max_steps": "2"},
        {"objective": "x", "tools": "look"},
        {"objective": "x", "tools": ["look", 1]},
        {"objective": "x", "tools": [["look"]]},
    ],
)
def test_what_is_no_goal_is_refused(detail: dict[str, object]) -> None:
    """A goal without an objective, or with a value of another type, is a ValueError that names the part."""
    with pytest.raises(ValueError, match="not a goal"):
        GoalSpec.from_detail(detail)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), st.lists))
def test_a_phase_is_read_from_anything(value: object) -> None:
    """Only the four words are phases; of these, two are terminal."""
    phase = Phase.read(value)
    assert phase is None or phase == value
    assert [phase for phase in Phase if phase.terminal] == [Phase.CONVERGED, Phase.STALLED]
    assert [Phase.read(str(phase)) for phase in Phase] == list(Phase)
