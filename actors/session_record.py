"""What one session records on its run, whose goal it drives, and whether it may still record at all.

Everything that is recorded on the run passes through `record` or `end`. A record that cannot be extended stops the session at
once; what stands on the log is what the next owner resumes from.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, final

import trio

from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.errors import GoalFinished, LogClosed, LogError
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.port import Guard, Log
from affidavit.actors.recovery import ending_events
from affidavit.actors.reporter import Reporter
from affidavit.actors.run_state import (
    Round,
    RunState,
    is_cancelled_end,
    is_end_of_run,
    may_end,
    terminal_event,
)
from affidavit.actors.runtime_port import ListeningRuntime, Runtime
from affidavit.actors.stream import Prepare, Stream
from affidavit.actors.text import fit

CLOSED: Final = "the session was closed"


class _TooLate(LogClosed):
    """Whoever reports this was told to stop; that it goes on is no failure of the record."""


class _NotRead(Exception):
    """What an end leaves open cannot be told without the run's fold as it stands now."""


class _Outdated(Exception):
    """What was to be closed was told from a fold that the run has left behind."""


@dataclass(frozen=True, slots=True)
class Driver:
    """What a run's goal was last handed to.

    Attributes:
        runtime: Drives it.
        key: The goal.
        reporter: Where the runtime reports.
    """

    runtime: Runtime
    key: GoalKey
    reporter: Reporter


