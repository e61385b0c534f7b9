"""How whatever drives a run records on it: everything but what only the session itself may write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, final

from affidavit.actors.deltas import LiveText, Show
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.port import Guard
from affidavit.actors.session_record import SessionRecord

# What opens a run or a further round of it, and what people do. A runtime that could report these could reopen a finished run,
# or speak for a person.
_OWN_KINDS: Final = frozenset(
    {Kind.SESSION_STARTED, Kind.USER_MESSAGE, Kind.BRAKE_ENGAGED, Kind.BRAKE_RELEASED}
)


def _to_nobody(piece: LiveText) -> None:
    """Show a piece where nobody can watch."""


@final
class SessionReporter:
    """Records whatever drives the run onto the session's stream. Implements the three ports of `reporter`."""

    def __init__(
        self,
        record: SessionRecord,
        attend: Callable[[], Awaitable[None]],
        show: Show = _to_nobody,
        guard: Callable[[], Guard | None] = lambda: None,
    ) -> None:
        """Use `Session.reporter`."""
        self._record = record
        self._attend = attend
        self.show = show
        self._guard = guard

    async def report(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append; see the port.

        Raises:
            ValueError: One of them is of a kind that only the session itself writes.
        """
        _check(events)
        return await self._record.record(events)

    async def report_unless_asked(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append, unless others have asked for something; see the port.

        Raises:
            ValueError: As `report`.
        """
        _check(events)
        return await self._record.record(events, guard=self._guard())

    async def attend(self) -> None:
        """Have what others have asked of the run by now done first; see the port."""
        await self._attend()


def _check(events: tuple[Event, ...]) -> None:
    for event in events:
        # A driver may say that a request expired, and never that a person decided.
        decides = event.kind == Kind.APPROVAL_DECIDED and event.principal
        if decides or event.kind in _OWN_KINDS or event.kind.startswith("record."):
            raise ValueError(f"{event.kind} is written by the session alone")
