"""How long to wait before a failed call is tried again: doubling, spread by chance, never sooner than was asked. Bounded."""

from __future__ import annotations

from typing import Final

from affidavit.actors.ids import new_fraction

# Nobody waits longer than this between two attempts, whatever an endpoint asks for: then the attempts run out instead.
MAX_WAIT_SECONDS: Final = 60.0


def wait_before(attempt: int, base_seconds: float, asked: float | None = None) -> float:
    """Return the seconds to wait before an attempt.

    Runs that failed together would otherwise all come back together, so each waits at least half of its time and chance decides
    about the rest; what an endpoint asks for is waited in full, and a tenth of it is the most that is added.

    Args:
        attempt: The attempt that is to come; the first that waits is the second.
        base_seconds: The most that the second attempt waits for.
        asked: How many seconds the endpoint asked for; None if it did not.
    """
    spread = new_fraction()
    # Bounded before it is doubled, since a power of two of many attempts is no float.
    doubled = base_seconds * 2.0 ** min(attempt - 2, 64)
    wait = doubled * (1 + spread) / 2
    if asked is not None:
        wait = max(wait, asked * (1 + spread / 10))
    return min(wait, MAX_WAIT_SECONDS)
