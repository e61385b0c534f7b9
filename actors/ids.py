"""Run identities: fresh UUIDv7 values, and the rule that a caller's own id must meet. All chance comes from here."""

from __future__ import annotations

import re
import secrets
import uuid

SALT_BYTES = 16
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


def new_run_id(now_ns: int) -> str:
    """Return a UUIDv7 (RFC 9562 section 5.7) whose leading 48 bits are the given time in milliseconds.

    Args:
        now_ns: Wall-clock time in Unix nanoseconds.
    """
    millis = (now_ns // 1_000_000) & ((1 << 48) - 1)
    value = (millis << 80) | (0x7 << 76) | (secrets.randbits(12) << 64) | (0b10 << 62) | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def check_run_id(text: str) -> str:
    """Return the id if it is one bus token of `[A-Za-z0-9_-]{1,128}`.

    Raises:
        ValueError: The id holds anything else, so it could not name a stream and a bus subject.
    """
    if not _TOKEN.fullmatch(text):
        raise ValueError(f"a run id is 1 to 128 letters, digits, '-' or '_', not {text!r}")
    return text


def new_salt() -> bytes:
    """Return 16 random bytes, so that an event's leaf hash cannot be guessed from its likely content."""
    return secrets.token_bytes(SALT_BYTES)


def new_fraction() -> float:
    """Return a number from 0 up to but not including 1, so that those who wait do not all come back together."""
    return secrets.randbits(53) / 2**53
