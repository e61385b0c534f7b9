"""The poll floor beneath the wakes: tells whoever reads along, or is asked by others, how far the log has come.

One look serves all: the tips of all their streams in one query, every so often, and where the log can tell in one number whether
anything was written at all, only if something was. It rests while nobody is enrolled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, final

import trio

from affidavit.actors.clock import Clock
from affidavit.actors.errors import LogError
from affidavit.actors.logs.port import LogReader, VersionedReader
from affidavit.actors.nurseries import StartService

# Members between two checkpoints.
_SLICE: Final = 64
# Seconds that one look may take. A connection that hangs must not be waited for for ever.
_PATIENCE: Final = 5.0


class Member(Protocol):
    """Who is told."""

    def streams(self) -> tuple[str, ...]:
        """Return the streams that it wants to hear of now."""
        ...

    def told(self, tips: Mapping[str, int] | None) -> None:
        """Hear how far they are. It neither blocks nor raises.

        Args:
            tips: The seq of the last event of each stream, 0 for one that has none; None if the log could not be asked.
        """
        ...


@final
class Floor:
    """Looks at the log for all its members. Its task is started by the first who enrols."""

    def __init__(self, log: LogReader, clock: Clock, interval: float, start: StartService) -> None:
        """Set the floor.

        Args:
            log: Looked at.
            clock: Times the looks.
            interval: Seconds between two.
            start: Starts its task.
        """
        self._log = log
        self._clock = clock
        self._interval = interval
        self._start = start
        self._started = False
        self._members: dict[Member, None] = {}
        self._somebody = trio.Event()
        # What the log said of itself before the last look that succeeded.
        self._version: int | None = None

    def __len__(self) -> int:
        """How many are enrolled."""
        return len(self._members)

    def enrol(self, member: Member) -> None:
        """Tell a member from the next look on."""
        self._members[member] = None
        self._somebody.set()
        if not self._started:
            self._started = True
            self._start(self._run, name="poll floor")

    def leave(self, member: Member) -> None:
        """Tell a member no more."""
        self._members.pop(member, None)

    async def _run(self) -> None:
        while True:
            if not self._members:
                self._somebody = trio.Event()
                await self._somebody.wait()
            await self._clock.sleep(self._interval)
            if self._members:
                await self._look()

    async def _look(self) -> None:
        tips: Mapping[str, int] | None = None
        members = list(self._members)
        try:
            with trio.move_on_after(_PATIENCE):
                version = await self._ask_version()
                if version is not None and version == self._version:
                    return
                tips = await self._ask_tips(members)
                self._version = version
        except LogError:
            # Readers that look for themselves meet the reason, and tell it.
            pass
        if tips is None:
            self._version = None
        for number, member in enumerate(members, 1):
            if not number % _SLICE:
                await trio.lowlevel.checkpoint()
            if member in self._members:
                member.told(tips)

    async def _ask_version(self) -> int | None:
        return await self._log.version() if isinstance(self._log, VersionedReader) else None

    async def _ask_tips(self, members: list[Member]) -> Mapping[str, int]:
        streams = tuple({stream: None for member in members for stream in member.streams()})
        return dict(zip(streams, await self._log.tips(streams), strict=True))
