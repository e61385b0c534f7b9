"""The bus port: wakes, never content.

A wake says "something may have changed under this subject"; the one woken re-reads the log from its own cursor. Delivery is at
most once: a lost, doubled or merged wake costs latency and nothing else. Subjects follow NATS grammar: tokens separated by
dots; in a pattern `*` stands for one token and a final `>` for one or more.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Waker(Protocol):
    """The receiving end of a bus subscription. Both methods are synchronous and must neither block nor raise."""

    def wake(self) -> None:
        """Something was published since the last wake."""
        ...

    def bus_ended(self) -> None:
        """The bus will deliver no more wakes."""
        ...


class Bus(Protocol):
    """At-most-once delivery of wakes by subject."""

    def publish(self, subject: str) -> None:
        """Wake the subject's subscribers, now or soon.

        Never blocks: it stands between a durable append and its caller, where nothing may be cancelled. It may fail with any
        exception; the caller then carries on, and readers find the change by polling.
        """
        ...

    def subscribe(self, pattern: str, waker: Waker) -> AbstractAsyncContextManager[None]:
        """Deliver wakes for the pattern to `waker` while the block lasts.

        Raises:
            ValueError: The pattern is not of the grammar.
        """
        ...


def events_subject(run_id: str) -> str:
    """Return the subject on which a run's new events are announced."""
    return f"session.events.{run_id}"


def inbox_subject(run_id: str) -> str:
    """Return the subject on which requests to a run's owner are announced."""
    return f"session.inbox.{run_id}"
