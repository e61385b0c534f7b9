"""A beat: visits whoever is enrolled, every so often, and rests while nobody is.

A visit that hangs delays nobody else: the round that is stuck in it is left behind, and a new one goes round it. It ends when the
one who is visited leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, final

import trio

from affidavit.actors.clock import Clock
from affidavit.actors.nurseries import StartService, open_owned_nursery

# Visits between two checkpoints, for those that need none themselves.
_SLICE: Final = 128

Visit = Callable[[], Awaitable[None]]


@final
class _Round:
    """One pass over the members.

    Attributes:
        visits: How many it has begun.
        seen: How many it had begun at the last beat.
        member: Whom it is visiting.
        scope: Cancelling it ends that visit.
    """

    __slots__ = ("member", "scope", "seen", "visits")

    def __init__(self) -> None:
        self.visits = 0
        self.seen = 0
        self.member: object = None
        self.scope = trio.CancelScope()


@final
class Beat:
    """Visits its members in turn. Its task is started by the first who enrols."""

    def __init__(self, clock: Clock, interval: float, start: StartService, name: str) -> None:
        """Set the beat.

        Args:
            clock: Times it.
            interval: Seconds between two rounds.
            start: Starts its task.
            name: The task's name.
        """
        self._clock = clock
        self._interval = interval
        self._start = start
        self._name = name
        self._started = False
        self._members: dict[object, Visit] = {}
        self._somebody = trio.Event()
        # Those that have not ended; all but the newest are stuck in a visit.
        self._rounds: set[_Round] = set()
        self._newest: _Round | None = None

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
        """Visit a member no more. A visit that is under way goes on to its end."""
        self._members.pop(member, None)

    def drop(self, member: object) -> None:
        """Visit a member no more, and cancel the visit that is under way."""
        self.leave(member)
        for going in self._rounds:
            if going.member is member:
                going.scope.cancel(reason="the one visited has left")

    async def _run(self) -> None:
        async with open_owned_nursery() as nursery:
            while True:
                if not self._members:
                    self._somebody = trio.Event()
                    await self._somebody.wait()
                await self._clock.sleep(self._interval)
                if self._members and not self._is_moving():
                    self._newest = _Round()
                    self._rounds.add(self._newest)
                    nursery.start_soon(self._go_round, self._newest, name=f"a round of the {self._name}")

    def _is_moving(self) -> bool:
        """Tell whether a round is under way that has got on since the last beat, and will come to everybody."""
        newest = self._newest
        if newest is None:
            return False
        moved, newest.seen = newest.visits > newest.seen, newest.visits
        return moved

    async def _go_round(self, mine: _Round) -> None:
        try:
            await self._visit_all(mine)
        finally:
            self._rounds.discard(mine)
            if self._newest is mine:
                self._newest = None

    async def _visit_all(self, mine: _Round) -> None:
        members, rounds = self._members, self._rounds
        # Without a pair for each, which would be enough new objects to set off the garbage collector at every beat.
        due = enumerate(list(members), 1)
        left = True
        while left:
            # One scope for many visits, since one each would cost more than they do; a visit that is cancelled ends it.
            with trio.CancelScope() as mine.scope:
                for number, member in due:
                    mine.visits = number
                    if not number % _SLICE:
                        await trio.lowlevel.checkpoint()
                    visit = members.get(member)
                    if visit is None or (len(rounds) > 1 and self._is_visited(member)):
                        continue
                    mine.member = member
                    await visit()
                    if self._newest is not mine:
                        # It was stuck, and another goes round; that one comes to those who are left.
                        return
                left = False
            mine.member = None

    def _is_visited(self, member: object) -> bool:
        return any(going.member is member for going in self._rounds)
