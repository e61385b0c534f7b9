"""Shortened ids: long enough to name one run, and no longer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from affidavit.tools.short_ids import short_ids


def test_the_shortest_beginning_that_no_other_id_has() -> None:
    """At least eight letters where there are as many; an id that is another's beginning stays whole."""
    ids = ["01a22b64-0ab5-78f0", "01a22b64-0cc7-7000", "other", "run", "run-2", "ff1234567890"]
    assert short_ids(ids) == {
        "01a22b64-0ab5-78f0": "01a22b64-0a",
        "01a22b64-0cc7-7000": "01a22b64-0c",
        "other": "other",
        "run": "run",
        "run-2": "run-2",
        "ff1234567890": "ff123456",
    }


@given(ids=st.lists(st.text("ab-", min_size=1, max_size=12), unique=True, max_size=12))
def test_each_beginning_names_one_run(ids: list[str]) -> None:
    """Found as `find_run` finds: a whole id, or the only one that begins so."""
    for whole, short in short_ids(ids).items():
        assert whole.startswith(short)
        assert short == whole or [each for each in ids if each.startswith(short)] == [whole]
