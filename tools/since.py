"""A moment in the past as a person names it: a day, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Final

from affidavit.actors.clock import NANOSECONDS
from affidavit.actors.event_json import parse_time
from affidavit.tools.errors import UsageError

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"([0-9]{1,9})([smhdw])")


def parse_since(text: str, now: int) -> int:
    """Return the moment that a text names.

    Args:
        text: A number and s, m, h, d or w for so long ago; a day such as 2026-11-30, which begins at midnight UTC; or a whole
            RFC 3339 time.
        now: The time, Unix nanoseconds.

    Returns:
        Unix nanoseconds.

    Raises:
        UsageError: It names none.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now - int(ago[1]) * _UNITS[ago[2]] * NANOSECONDS
    try:
        return _day(text) if len(text) == len("2026-11-30") else parse_time(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no moment: give how long ago (30m, 12h, 7d), a day (2026-11-30), "
            "or a time (2026-11-30T08:00:00Z)"
        ) from None


def _day(text: str) -> int:
    midnight = datetime.combine(date.fromisoformat(text), time(), UTC)
    return int(midnight.timestamp()) * NANOSECONDS
