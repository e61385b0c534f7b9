"""The mission's ledger: records through the session's reporter, and folds what was recorded into the conversation.

Every event is folded once, whether it comes back from the reporter or is heard from the session first. What a goal that work was
handed to records bears that goal's id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import final

from affidavit.actors.conversation import Conversation
from affidavit.actors.deltas import Show
from affidavit.actors.events import Event
from affidavit.actors.reporter import AttentiveReporter, Reporter, ShowingReporter, UnhurriedReporter
from affidavit.actors.run_book import RunBook


@final
class MissionLedger:
    """Joins a conversation to the reporter that extends it.

    Attributes:
        root: The conversation of the run's root goal, which folds them all.
        conversation: The conversation of the goal that this ledger is for.
        show: Takes the model's answers in the making; None where nobody can watch.
    """

    def __init__(self, conversation: Conversation, reporter: Reporter) -> None:
        """Take up a conversation where it stands."""
        self.root = self.conversation = conversation
        self._reporter = reporter
        # Asked once: to look a protocol up costs more than most of what is done with it.
        self._attentive = reporter if isinstance(reporter, AttentiveReporter) else None
        self._unhurried = reporter if isinstance(reporter, UnhurriedReporter) else None
        self.show: Show | None = reporter.show if isinstance(reporter, ShowingReporter) else None

    def of(self, goal: str) -> MissionLedger:
        """Return the ledger of a goal of the same run.

        Raises:
            KeyError: Work was never handed to such a goal.
        """
        other = MissionLedger(self.root, self._reporter)
        other.conversation = self.root.goals[goal]
        return other

    @property
    def book(self) -> RunBook:
        """What all goals of the run share."""
        return self.conversation.book

    def hear(self, events: Iterable[Event]) -> None:
        """Fold events that the session has recorded, whoever reported them."""
        for event in events:
            self.root.apply(event)

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append and fold them. Those that name no goal are of this one.

        Cancellation: Cancelled means that neither happened.
        """
        return await self.record_whole(*self._named(events))

    async def record_unless_asked(self, *events: Event) -> tuple[Event, ...]:
        """Do as `record` does, unless others have asked of this run what was not seen to yet.

        Raises:
            GuardLost: They have; neither happened.

        Cancellation: Cancelled means that neither happened.
        """
        if self._attentive is None:
            return await self.record(*events)
        recorded = await self._attentive.report_unless_asked(*self._named(events))
        self.hear(recorded)
        return recorded

    def record_behind(self, *events: Event) -> bool:
        """Fold events, and have them recorded ahead of all that follows without waiting for that.

        All that is recorded so on a run goes through ledgers of one root: events are folded in their order, and one that stands
        ahead of these and was not folded yet would be passed over.

        Returns:
            Whether that could be done; if not, nothing happened, and `record` will do.
        """
        recorded = self._unhurried.report_behind(*self._named(events)) if self._unhurried else None
        self.hear(recorded or ())
        return recorded is not None

    async def settled(self) -> None:
        """Wait until all that was recorded so far is durable.

        Raises:
            LogError: Some of it could not be recorded.
        """
        if self._unhurried is not None:
            await self._unhurried.settled()

    def _named(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        goal = self.conversation.goal
        return (
            tuple(event if event.goal else replace(event, goal=goal) for event in events) if goal else events
        )

    async def record_whole(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append as they are, those of several goals among them, and fold them."""
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
