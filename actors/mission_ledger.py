"""The mission's ledger: records through the session's reporter, and folds what was recorded into the conversation.

Every event is folded once, whether it comes back from the reporter or is heard from the session first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from affidavit.actors.conversation import Conversation
from affidavit.actors.deltas import Show
from affidavit.actors.events import Event
from affidavit.actors.reporter import AttentiveReporter, Reporter, ShowingReporter
from affidavit.actors.run_book import RunBook


@final
class MissionLedger:
    """Joins a conversation to the reporter that extends it.

    Attributes:
        conversation: The conversation.
        show: Takes the model's answers in the making; None where nobody can watch.
    """

    def __init__(self, conversation: Conversation, reporter: Reporter) -> None:
        """Take up a conversation where it stands."""
        self.conversation = conversation
        self._reporter = reporter
        # Asked once: to look a protocol up costs more than most of what is done with it.
        self._attentive = reporter if isinstance(reporter, AttentiveReporter) else None
        self.show: Show | None = reporter.show if isinstance(reporter, ShowingReporter) else None

    @property
    def book(self) -> RunBook:
        """What all goals of the run share."""
        return self.conversation.book

    def hear(self, events: Iterable[Event]) -> None:
        """Fold events that the session has recorded, whoever reported them."""
        for event in events:
            self.conversation.apply(event)

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append and fold them.

        Cancellation: Cancelled means that neither happened.
        """
        recorded = await self._reporter.report(*events)
        self.hear(recorded)
        return recorded

    async def report(self, *events: Event) -> tuple[Event, ...]:
        """Do as `record` does, so that what reports on the mission's behalf is folded as well."""
        return await self.record(*events)

    async def attend(self) -> None:
        """Have whatever others have asked of this run by now done first.

        Raises:
            LogError: It could not be recorded.
        """
        if self._attentive is not None:
            await self._attentive.attend()
