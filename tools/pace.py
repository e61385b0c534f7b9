"""Waits between recorded events as long as the run did, or a share of it; through the clock port, so that a test never sleeps."""

from __future__ import annotations

from typing import Final, final

from affidavit.actors.clock import NANOSECONDS, Clock

# A person who approved a call the next morning would otherwise be waited for once more.
LONGEST: Final = 5.0


@final
class Pace:
    """The pace of one replay."""

    def __init__(self, clock: Clock, speed: float | None) -> None:
        """Begin before the first event.

        Args:
            clock: Waits.
            speed: How many times as fast as it was recorded, above 0; None for at once.
        """
        self._clock = clock
        self._speed = speed
        self._last: int | None = None

    async def keep(self, time: int) -> None:
        """Wait until an event that was recorded at a time is due.

        Where the machine's clock had been set back, nothing is waited for, and never more than `LONGEST` seconds.

        Args:
            time: Unix nanoseconds.

        Cancellation: while it waits.
        """
        last, self._last = self._last, time
        if self._speed is None or last is None:
            return
        pause = (time - last) / NANOSECONDS / self._speed
        if pause > 0:
            await self._clock.sleep(min(pause, LONGEST))
