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

    __slots__ = ("_is_held", "_waiting")

    def __init__(self) -> None:
        """Open the gate."""
        self._is_held = False
        self._waiting = trio.lowlevel.ParkingLot()

    @property
    def is_held(self) -> bool:
        """Whether somebody is inside."""
        return self._is_held

    async def __aenter__(self) -> None:
        """Enter, at once if nobody is inside.

        Cancellation: while waiting; then nothing was entered.
        """
        if self._is_held:
            # Whoever is woken has been handed the gate, and nobody can come in between.
            await self._waiting.park()
        else:
            self._is_held = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next one in."""
        if self._waiting:
            self._waiting.unpark()
        else:
            self._is_held = False
