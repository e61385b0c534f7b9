"""The only place the runtime reads time. Every poll, expiry and event time goes through a `Clock`."""

from __future__ import annotations

import time
from typing import Final, Protocol, final

import trio

NANOSECONDS: Final = 1_000_000_000  # in a second


class Clock(Protocol):
    """A source of wall-clock time and of waiting."""

    def now_ns(self) -> int:
        """Return the wall-clock time in Unix nanoseconds, UTC. It may jump or run backwards; nothing may order by it."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for that many seconds.

        Cancellation: a checkpoint; cancelled at any moment.
        """
        ...


@final
class SystemClock:
    """The machine's clock, waiting on trio's."""

    def now_ns(self) -> int:
        """Return the system's wall-clock time in Unix nanoseconds."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Wait on trio's own clock, so that a test's `MockClock` drives it."""
        await trio.sleep(seconds)
