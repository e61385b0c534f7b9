"""Reads when a refused call may be tried again (RFC 9110, section 10.2.3). Pure but for the clock it falls back on; bounded."""

from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2

# Whoever is asked to wait longer than this has no use for another attempt within one turn.
MAX_SECONDS: Final = 24 * 3600.0
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")


def retry_after(headers: httpx2.Headers) -> float | None:
    """Return how many seconds the endpoint asks to wait, or None where it says nothing that can be read.

    Milliseconds in the vendors' `retry-after-ms` count first, then seconds or an HTTP date in `retry-after`. A date is compared
    with the endpoint's own `date`, so that a wrong clock on either side changes nothing.
    """
    millis = _number(headers.get("retry-after-ms", ""))
    if millis is not None:
        return min(millis / 1000, MAX_SECONDS)
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is None:
        then = _moment(value)
        if math.isnan(then):
            return None
        now = _moment(headers.get("date", ""))
        seconds = then - (time.time() if math.isnan(now) else now)
    return min(max(seconds, 0.0), MAX_SECONDS)


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def _moment(text: str) -> float:
    """Return an HTTP date as Unix seconds, or NaN for what is none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return math.nan
