"""A goal runtime that the test drives by hand, and the small words in which tests of sessions are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import final

import trio
import trio.testing

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.port import Log, LogReader
from affidavit.actors.reporter import Reporter
from affidavit.actors.secrets import NO_SECRETS
from affidavit.actors.session import Session
from affidavit.actors.stream import Stream
from affidavit.actors.subscription import Subscription
from tests.actors.fakes import JumpingClock

RUN = "run-1"
SPEC = GoalSpec("settle the ledger")
SPEAK = Event(Kind.ASSISTANT, turn=1, text="working on it")
RECORD = {Kind.RECORD_SEALED, Kind.RECORD_VERIFIED, Kind.RECORD_REJECTED}


@final
class FakeRuntime:
    """Implements the `Runtime` port; what its one goal does is what the test says.

    Attributes:
        current: The goal's status.
        reporter: What the session handed over.
        stops: The faults that `stop` was called with.
        refusal: Raised by `submit` and `resume`.
        status_failure: Raised by `status`.
        stop_failure: Raised by `stop`.
        hold: Where set, `submit` and `resume` wait for it.
        stop_hold: Where set, `stop` waits for it once the goal is inactive.
        closing: Reported by `stop`, as a runtime closes what it had begun.
        secrets: What it was given, and takes out of what is recorded.
        listener: Takes what stands on the goal's stream.
    """

    def __init__(self) -> None:
        self.current = GoalStatus(Phase.PENDING, active=False)
        self.reporter: Reporter | None = None
        self.stops: list[str] = []
        self.resumed = 0
        self.refusal: BaseException | None = None
        self.status_failure: Exception | None = None
        self.stop_failure: Exception | None = None
        self.hold: trio.Event | None = None
        self.stop_hold: trio.Event | None = None
        self.closing: tuple[Event, ...] = ()
        self.secrets = NO_SECRETS
        self.listener: Callable[[tuple[Event, ...]], None] | None = None

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Name a model."""
        return {"model": "fake"}

    def scrub(self, event: Event) -> Event:
        """Take its secrets out."""
        return self.secrets.scrub_event(event)

    def hear(self, key: GoalKey, events: tuple[Event, ...]) -> None:
        """Pass on what stands on the stream to whoever listens."""
        if self.listener is not None:
            self.listener(events)

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        """Begin, or refuse."""
        await self._begin(reporter)
        return GoalKey(spec.name)

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        """Go on, or refuse."""
        self.resumed += 1
        await self._begin(reporter)

    async def _begin(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.current = GoalStatus(Phase.RUNNING)
        if self.hold is not None:
            await self.hold.wait()
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            self.current = replace(self.current, active=False)
            raise self.refusal

    async def status(self, key: GoalKey) -> GoalStatus:
        """Return what the test set."""
        await trio.lowlevel.checkpoint()
        if self.status_failure is not None:
            raise self.status_failure
        return self.current

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        """Become inactive, and report what it closes."""
        self.stops.append(fault)
        self.current = replace(self.current, active=False)
        if self.stop_hold is not None:
            await self.stop_hold.wait()
        await trio.lowlevel.checkpoint()
        if self.stop_failure is not None:
            raise self.stop_failure
        if self.closing and self.reporter is not None:
            await self.reporter.report(*self.closing)

    def converge(self, answer: str = "all settled") -> None:
        """Reach the goal, silently: only a look at its status shows it."""
        self.current = GoalStatus(Phase.CONVERGED, answer, 1, active=False)

    def stall(self, reason: str, error_class: str = FaultClass.TERMINAL) -> None:
        """Give up, silently."""
        self.current = GoalStatus(Phase.STALLED, reason, 1, error_class, active=False)


def phase(value: Phase, message: str = "all settled", **fields: str) -> Event:
    """Return the goal.phase event that a runtime of ours would report."""
    return Event(
        Kind.GOAL_PHASE,
        error_class=fields.get("error_class", ""),
        detail={"phase": str(value), "message": message, "steps": 1},
    )


async def kinds(log: LogReader, run_id: str = RUN) -> list[str]:
    """Return the kinds on a stream, having checked that its seqs are dense from 1."""
    events = await history(log, run_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), "seq is not dense from 1"
    return [str(event.kind) for event in events]


async def kinds_of_run(log: LogReader, run_id: str = RUN) -> list[str]:
    """Return the kinds on a stream, those about its record left out."""
    return [kind for kind in await kinds(log, run_id) if kind not in RECORD]


async def take(events: Subscription, count: int) -> list[Event]:
    """Return the next events of a subscription."""
    return [await anext(events) for _ in range(count)]


async def available(events: Subscription, most: int = 10_000) -> list[Event]:
    """Return the events that a subscription gives without anything else happening, and leave it waiting for none."""
    found: list[Event] = []

    async def pull() -> None:
        while len(found) < most:
            try:
                found.append(await anext(events))
            except StopAsyncIteration:
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pull)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return found


@asynccontextmanager
async def collected(events: Subscription) -> AsyncIterator[list[Event]]:
    """Pull a subscription in a task that waits in it, so that what arrives in the list came by a wake."""
    found: list[Event] = []

    async def pull() -> None:
        async for event in events:
            found.append(event)  # noqa: PERF401  # the list is read while it grows

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pull)
        await trio.testing.wait_all_tasks_blocked()
        yield found
        nursery.cancel_scope.cancel()


async def new_stream(log: Log, bus: Bus | None = None, run_id: str = RUN, *, floor: bool = True) -> Stream:
    """Return a stream at the tip of its log, as a new owner takes it over."""
    tip = len(await history(log, run_id))
    return Stream(log, bus or MemoryBus(), run_id, JumpingClock(), tip=tip, has_floor=floor)


@asynccontextmanager
async def waiter(session: Session) -> AsyncIterator[list[str | Exception]]:
    """Wait for a session in another task; its one outcome is in the list once the block is left."""
    outcome: list[str | Exception] = []

    async def wait() -> None:
        try:
            outcome.append(await session.wait())
        except Exception as error:
            outcome.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        yield outcome