@final
class SessionRecord:
    """One run as its session writes it.

    Attributes:
        stream: The run's stream.
        state: Its fold.
        failure: The first thing that stopped the session; nothing is recorded after it.
        stopped: Why nobody drives the run here any more, in one sentence; empty while somebody may.
        driven: The goal, and what drives it.
        driver: What goes on with the run if somebody says something after its end.
        talk: Held while something is being said, and while the run is let go of, so that neither comes amid the other.
        listening: What drives it, if it wants to hear of what is recorded.
        taken_up: Whether anybody submitted or resumed here. A session that was opened only to look leaves its run's record alone.
        cancelling: While its goal is being cancelled, the goal.phase event that says who asked for that, and why.
        cut_off: The goals that were ended without what drives them, and on which that may report no more.
        is_shut: Whether what drives it may report no more. What the session itself has to add may still be recorded.
        on_failure: What to do when the session has failed; set by its owner.
        on_release: What to do when the run has been let go of; set by its owner.
    """

    def __init__(self, log: Log, stream: Stream, state: RunState) -> None:
        """Take over a run whose stream is folded into `state`."""
        self.stream: Final = stream
        self.state: Final = state
        self.failure: BaseException | None = None
        self.stopped = ""
        self.driven: tuple[Runtime, GoalKey] | None = None
        self.driver: Driver | None = None
        self.talk: Final = trio.Lock()
        self.listening: ListeningRuntime | None = None
        self.taken_up = False
        self.cancelling: Event | None = None
        self.cut_off: Final[set[str]] = set()
        self.is_shut = False
        self.on_failure: Callable[[], None] | None = None
        self.on_release: Callable[[], None] | None = None
        self._log = log
        self._closed = False

    @property
    def is_live(self) -> bool:
        """Whether it has neither failed nor closed."""
        return self.failure is None and not self._closed

    async def record(
        self,
        events: tuple[Event, ...],
        check: Callable[[], None] = lambda: None,
        guard: Guard | None = None,
        *,
        joins: bool = False,
    ) -> tuple[Event, ...]:
        """Record events in one append.

        Args:
            events: In order.
            check: Called when it is their turn, knowing that nothing comes between; what it raises keeps them off the record.
            guard: What they are only right in the light of.
            joins: Whether `check` may be called while what `record_behind` took is not durable yet.

        Raises:
            GuardLost: The guard's stream has grown; the session goes on.
            LogError: They could not be recorded; the session stops. Or it had stopped already, and nothing follows that.
            RunFinished: The terminal event stands.
            RuntimeError: The run was not opened, or is being opened twice.

        Cancellation: Cancelled means that nothing was recorded.
        """

        def prepare(given: tuple[Event, ...]) -> tuple[Event, ...]:
            check()
            return self.state.admit(self._as_asked_for(given))

        # What ends the run is judged by all that stands ahead of it.
        return await self._append(events, prepare, guard, joins=joins and not may_end(events))

    def record_behind(self, events: tuple[Event, ...], check: Callable[[], None]) -> tuple[Event, ...] | None:
        """Have events recorded ahead of all that follows, without waiting until they are durable.

        Args:
            events: In order; only of kinds by which nothing is decided here.
            check: What it raises keeps them off the record.

        Returns:
            The events as readers will see them; None if that cannot be done just now, and `record` will do.

        Raises:
            LogError: The session has stopped. If they cannot be made durable later, it stops then.
            RunFinished: The terminal event stands.
            RuntimeError: The run was not opened.
        """

        def prepare(given: tuple[Event, ...]) -> tuple[Event, ...]:
            self._require_live()
            check()
            return self.state.admit(given)

        try:
            return self.stream.append_behind(*events, prepare=prepare, failed=self.fail)
        except _TooLate:
            raise
        except LogError as error:
            self.fail(error)
            raise

    def _as_asked_for(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Have a cancellation that the runtime itself reports say who asked for it."""
        if self.cancelling is None:
            return events
        rest = tuple(event for event in events if not is_cancelled_end(event))
        return events if len(rest) == len(events) else (*rest, self.cancelling)

    async def end(self, phase: Event) -> None:
        """Record the end of the root goal, and the terminal event with it, unless one stands already.

        Of a goal whose end stands already, only the terminal event is missing.
        """

        def prepare(events: tuple[Event, ...]) -> tuple[Event, ...]:
            if self.state.terminal is not None:
                return ()
            ended = self.state.ended_phase
            return self.state.admit(events if ended is None else (terminal_event(ended),))

        await self._append((phase,), prepare)

    async def end_unbegun(self, reason: str) -> None:
        """Record the stall of a goal that its runtime did not take."""
        # If the record cannot be extended, the session has failed, and the caller still hears of the first cause.
        with suppress(LogError):
            await self.end(phase_event(GoalStatus(Phase.STALLED, reason, 0, FaultClass.TERMINAL)))

    async def _append(
        self,
        events: tuple[Event, ...],
        prepare: Prepare,
        guard: Guard | None = None,
        *,
        joins: bool = False,
    ) -> tuple[Event, ...]:
        read: Conversation | None = None

        def prepare_if_going(given: tuple[Event, ...]) -> tuple[Event, ...]:
            self._require_live()
            return self._with_ends(prepare(given), read)

        try:
            while True:
                try:
                    return await self.stream.append(
                        *events, prepare=prepare_if_going, guard=guard, joins=joins
                    )
                except _NotRead:
                    read = fold(await history(self._log, self.stream.id))
        except _TooLate:
            raise
        except LogError as error:
            self.fail(error)
            raise

    def _require_live(self) -> None:
        if not self.is_live:
            # A later event without the one that failed, or without ownership of the run, would falsify the record.
            raise LogClosed(f"the session of run {self.stream.id} has stopped: {self.stopped}")

    def _with_ends(self, events: tuple[Event, ...], read: Conversation | None) -> tuple[Event, ...]:
        """Put ahead of the run's end what it still owes its transcript, whatever drives it may have left open.

        Args:
            events: What is to be recorded.
            read: The fold of the run, if it was read.

        Raises:
            _NotRead: It has to be read first, or again.
        """
        if not may_end(events):
            return events
        end = next((at for at, event in enumerate(events) if is_end_of_run(event)), None)
        if end is None or not self.state.open_ends.left_by(events):
            return events
        if read is None or read.seen != self.stream.tip:
            raise _NotRead
        for event in events:
            read.apply(event)
        return (*events[:end], *ending_events(read), *events[end:])

    async def close_calls(self, closing: Callable[[Conversation], tuple[Event, ...]]) -> None:
        """Record what `closing` says that the run still owes its transcript, whoever else records on it meanwhile.

        Raises:
            LogError: It could not be read or recorded.
            RunFinished: The terminal event stands.
        """
        while True:
            read = fold(await history(self._log, self.stream.id))
            events = closing(read)

            def check(seen: int = read.seen) -> None:
                if seen != self.stream.tip:
                    raise _Outdated

            with suppress(_Outdated):
                if events:
                    await self.record(events, check)
                return

    def attach(self, runtime: Runtime, key: GoalKey) -> None:
        """Take up a goal. Told before its runtime begins, so that a session which is left meanwhile stops it.

        Raises:
            RuntimeError: The goal is being driven already.
        """
        if self.driven is not None and not self.state.done.is_set():
            raise RuntimeError(f"goal {key.name} is being driven already")
        self.driven = (runtime, key)
        # Asked once, since what is recorded is passed on at every append.
        self.listening = runtime if isinstance(runtime, ListeningRuntime) else None
        self.taken_up = True
        if self.state.terminal is None and self.is_live:
            self.stopped = ""
            self.state.round = Round()

    def detach(self, reason: str) -> None:
        """Let go of a goal that its runtime did not take."""
        self.driven = self.listening = None
        self.release(reason)

    def require_open(self, events: tuple[Event, ...]) -> None:
        """Refuse what drives the run once that was told to stop, and the session has said how it left.

        Raises:
            LogClosed: It may report no more.
            GoalFinished: It may report no more on one of these goals.
        """
        if self.is_shut:
            raise _TooLate(f"the session of run {self.stream.id} has stopped: {self.stopped}")
        if self.cut_off and not any(is_end_of_run(event) for event in events):
            late = next(
                (goal for each in events for goal in (each.goal, each.child) if goal in self.cut_off), None
            )
            if late is not None:
                raise GoalFinished(f"goal {late} was ended; nothing can be reported on it")

    def release(self, reason: str) -> None:
        """Let go of everybody who waits for the run's end, since it will not come in this session."""
        self.stopped = self.stopped or reason
        self.state.done.set()
        if self.on_release is not None:
            self.on_release()

    def fail(self, error: BaseException) -> None:
        """Stop the session for this reason; the first one counts."""
        if self.is_live:
            self.failure = error
            self.release(str(error))
            if self.on_failure is not None:
                self.on_failure()

    def close(self) -> None:
        """Record nothing more: the run's ownership is about to end."""
        self.release(CLOSED)
        self._closed = True


def phase_event(status: GoalStatus, *, principal: str = "", causation_id: str = "") -> Event:
    """Return the goal.phase event of a root goal's status."""
    # Outside text, of whatever length: an end that cannot be recorded would leave the run without one.
    message, cut = fit(status.message)
    detail: dict[str, object] = {"phase": str(status.phase), "message": message, "steps": status.steps}
    if cut is not None:
        detail["cut"] = cut.as_detail()
    return Event(
        Kind.GOAL_PHASE,
        error_class=status.error_class,
        error_code=status.error_code,
        principal=principal,
        causation_id=causation_id,
        detail=detail,
    )
