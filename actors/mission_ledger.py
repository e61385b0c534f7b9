"""The mission's ledger: records through the session's reporter, and folds what was recorded into the conversation."""

from __future__ import annotations

from typing import final

from affidavit.actors.admission import Spent
from affidavit.actors.conversation import Conversation
from affidavit.actors.events import Event
from affidavit.actors.reporter import Reporter


@final
class MissionLedger:
    """Joins a conversation to the reporter that extends it."""

    def __init__(self, conversation: Conversation, reporter: Reporter) -> None:
        """Take up a conversation where it stands."""
        self.conversation = conversation
        self._reporter = reporter

    @property
    def next_call(self) -> int:
        """One more than the largest correlation id on the record."""
        return self.conversation.last_call + 1

    @property
    def spent(self) -> Spent:
        """Tokens used, and those held back by running actions."""
        reserved = sum(action.reserved_tokens for action in self.conversation.open_actions.values())
        return Spent(tokens=self.conversation.used_tokens + reserved)

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append and fold them.

        Cancellation: Cancelled means that neither happened.
        """
        recorded = await self._reporter.report(*events)
        for event in recorded:
            self.conversation.apply(event)
        return recorded
