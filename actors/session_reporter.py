"""How whatever drives a run records on it: everything but what only the session itself may write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, final

from affidavit.actors.deltas import LiveText, Show
from affidavit.actors.errors import GuardLost
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.logs.port import Guard
from affidavit.actors.session_record import SessionRecord

# What opens a run or a further round of it, and what people do. A runtime that could report these could reopen a finished run,
# or speak for a person.
_OWN_KINDS: Final = frozenset(
    {Kind.SESSION_STARTED, Kind.USER_MESSAGE, Kind.BRAKE_ENGAGED, Kind.BRAKE_RELEASED}
)
# What stands between two goals names the one above, which is the run's id for its root; all else of the root names none.
_EDGES: Final = frozenset({Kind.CHILD_SPAWNED, Kind.CHILD_COMPLETED})

# What any driver may report of any goal, and most of what one does report.
_COMMON: Final = frozenset(
    {
        Kind.TURN_STARTED,
        Kind.ASSISTANT,
        Kind.TOOL_CALL,
        Kind.TOOL_RESULT,
        Kind.TURN_COMPLETED,
        Kind.ACTION_ADMITTED,
        Kind.ACTION_COMPLETED,
        Kind.EGRESS_DECISION,
    }
)
# Of these, what neither opens anything that work may begin on, nor anything that the session decides by.
_BEHIND: Final = _COMMON - {Kind.TURN_STARTED, Kind.ACTION_ADMITTED}


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

        The run's root goal may be named by the run's id, or not at all.

        Raises:
            ValueError: One of them is of a kind that only the session itself writes, or ends the run in the name of another goal.
        """
        record = self._record
        checked = _checked(events, record.stream.id)
        return await record.record(checked, lambda: record.require_open(checked), joins=True)

    def report_behind(self, *events: Event) -> tuple[Event, ...] | None:
        """Have events recorded ahead of all that follows, without waiting for that; see the port.

        Raises:
            ValueError: As `report`.
        """
        record = self._record
        checked = _checked(events, record.stream.id)
        if not _BEHIND.issuperset(event.kind for event in checked):
            return None
        return record.record_behind(checked, lambda: record.require_open(checked))

    async def report_unless_asked(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append, unless others have asked for something; see the port.

        Raises:
            ValueError: As `report`.
        """
        record = self._record
        checked = _checked(events, record.stream.id)
        # What is ruled in this process leaves nothing in the inbox, and may come first while these wait for their turn.
        ruled = record.state.ruled

        def check() -> None:
            record.require_open(checked)
            if record.state.ruled != ruled:
                raise GuardLost(record.stream.id)

        return await record.record(checked, check, self._guard(), joins=True)

    async def settled(self) -> None:
        """Wait until all that was reported so far is durable; see the port."""
        await self._record.stream.settled()

    async def attend(self) -> None:
        """Have what others have asked of the run by now done first; see the port."""
        await self._attend()


def _checked(events: tuple[Event, ...], run_id: str) -> tuple[Event, ...]:
    """Return the events, each with its goal named as it is on every stream.

    Raises:
        ValueError: One of them may not be reported.
    """
    if all(event.kind in _COMMON and event.goal != run_id for event in events):
        return events
    for event in events:
        # A driver may say that a request expired, and never that a person decided.
        decides = event.kind == Kind.APPROVAL_DECIDED and event.principal
        if decides or event.kind in _OWN_KINDS or event.kind.startswith("record."):
            raise ValueError(f"{event.kind} is written by the session alone")
        if event.kind in TERMINAL_KINDS and event.goal not in ("", run_id):
            raise ValueError(f"{event.kind} speaks of the run, and not of its goal {event.goal}")
    if all(_is_named_so(event, run_id) for event in events):
        return events
    return tuple(
        event if _is_named_so(event, run_id) else replace(event, goal=run_id if event.kind in _EDGES else "")
        for event in events
    )


def _is_named_so(event: Event, run_id: str) -> bool:
    return bool(event.goal) if event.kind in _EDGES else event.goal != run_id
