"""What a stream has handed to its log without waiting, and is not known to be durable yet.

A crash leaves all of it, a beginning of it, or nothing: it is written in order, and ahead of all that the stream appends later.
Once one of it could not be written, nothing more can: what comes next would stand behind a gap.
"""

from __future__ import annotations

from typing import Final, final

import trio

from affidavit.actors.errors import LogClosed, LogError

# Appends. Whoever records more than that at a stretch waits for the disk like everybody else: nothing else holds it up.
MOST_UNDER_WAY: Final = 64


@final
class Behind:
    """Counts what is under way to the log.

    Attributes:
        failure: Why something that was handed over did not reach the log; None as long as everything has.
    """

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self.failure: LogError | None = None
        self._under_way = 0
        self._all_told = trio.Event()

    @property
    def is_full(self) -> bool:
        """Whether no more may come to it now."""
        return self._under_way >= MOST_UNDER_WAY

    def add(self) -> None:
        """Count one more append."""
        if not self._under_way:
            self._all_told = trio.Event()
        self._under_way += 1

    def told(self, failure: LogError | None) -> None:
        """Count one less, which is durable, or failed for this reason; the first failure counts."""
        self._under_way -= 1
        self.failure = self.failure or failure
        if not self._under_way:
            self._all_told.set()

    def check(self) -> None:
        """Pass if nothing was lost.

        Raises:
            LogClosed: Something was; its cause is the failure.
        """
        if self.failure is not None:
            raise LogClosed(f"what was to be recorded before this was not: {self.failure}") from self.failure

    async def settled(self) -> None:
        """Wait until it is known of everything what became of it.

        Cancellation: changes nothing; what is under way stays so.
        """
        if self._under_way:
            await self._all_told.wait()
