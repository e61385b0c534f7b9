"""Waits between attempts: they double, are spread, keep to what was asked, and end somewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors import backoff
from affidavit.actors.backoff import MAX_WAIT_SECONDS, wait_before
from affidavit.actors.ids import new_fraction


@pytest.mark.parametrize(("spread", "waits"), [(0.0, [0.5, 1.0, 2.0, 4.0]), (1.0, [1.0, 2.0, 4.0, 8.0])])
def test_waits_double_and_are_spread_over_half(
    monkeypatch: pytest.MonkeyPatch, spread: float, waits: list[float]
) -> None:
    """From half of the doubled time up to all of it."""
    monkeypatch.setattr(backoff, "new_fraction", lambda: spread)
    assert [wait_before(attempt, 1.0) for attempt in (2, 3, 4, 5)] == waits


def test_two_runs_do_not_come_back_together() -> None:
    """The spread is chance."""
    assert len({wait_before(2, 1.0) for _ in range(50)}) > 40
    assert all(0 <= new_fraction() < 1 for _ in range(50))


@given(st.integers(2, 10_000), st.floats(0, 1e6), st.none() | st.floats(0, 1e6))
def test_what_was_asked_for_is_waited_in_full_up_to_the_bound(
    attempt: int, base: float, asked: float | None
) -> None:
    """Never sooner than the endpoint said, and never longer than the bound."""
    wait = wait_before(attempt, base, asked)
    assert 0 <= wait <= MAX_WAIT_SECONDS
    assert wait >= min(asked or 0.0, MAX_WAIT_SECONDS)
