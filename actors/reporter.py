"""The reporter port: the one way in which whatever drives a run puts events on the run's stream."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from affidavit.actors.deltas import LiveText
from affidavit.actors.events import Event


class Reporter(Protocol):
    """Records a run's events; `Session.reporter` is one. Any loop that calls it can be streamed and sealed."""

    async def report(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append, all or none, and return when they are durable. The only back-pressure there is.

        Args:
            events: In order. Their seq, time and actor are assigned by the stream.

        Returns:
            The events as recorded, in the same order: outside text repaired, the derived digests filled in.

        Raises:
            LogError: They could not be recorded; the session stops and its run can be resumed.
            RuntimeError: The run is finished, or was never opened.

        Cancellation: Cancelled means that nothing was recorded.
        """
        ...


@runtime_checkable
class AttentiveReporter(Protocol):
    """What a reporter may offer beside: to see first to what others have asked of the run. A session's reporter does."""

    async def attend(self) -> None:
        """Carry out what others have asked of the run by now, such as to brake it. Costs next to nothing if that is nothing.

        Raises:
            LogError: It could not be recorded.
        """
        ...

    async def report_unless_asked(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append as `report` does, unless others have asked of the run what was not seen to yet.

        That is judged in the append itself: a request either stands on the log after it, or keeps the events off the record. So
        does what was ruled in this process, an approval or the brake, after this was called.
        Costs next to nothing over `report`.

        Raises:
            GuardLost: They have. Nothing was recorded; `attend`, and judge again.
            LogError: As `report`; likewise RuntimeError.

        Cancellation: Cancelled means that nothing was recorded.
        """
        ...


@runtime_checkable
class UnhurriedReporter(Protocol):
    """What a reporter may offer beside: not to keep its caller waiting for the disk. A session's reporter does."""

    def report_behind(self, *events: Event) -> tuple[Event, ...] | None:
        """Have events recorded in one append as `report` does, and return at once.

        They stand ahead of all that is reported from now on, and nothing that follows is durable before them: what is done only
        after a later `report` has returned is done after these are durable. If they cannot be recorded, the session stops.

        Returns:
            The events as they will be recorded; None if they must be waited for, be it that much is under way already: nothing
            has happened then, and `report` will do.

        Raises:
            LogError: As `report`; likewise RuntimeError.
        """
        ...

    async def settled(self) -> None:
        """Wait until all that was reported so far is durable.

        Raises:
            LogError: Some of it could not be recorded; the session has stopped.

        Cancellation: changes nothing.
        """
        ...


@runtime_checkable
class ShowingReporter(Protocol):
    """What a reporter may offer beside: to show an answer in the making. A session's reporter does."""

    def show(self, piece: LiveText) -> None:
        """Hand a piece on to whoever watches. Neither waits nor raises; nothing is recorded."""
        ...
