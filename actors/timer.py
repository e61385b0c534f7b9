"""The one timer of a host: looks after every session that waits for something, and costs nothing for one that does not.

Two beats. One looks at the status of each goal that is being driven, every `poll_interval`. The other is the poll floor beneath
the wakes, every `stream_poll`: streams with readers, and the inboxes of runs that are going. A session enrols for a beat while it
has a use for it. Where the log can tell in one number whether anything was written at all, the floor asks that first.

A visit that hangs delays nobody else: the next beat goes round it, and it ends when the one who is visited leaves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol, final

import trio

from affidavit.actors.clock import Clock
from affidavit.actors.errors import LogError
from affidavit.actors.logs.port import LogReader, VersionedReader
from affidavit.actors.nurseries import open_owned_nursery, open_services

DEFAULT_POLL: Final = 0.05
DEFAULT_STREAM_POLL: Final = 0.25

# Visits between two checkpoints, for those that need none themselves.
_SLICE: Final = 64

Visit = Callable[[], Awaitable[None]]


class StartService(Protocol):
    """Starts a task that lives as long as its owner's block; `Services.start_soon` is one."""

    def __call__(self, service: Callable[[], Awaitable[None]], *, name: str) -> None:
        """Start it."""
        ...


async def _always() -> bool:
    return True


@final
class Beat:
    """Visits whoever is enrolled, every so often. Its task is started by the first who enrols, and rests while nobody is."""

    def __init__(
        self,
        clock: Clock,
        interval: float,
        start: StartService,
        name: str,
        *,
        gate: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        """Set the beat.

        Args:
            clock: Times it.
            interval: Seconds between two rounds.
            start: Starts its task.
            name: The task's name.
            gate: Asked before each round; False skips it.
        """
        self._clock = clock
        self._interval = interval
        self._start = start
        self._name = name
        self._gate = gate
        self._started = False
        self._members: dict[object, Visit] = {}
        self._visited: dict[object, trio.CancelScope] = {}
        self._somebody = trio.Event()

    def __len__(self) -> int:
        """How many are enrolled."""
        return len(self._members)

    def enrol(self, member: object, visit: Visit) -> None:
        """Visit a member at each beat from the next one on. The visit must not raise."""
        self._members[member] = visit
        self._somebody.set()
        if not self._started:
            self._started = True
            self._start(self._run, name=self._name)

    def leave(self, member: object) -> None:
        """Visit a member no more, and cancel the visit that is under way, unless the member itself leaves during it."""
        self._members.pop(member, None)

    def drop(self, member: object) -> None:
        """Visit a member no more, and cancel the visit that is under way."""
        self.leave(member)
        scope = self._visited.get(member)
        if scope is not None:
            scope.cancel(reason="the one visited has left")

    async def _run(self) -> None:
        async with open_owned_nursery() as nursery:
            while True:
                if not self._members:
                    self._somebody = trio.Event()
                    await self._somebody.wait()
                await self._clock.sleep(self._interval)
                if self._members and await self._gate():
                    # A round is a task of its own, so that one visit that hangs is left behind by the next round.
                    nursery.start_soon(self._round, name=f"a round of the {self._name}")

    async def _round(self) -> None:
        due, visited = enumerate(list(self._members.items()), 1), self._visited
        going = True
        while going:
            # One scope for many visits, since one each would cost more than they do; a visit that is cancelled ends it.
            with trio.CancelScope() as scope:
                for number, (member, visit) in due:
                    if not number % _SLICE:
                        await trio.lowlevel.checkpoint()
                    if member in visited or member not in self._members:
                        continue
                    visited[member] = scope
                    try:
                        await visit()
                    finally:
                        del visited[member]
                going = False


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
            log: Asked whether anything was written.
            clock: Times the beats.
            poll_interval: Seconds between two looks at a goal's status.
            stream_poll: Seconds between two looks at the log; 0 or less turns the floor off.
            start: Starts the tasks, once they are needed.
        """
        self._log = log
        self._version: int | None = None
        self.has_floor: Final = stream_poll > 0
        self.goals: Final = Beat(clock, poll_interval, start, "goal timer")
        self.floor: Final = Beat(clock, stream_poll, start, "poll floor", gate=self._has_changed)

    async def _has_changed(self) -> bool:
        if not isinstance(self._log, VersionedReader):
            return True
        try:
            now = await self._log.version()
        except LogError:
            # Each visit then meets the reason, and passes it on.
            return True
        before, self._version = self._version, now
        return now != before


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
