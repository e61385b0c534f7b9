"""The runtime port: what drives a goal to its end. A host may bring its own; `GoalRuntime` is ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from affidavit.actors.crew import Stop
from affidavit.actors.events import Event
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus
from affidavit.actors.reporter import Reporter


class Runtime(Protocol):
    """Drives goals. It reports what happens through the reporter it is given, and the session watches `status`."""

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Return what session.started should say of how this goal will be driven, as payload keys and values.

        Our own runtime gives `model` and `digests`; an empty mapping is fine.
        """
        ...

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        """Begin to drive a new goal, named `spec.name`.

        Raises:
            Exception: Whatever keeps it from beginning; the session records it as a stall and raises it.
        """
        ...

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        """Drive a goal on from what is on its stream.

        What an earlier driver had begun, and was killed over, is for this one to close first; see `recovery.closing_events`.

        Raises:
            ResumeRefused: It may not go on as this runtime is configured.
        """
        ...

    async def status(self, key: GoalKey) -> GoalStatus:
        """Return how the goal stands, at once and from what is known.

        Raises:
            KeyError: This runtime has no such goal.
            Exception: What broke the goal's driving; it stops the session, as its cause.
        """
        ...

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        """Stop driving the goal and return once nothing of it runs any more. A goal that is not driven is no error.

        A session waits for this no longer than its grace (see `session_ends`). It then sees to the record by itself, and what the
        runtime still reports is refused.

        Args:
            key: The goal.
            fault: `cancelled` for an end, `interrupted` to park it; what its begun calls are closed with.
        """
        ...


@runtime_checkable
class TellingRuntime(Protocol):
    """What a runtime may offer beside, so that a thousand goals that wait need not be asked twenty times a second each."""

    def tell(self, key: GoalKey, changed: Callable[[], None]) -> None:
        """Call `changed` each time the goal has become terminal or inactive, or its status can no longer be told.

        Told too often is harmless; told too seldom leaves the session waiting. A goal that is not driven is told at once.

        Args:
            key: The goal.
            changed: Takes the place of the one that was named before. It neither blocks nor raises.
        """
        ...


@runtime_checkable
class DelegatingRuntime(Protocol):
    """What a runtime may offer beside whose goals hand work to others: to end one of these alone."""

    async def cancel_child(self, key: GoalKey, child: str, stop: Stop) -> bool:
        """End a goal that work was handed to, and those below it, and return once nothing of them runs and their ends stand.

        Args:
            key: The run's root goal.
            child: The goal that is to end.
            stop: Who asks, and why; it goes onto the goal's last goal.phase.

        Returns:
            Whether it was at work here.
        """
        ...


@runtime_checkable
class ConversingRuntime(Protocol):
    """What a runtime may offer beside, to go on with a goal that has ended once a person has said something more."""

    async def may_go_on(self, key: GoalKey, reporter: Reporter) -> None:
        """Return if the goal may go on as this runtime is configured, and once nothing drives it any more.

        Called before anything is recorded: what it raises keeps the words off the record.

        Raises:
            ResumeRefused: It may not.
        """
        ...

    async def say(self, key: GoalKey, text: str, reporter: Reporter) -> None:
        """Drive the goal on from what is on its stream, whose last event is the user.message. From now on `status` tells of that.

        It begins and returns, and does not wait for `attend` of the reporter, which may be waiting for this.

        Args:
            key: The goal.
            text: What was said, as it stands on the record.
            reporter: Where to report.

        Raises:
            Exception: Whatever keeps it from going on; the session records it as a stall and raises it.
        """
        ...


@runtime_checkable
class ListeningRuntime(Protocol):
    """What a runtime may offer beside, to go by what others record on a run that it drives: approvals, the brake."""

    def hear(self, key: GoalKey, events: tuple[Event, ...]) -> None:
        """Take note of what has just become durable on the goal's stream, in order, its own events among it.

        Args:
            key: The goal, from when it was handed over to when the session lets go of it.
            events: As readers see them. It neither blocks nor raises.
        """
        ...


@runtime_checkable
class DiscreetRuntime(Protocol):
    """What a runtime may offer beside that was given secrets: they are taken out of whatever is recorded on its runs."""

    def scrub(self, event: Event) -> Event:
        """Return the event without any secret, marked if there was one. It must not raise."""
        ...
