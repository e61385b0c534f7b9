"""The set of calls that ever had a row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.callset import MAX_RANGES, CallSet


def _of(calls: list[int]) -> CallSet:
    made = CallSet()
    for call in calls:
        made = made.add(call)
    return made


@given(st.lists(st.integers(-5, 30)))
def test_members_are_exactly_what_was_added(calls: list[int]) -> None:
    """The set agrees with a plain one, in whatever order the calls came."""
    assert set(calls) == {call for call in range(-7, 33) if call in _of(calls)}


@given(st.lists(st.integers(-5, 30)))
def test_equal_members_are_equal_sets(calls: list[int]) -> None:
    """The ranges are sorted and never touch, so one membership has one form."""
    made = _of(calls)
    assert _of(sorted(set(calls))) == made
    assert all(low <= high for low, high in made.ranges)
    assert all(one[1] + 1 < two[0] for one, two in zip(made.ranges, made.ranges[1:], strict=False))


def test_a_run_of_calls_is_one_range() -> None:
    """A thousand calls handed out in sequence take one range, a call that waited fills its gap."""
    waiting = _of([*range(1, 500), *range(501, 1000)])
    assert waiting.ranges == ((1, 499), (501, 999))
    assert waiting.add(500).ranges == ((1, 999),)


def test_the_size_is_bounded_and_no_call_is_invented() -> None:
    """Beyond the limit the lowest range is forgotten; what was never added is never a member."""
    made = _of(list(range(0, 4 * MAX_RANGES, 2)))
    assert len(made.ranges) == MAX_RANGES
    assert 0 not in made
    assert 4 * MAX_RANGES - 2 in made
    assert not any(call in made for call in range(1, 4 * MAX_RANGES, 2))
