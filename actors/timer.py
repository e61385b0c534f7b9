"""The one timer of a host: looks after every session that waits for something, and costs nothing for one that does not.

The goals' beat looks at the status of each goal that is being driven, every `poll_interval`. The floor looks at the log, every
`stream_poll`: for streams with readers, and for the inboxes of runs that are going. Further beats are made by whoever needs one,
such as that which seals long runs. A session enrols for each while it has a use for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

from affidavit.actors.beat import Beat
from affidavit.actors.clock import Clock
from affidavit.actors.floor import Floor
from affidavit.actors.logs.port import LogReader
from affidavit.actors.nurseries import StartService, open_services

DEFAULT_POLL: Final = 0.05
DEFAULT_STREAM_POLL: Final = 0.25


@final
class Timer:
    """The beats of one host, or of a session that was opened without one.

    Attributes:
        goals: Looks at how goals stand.
        floor: Looks at streams and inboxes.
        has_floor: Whether there is a floor at all.
    """

    def __init__(
        self, log: LogReader, clock: Clock, poll_interval: float, stream_poll: float, start: StartService
    ) -> None:
        """Set the beats; see `open_timer`.

        Args:
            log: Asked what was written.
            clock: Times the beats.
            poll_interval: Seconds between two looks at a goal's status.
            stream_poll: Seconds between two looks at the log; 0 or less turns the floor off.
            start: Starts the tasks, once they are needed.
        """
        self._clock = clock
        self._start = start
        self._beats: dict[float, Beat] = {}
        self.has_floor: Final = stream_poll > 0
        self.goals: Final = Beat(clock, poll_interval, start, "goal timer")
        self.floor: Final = Floor(log, clock, stream_poll, start)

    def every(self, seconds: float) -> Beat:
        """Return the beat of this interval, one for all who ask for it."""
        beat = self._beats.get(seconds)
        if beat is None:
            beat = self._beats[seconds] = Beat(
                self._clock, seconds, self._start, f"timer of every {seconds} s"
            )
        return beat


@asynccontextmanager
async def open_timer(
    log: LogReader,
    clock: Clock,
    poll_interval: float = DEFAULT_POLL,
    stream_poll: float = DEFAULT_STREAM_POLL,
) -> AsyncIterator[Timer]:
    """Open a timer for many sessions over one log. It outlives the cancellation of its surroundings until the block has ended.

    Args:
        log: As for `Timer`; likewise the others.
        clock: See there.
        poll_interval: See there.
        stream_poll: See there.
    """
    async with open_services() as services:
        yield Timer(log, clock, poll_interval, stream_poll, services.start_soon)
