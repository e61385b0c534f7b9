"""Moments as people name them."""

from __future__ import annotations

import pytest

from affidavit.actors.event_json import parse_time
from affidavit.tools.errors import UsageError
from affidavit.tools.since import parse_since

NOW = parse_time("2026-11-30T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", "2026-11-30T11:58:30Z"),
        ("30m", "2026-11-30T11:30:00Z"),
        ("12h", "2026-11-30T00:00:00Z"),
        ("1d", "2026-11-29T12:00:00Z"),
        ("2w", "2026-11-16T12:00:00Z"),
        ("2026-11-30", "2026-11-30T00:00:00Z"),
        ("2026-11-30T08:00:00+01:00", "2026-11-30T07:00:00Z"),
    ],
)
def test_each_form(text: str, moment: str) -> None:
    """So long ago, a day in UTC, or a whole time in any zone."""
    assert parse_since(text, NOW) == parse_time(moment)


@pytest.mark.parametrize("text", ["yesterday", "5", "-3d", "2026-02-30", "2026-11-30 08:00", "1y", "٣d"])
def test_anything_else_is_refused_with_what_would_do(text: str) -> None:
    """The sentence names every form."""
    with pytest.raises(UsageError, match=r"how long ago .* a day .* or a time"):
        parse_since(text, NOW)
