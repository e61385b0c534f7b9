"""The ledger port: where the waist records, and the fold of what is recorded that it judges by. The mission's ledger is one."""

from __future__ import annotations

from typing import Protocol

from affidavit.actors.events import Event
from affidavit.actors.run_book import RunBook


class Ledger(Protocol):
    """Records through a session's reporter, and folds what is recorded. Its failures are those of `Reporter`."""

    @property
    def book(self) -> RunBook:
        """What all goals of the run share."""
        ...

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append and fold them."""
        ...

    async def record_unless_asked(self, *events: Event) -> tuple[Event, ...]:
        """Record and fold events as `record` does, or raise GuardLost if others have asked what was not seen to yet."""
        ...

    def record_behind(self, *events: Event) -> bool:
        """Fold events and have them recorded ahead of all that follows, without waiting; False if that cannot be done now."""
        ...

    async def settled(self) -> None:
        """Wait until all that was recorded so far is durable, or raise LogError if some of it cannot be."""
        ...

    async def attend(self) -> None:
        """Have whatever others have asked of this run by now done first, and fold it."""
        ...
