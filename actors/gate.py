"""A lock that costs no turn of the loop while it is free: for what is passed at every act and seldom contended.

The block behind it must itself be a checkpoint, since entering is one only where somebody else is inside.
"""

from __future__ import annotations

from types import TracebackType
from typing import final

import trio


@final
class Gate:
    """Lets one task at a time through, in the order in which they came."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        """Open the gate."""
        self._lock = trio.Lock()

    async def __aenter__(self) -> None:
        """Enter, at once if nobody is inside.

        Cancellation: while waiting; then nothing was entered.
        """
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next one in."""
        self._lock.release()
