"""The newest events of one stream, kept in memory for those who read along: decoded once, shared by all, bounded.

Its stream's one writer publishes here what has become durable, and every reader that waits is woken by one event. A reader
asks with its own cursor; the answer is None where the cursor has fallen out of the window, and then the log has what is
missing. So a reader that stands still costs nobody anything, and memory is bounded by the window whatever readers do. Nothing
is kept while nobody reads along.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

import trio

from affidavit.actors.events import Event

# Both bound what one stream keeps, and neither cuts the newest append, which is in memory anyhow.
WINDOW_EVENTS: Final = 1024
WINDOW_BYTES: Final = 1 << 20


@final
class Tail:
    """A window of events that ends at the stream's tip.

    Attributes:
        tip: The seq of the last event that was published, or where the writer took over.
    """

    __slots__ = ("_batches", "_bytes", "_events", "_grown", "tip")

    def __init__(self, tip: int) -> None:
        """Begin at a tip, with nothing kept."""
        self.tip = tip
        # Made for whoever waits, set and forgotten when the stream has grown.
        self._grown: trio.Event | None = None
        # Each append as it was published, with its bytes; most readers want exactly the newest.
        self._batches: deque[tuple[tuple[Event, ...], int]] = deque()
        self._events = 0
        self._bytes = 0

    def __len__(self) -> int:
        """How many events are kept."""
        return self._events

    @property
    def grown(self) -> trio.Event:
        """Set when the stream has grown since this was asked for; wait on the one that stood when you looked."""
        if self._grown is None:
            self._grown = trio.Event()
        return self._grown

    def publish(self, events: tuple[Event, ...], size: int, *, keep: bool) -> None:
        """Take over what has become durable, and wake whoever waits.

        Args:
            events: The events after the tip, in order.
            size: Their stored size in bytes, if anybody reads along.
            keep: Whether anybody reads along.
        """
        self.tip = events[-1].seq
        if keep:
            self._batches.append((events, size))
            self._events += len(events)
            self._bytes += size
            while len(self._batches) > 1 and (self._events > WINDOW_EVENTS or self._bytes > WINDOW_BYTES):
                old, old_size = self._batches.popleft()
                self._events -= len(old)
                self._bytes -= old_size
        elif self._batches:
            self.clear()
        self.wake()

    def clear(self) -> None:
        """Keep nothing: nobody reads along any more."""
        self._batches.clear()
        self._events = self._bytes = 0

    def wake(self) -> None:
        """Wake whoever waits, whether or not there is anything new."""
        grown, self._grown = self._grown, None
        if grown is not None:
            grown.set()

    def after(self, cursor: int) -> tuple[Event, ...] | None:
        """Return what follows a cursor, as far as it is kept in one piece up to the tip.

        Returns:
            The events after the cursor; none if it is at the tip or beyond; None if the log must be read.
        """
        if cursor >= self.tip:
            return ()
        if not self._batches:
            return None
        newest = self._batches[-1][0]
        first = newest[0].seq
        if first == cursor + 1:
            return newest
        if first <= cursor:
            return newest[cursor + 1 - first :]
        if self._batches[0][0][0].seq > cursor + 1:
            return None
        found: list[Event] = []
        for events, _ in reversed(self._batches):
            first = events[0].seq
            found[:0] = events if first > cursor else events[cursor + 1 - first :]
            if first <= cursor + 1:
                break
        return tuple(found)
