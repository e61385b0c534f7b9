"""The readers of one stream: opens each subscription, and lets their owner wake, check and end them all.

It holds no task. The owner of the stream, or whoever watches it from outside, beats the poll floor by calling `tick` or `check`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import final

from affidavit.actors.buses.port import Bus, events_subject
from affidavit.actors.logs.port import LogReader
from affidavit.actors.subscription import Subscription
from affidavit.actors.tail import Tail


@final
class Readers:
    """The open subscriptions of one stream, so that their owner can tick the poll floor and end them."""

    def __init__(self, *, has_floor: bool, tail: Tail | None = None) -> None:
        """Make an empty set.

        Args:
            has_floor: Whether the owner calls `tick` or `check` from time to time.
            tail: The stream's tail, where the one writer of the stream is this program's own.
        """
        self._open: set[Subscription] = set()
        self._has_floor = has_floor
        self._tail = tail
        self._ended = ""
        # Called when a reader has come or gone; for the owner to set.
        self.on_change: Callable[[], None] | None = None

    def __len__(self) -> int:
        """How many subscriptions are open."""
        return len(self._open)

    def tick(self) -> None:
        """Let every reader look at the log, whether anything woke it or not."""
        for subscription in self._open:
            subscription.look()
        if self._tail is not None:
            self._tail.wake()

    def check(self, tip: int) -> None:
        """Let every reader look at the log if its tip is beyond what they were told of.

        Args:
            tip: The seq of the last event on the log.
        """
        if self._tail is None or tip > self._tail.tip:
            self.tick()

    def end_all(self, reason: str) -> None:
        """End every subscription, present and future, once it has delivered what is on the log."""
        self._ended = reason
        for subscription in self._open:
            subscription.end(reason)
        if self._tail is not None:
            self._tail.wake()

    @asynccontextmanager
    async def subscribe(
        self, log: LogReader, bus: Bus, stream: str, after_seq: int
    ) -> AsyncIterator[Subscription]:
        """Open a subscription for the length of the block.

        Raises:
            ValueError: `after_seq` is negative. One beyond the tip waits for the stream to get there.
        """
        if after_seq < 0:
            raise ValueError(f"after_seq is a seq, so it is not negative: {after_seq}")
        subscription = Subscription(log, stream, after_seq, has_floor=self._has_floor, tail=self._tail)
        async with bus.subscribe(events_subject(stream), subscription):
            self._open.add(subscription)
            self._changed()
            if self._ended:
                subscription.end(self._ended)
            try:
                yield subscription
            finally:
                self._open.discard(subscription)
                self._changed()
                subscription.close("its block was left")

    def _changed(self) -> None:
        if self._tail is not None and not self._open:
            self._tail.clear()
        if self.on_change is not None:
            self.on_change()
