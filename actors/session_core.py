"""The session's actor: the state it alone changes, its mailbox loop, its lifecycle watcher and its poll floor.

Everything that is recorded on the run passes through `record` or `end`. A record that cannot be extended stops the session at
once; what stands on the log is what the next owner resumes from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, final

import trio

from affidavit.actors.clock import Clock
from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.errors import LogClosed, LogError
from affidavit.actors.events import TERMINAL_KINDS, Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.port import LogReader
from affidavit.actors.mailbox import Mailbox, answer
from affidavit.actors.recovery import closing_events, ending_events
from affidavit.actors.run_state import RunState, terminal_event
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.sealer import Sealer
from affidavit.actors.sealing import Sealing
from affidavit.actors.session_commands import CancelRun, Command, SealDue, SealRun
from affidavit.actors.stream import Committed, Prepare, Stream

logger = logging.getLogger(__name__)

PARK_GRACE: Final = 5.0
_CLOSED: Final = "the session was closed"


@final
class SessionCore:
    """One run's actor. Owned by `open_session`, which runs its loops; shown to callers only through `Session`."""

    def __init__(
        self, log: LogReader, stream: Stream, state: RunState, clock: Clock, sealer: Sealer | None
    ) -> None:
        """Take over a run whose stream is folded into `state`."""
        self.stream = stream
        self.state = state
        self.mailbox = Mailbox[Command](f"the session of run {stream.id}")
        self.sealing = Sealing(stream, state, sealer) if sealer is not None else None
        # The first thing that stopped the session, and its sentence; nothing is recorded after it.
        self.failure: BaseException | None = None
        self.stopped = ""
        self.driven: tuple[Runtime, GoalKey] | None = None
        # Whether anybody submitted or resumed here. A session that was opened only to look leaves its run's record alone.
        self.taken_up = False
        self._closed = False
        self._cancelling = False
        self._log = log
        self._clock = clock
        self._watch_wanted = trio.Event()
        self._failed = trio.Event()
        self._seal_due = False
        stream.observe(self._observe)
        if sealer is not None:
            stream.observe(sealer.feed)

    def _observe(self, committed: Committed) -> None:
        for event in committed.events:
            self.state.apply(event)
        if self.sealing is not None and any(event.kind in TERMINAL_KINDS for event in committed.events):
            # A full mailbox is busy, so its loop will look at this flag after the command it is at.
            self._seal_due = not self.mailbox.post_nowait(SealDue())

    async def record(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Record events in one append.

        Raises:
            LogError: They could not be recorded; the session stops. Or it had stopped already, and nothing follows that.
            RunFinished: The terminal event stands.
            RuntimeError: The run was not opened, or is being opened twice.

        Cancellation: Cancelled means that nothing was recorded.
        """
        return await self._append(events, self.state.admit)

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

    async def _append(self, events: tuple[Event, ...], prepare: Prepare) -> tuple[Event, ...]:
        def prepare_if_going(given: tuple[Event, ...]) -> tuple[Event, ...]:
            if self._closed or self.failure is not None:
                # A later event without the one that failed, or without ownership of the run, would falsify the record.
                raise LogClosed(f"the session of run {self.stream.id} has stopped: {self.stopped}")
            return prepare(given)

        try:
            return await self.stream.append(*events, prepare=prepare_if_going)
        except LogError as error:
            self.fail(error)
            raise

    def attach(self, runtime: Runtime, key: GoalKey) -> None:
        """Take up a goal. Told before its runtime begins, so that a session which is left meanwhile stops it.

        Raises:
            RuntimeError: The goal is being driven already.
        """
        if self.driven is not None and not self.state.done.is_set():
            raise RuntimeError(f"goal {key.name} is being driven already")
        self.driven = (runtime, key)
        self.taken_up = True
        if self.state.terminal is None and self.failure is None and not self._closed:
            self.stopped = ""
            self.state.done = trio.Event()

    def detach(self, reason: str) -> None:
        """Let go of a goal that its runtime did not take."""
        self.driven = None
        self.release(reason)

    def watch(self) -> None:
        """Have the watcher follow the goal."""
        self._watch_wanted.set()

    def fail(self, error: BaseException) -> None:
        """Stop the session for this reason; the first one counts."""
        if self.failure is None and not self._closed:
            self.failure = error
            self._failed.set()
            self.release(str(error))

    def close(self) -> None:
        """Record nothing more: the run's ownership is about to end."""
        self.release(_CLOSED)
        self._closed = True

    def release(self, reason: str) -> None:
        """Let go of everybody who waits for the run's end, since it will not come in this session."""
        self.stopped = self.stopped or reason
        self.state.done.set()

    async def until_failed(self) -> None:
        """Return when the session has failed."""
        await self._failed.wait()

    async def run_mailbox(self) -> None:
        """The actor's loop: one command at a time."""
        try:
            while True:
                await self._handle(await self.mailbox.take())
                if self._seal_due:
                    self._seal_due = False
                    await self._seal_quietly()
        finally:
            self.mailbox.close(_discard)

    async def _handle(self, command: Command) -> None:
        match command:
            case SealRun(reply):
                await answer(reply, self.seal)
            case CancelRun(principal, reason, reply):
                await answer(reply, lambda: self._cancel(principal, reason))
            case SealDue():
                await self._seal_quietly()

    async def seal(self) -> Event:
        """Seal and check what is recorded; of a run that nobody drives, close first what its last driver left open."""
        if self.sealing is None:
            raise RuntimeError("this session was opened without a sealer")
        try:
            await self._close_open_calls()
            return await self.sealing.seal()
        except LogError as error:
            self.fail(error)
            raise

    async def _seal_quietly(self) -> None:
        """Seal because it is time to. That it failed is told to the host's log; the events stand and can be sealed later."""
        try:
            await self.seal()
        except Exception:
            logger.exception("run %s could not be sealed", self.stream.id)

    async def _close_open_calls(self) -> None:
        if self.driven is None and self.state.opened and self.state.terminal is None:
            await self._close(closing_events)

    async def _close(self, closing: Callable[[Conversation], tuple[Event, ...]]) -> None:
        events = closing(fold(await history(self._log, self.stream.id)))
        if events:
            await self.record(events)

    async def _cancel(self, principal: str, reason: str) -> Event:
        self._cancelling = True
        try:
            if self.driven is not None and self.state.terminal is None:
                runtime, key = self.driven
                await runtime.stop(key, fault=FaultClass.CANCELLED)
            if self.state.opened and self.state.terminal is None:
                # Our runtime has done this already; another may not, and a run that nobody drives has nobody else for it.
                await self._close(ending_events)
            await self.end(
                phase_event(GoalStatus(Phase.STALLED, reason, 0, FaultClass.CANCELLED), principal=principal)
            )
        finally:
            self._cancelling = False
        if self.state.terminal is None:
            raise RuntimeError("the run has no terminal event after it was cancelled")
        return self.state.terminal

    async def run_watcher(self, poll_interval: float) -> None:
        """Re-read the goal's status: the floor beneath what the runtime reports, and the only signal of one that reports none.

        Args:
            poll_interval: Seconds between two looks.
        """
        while True:
            await self._watch_wanted.wait()
            self._watch_wanted = trio.Event()
            if self.driven is not None:
                await self._follow(self.driven, poll_interval)

    async def _follow(self, driven: tuple[Runtime, GoalKey], poll_interval: float) -> None:
        runtime, key = driven
        while self.state.terminal is None and self.driven is driven:
            try:
                status = await runtime.status(key)
                if status.phase.terminal:
                    await self.end(phase_event(status))
                    return
            except Exception as error:
                self.fail(error)
                return
            # While it is being cancelled its runtime has let go of it and its terminal event is still to come.
            if not status.active and not self._cancelling:
                self.release("nothing drives it any more")
                return
            await self._clock.sleep(poll_interval)

    async def run_floor(self, stream_poll: float) -> None:
        """Tick the readers, so that a lost wake costs them at most this long.

        Args:
            stream_poll: Seconds between two ticks.
        """
        while True:
            await self._clock.sleep(stream_poll)
            self.stream.readers.tick()

    async def settle(self) -> None:
        """Wait for the run that is going, and leave its record sealed."""
        if self.driven is not None and self.failure is None:
            await self.state.done.wait()
        await self.park()

    async def park(self) -> None:
        """Stop what is still going, keep the run resumable, and seal what stands: complete or not, the record says which."""
        self.stopped = self.stopped or _CLOSED
        if self.driven is not None and self.state.terminal is None:
            await self._stop(*self.driven)
        self.release(_CLOSED)
        if self.failure is None and self.sealing is not None and self.taken_up:
            await self._seal_quietly()

    async def _stop(self, runtime: Runtime, key: GoalKey) -> None:
        try:
            await runtime.stop(key, fault=FaultClass.INTERRUPTED)
        except Exception as error:
            # The caller's own exception may be on its way out, and nothing may take its place.
            logger.exception("the goal of run %s could not be stopped", self.stream.id)
            self.fail(error)


def phase_event(status: GoalStatus, *, principal: str = "") -> Event:
    """Return the goal.phase event of a root goal's status."""
    detail: dict[str, object] = {"phase": str(status.phase), "message": status.message, "steps": status.steps}
    return Event(Kind.GOAL_PHASE, error_class=status.error_class, principal=principal, detail=detail)


def _discard(command: Command) -> None:
    if isinstance(command, SealRun | CancelRun):
        command.reply.close()
