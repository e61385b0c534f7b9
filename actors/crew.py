"""The goals that one goal has handed work to, as tasks of their own: begun, waited for, cancelled one by one or all together.

Owned by the goal above: its tasks end within that goal's own. What it knows is gone with them; the record has the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import final

import trio


@dataclass(frozen=True, slots=True)
class Stop:
    """Why one goal of a run is to end.

    Attributes:
        principal: Who asks; empty where nobody does, and the goal above ends.
        reason: Why.
        causation_id: The request that this comes from.
    """

    principal: str
    reason: str
    causation_id: str = ""


def _nothing() -> None:
    """Leave it at that."""


@final
@dataclass(slots=True, eq=False)
class Hand:
    """One goal at work.

    Attributes:
        goal: Its id.
        crew: Those that it has handed work to in turn.
        scope: Ends it.
        ended: Set once nothing of it runs any more.
        stop: Why it was ended from outside; None where it was not, or only parked.
        on_stop: Called when it is ended from outside, before its task hears of it; set by its task.
    """

    goal: str
    crew: Crew
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)
    stop: Stop | None = None
    on_stop: Callable[[], None] = _nothing


Work = Callable[[Hand], Awaitable[None]]


@final
class Crew:
    """The children of one goal. The goal's own task gives it a nursery by `open`."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._nursery: trio.Nursery | None = None
        self._hands: dict[str, Hand] = {}
        self._failure: Exception | None = None
        self._news = trio.Event()

    def open(self, nursery: trio.Nursery) -> None:
        """Take the nursery in which the children work: one that ends with the goal's own task."""
        self._nursery = nursery

    def start(self, goal: str, work: Work) -> None:
        """Set a goal to work in a task of its own."""
        if self._nursery is None:
            raise RuntimeError("a crew works only while the task of the goal above does")
        hand = Hand(goal, Crew())
        self._hands[goal] = hand
        self._nursery.start_soon(self._run, hand, work, name=f"goal {goal}")

    def has(self, goal: str) -> bool:
        """Tell whether a goal of this very crew is at work."""
        return goal in self._hands

    async def news(self) -> None:
        """Wait until a child has ended since this was last called.

        Raises:
            Exception: What a child's task failed with: its record could not be extended.
        """
        await self._news.wait()
        self._news = trio.Event()
        if self._failure is not None:
            raise self._failure

    def find(self, goal: str) -> Hand | None:
        """Return a goal of this crew or of one below it, if it is at work."""
        for hand in self._hands.values():
            if hand.goal == goal:
                return hand
            below = hand.crew.find(goal)
            if below is not None:
                return below
        return None

    def let_go(self, goal: str) -> None:
        """Wait no longer for a goal of this crew, or of one below it, that was to stop: its end stands on the record.

        Its task ends when what it is at does, within the nursery of the goal above.
        """
        hand = self._hands.get(goal)
        if hand is None:
            for below in self._hands.values():
                below.crew.let_go(goal)
        elif hand.stop is not None:
            del self._hands[goal]
            self._news.set()

    async def stop(self, why: Stop) -> None:
        """End every child, and return once nothing of them runs any more."""
        for hand in tuple(self._hands.values()):
            await stop_hand(hand, why)

    async def _run(self, hand: Hand, work: Work) -> None:
        try:
            await work(hand)
        except Exception as error:
            # The record could not be extended: nothing can be said on it, and the goal above meets the same.
            self._failure = self._failure or error
        finally:
            self._hands.pop(hand.goal, None)
            hand.ended.set()
            self._news.set()


async def stop_hand(hand: Hand, why: Stop) -> None:
    """End a goal, and return once nothing of it runs any more.

    Cancellation: it ends all the same.
    """
    hand.stop = hand.stop or why
    hand.on_stop()
    hand.scope.cancel(reason=f"the goal is being cancelled: {why.reason}")
    await hand.ended.wait()
