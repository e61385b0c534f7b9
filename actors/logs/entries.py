"""What every log checks of an append before anything else happens: a malformed entry is a bug of the caller.

Adapters share this so that the same call is refused, in the same words, whichever log stands behind the port.
It never reads or writes a store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from affidavit.actors.logs.port import Entry, Guard

MAX_SEQ: Final = 2**62
MAX_ROW_BYTES: Final = 2**29


def check_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of one append if each could be applied to some log.

    Raises:
        ValueError: An entry has no rows, a stream stands twice or has no storable name, or an index value
            points beyond the entry's last row.
        TypeError: A row is not bytes.
    """
    checked = tuple(entries)
    for entry in checked:
        _check(entry)
    if len(checked) > 1 and len({entry.stream for entry in checked}) < len(checked):
        raise ValueError("a stream stands twice in one append")
    return checked


def _check(entry: Entry) -> None:
    if not is_storable_name(entry.stream):
        raise ValueError(f"a stream needs a name of valid Unicode, not {entry.stream!r}")
    if not entry.rows:
        raise ValueError(f"an entry for stream {entry.stream} has no rows")
    if not 0 <= entry.expected_seq <= MAX_SEQ:
        raise ValueError(f"the expected seq of stream {entry.stream} is {entry.expected_seq}, not a position")
    for row in entry.rows:
        if not isinstance(row, bytes):
            raise TypeError(f"a row of stream {entry.stream} is {type(row).__name__}, not bytes")
        if len(row) > MAX_ROW_BYTES:
            raise ValueError(
                f"a row of stream {entry.stream} has {len(row)} bytes, more than {MAX_ROW_BYTES}"
            )
    last = entry.expected_seq + len(entry.rows)
    if entry.guard is not None:
        _check_guard(entry.guard)
    for name, value in (("terminal_seq", entry.terminal_seq), ("sealed_size", entry.sealed_size)):
        if value is not None and not 0 <= value <= last:
            raise ValueError(f"{name} of stream {entry.stream} is {value}, outside 0..{last}")


def _check_guard(guard: Guard) -> None:
    if not is_storable_name(guard.stream):
        raise ValueError(f"a guarding stream needs a name of valid Unicode, not {guard.stream!r}")
    if not 0 <= guard.seq <= MAX_SEQ:
        raise ValueError(f"what was read of stream {guard.stream} ends at {guard.seq}, not a position")


def is_storable_name(text: str) -> bool:
    """Tell whether a stream can have this name at all: not empty, and with a UTF-8 form."""
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def check_limit(limit: int) -> int:
    """Return the limit of a read if it is one.

    Raises:
        ValueError: It is negative.
    """
    if limit < 0:
        raise ValueError(f"a read's limit is {limit}, below 0")
    return limit
