"""The push readers of a session: outside handlers, each in a task of its own, none of which can harm another or the session.

They live in the session's nursery, which is never handed on. When the session closes, what is on the record by then is still
delivered, for as long as the grace lasts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, final

import trio

from affidavit.actors.events import Event
from affidavit.actors.stream import Stream

logger = logging.getLogger(__name__)

# Short, since a handler that stalls would hold up the close of the session for as long.
DRAIN_GRACE: Final = 1.0

Handler = Callable[[Event], Awaitable[None]]


@final
class PushReaders:
    """The handlers that are attached to one session."""

    def __init__(self, stream: Stream, nursery: trio.Nursery) -> None:
        """Start with none."""
        self._stream = stream
        self._nursery = nursery
        self._going = 0
        self._none_left = trio.Event()

    def start(self, handler: Handler, after_seq: int) -> None:
        """Call a handler with every event after `after_seq`, from a task of its own.

        Raises:
            ValueError: `after_seq` is negative.
        """
        if after_seq < 0:
            raise ValueError(f"after_seq is a seq, so it is not negative: {after_seq}")
        self._going += 1
        self._nursery.start_soon(self._push, handler, after_seq, name=f"reader of run {self._stream.id}")

    async def drain(self) -> None:
        """End all subscriptions, and wait at most `DRAIN_GRACE` seconds until every handler had what is on the record."""
        self._stream.readers.end_all("the session was closed")
        with trio.move_on_after(DRAIN_GRACE):
            while self._going:
                self._none_left = trio.Event()
                await self._none_left.wait()

    async def _push(self, handler: Handler, after_seq: int) -> None:
        try:
            async with self._stream.subscribe(after_seq) as events:
                async for event in events:
                    await handler(event)
        except Exception:
            # A push reader is outside code; it must not take the session down.
            logger.exception("a reader of run %s failed and was dropped", self._stream.id)
        finally:
            self._going -= 1
            self._none_left.set()
