"""The session's actor: the state it alone changes, its mailbox loop, and what the timer has it look at.

A session that is idle holds no task and no timer: the mailbox loop is started by the first command, and the timer visits only
sessions that drive a goal or have a reader. Everything that is recorded on the run passes through `record` or `end`. A record
that cannot be extended stops the session at once; what stands on the log is what the next owner resumes from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar, final

import trio

from affidavit.actors.clock import Clock
from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.errors import LogClosed, LogError
from affidavit.actors.events import RECORD_KINDS, TERMINAL_KINDS, Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.port import Log
from affidavit.actors.mailbox import Mailbox, Reply, answer
from affidavit.actors.recovery import closing_events, ending_events
from affidavit.actors.run_state import RunState, terminal_event
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.sealer import Sealer
from affidavit.actors.sealing import Sealing
from affidavit.actors.session_commands import (
    AttendInbox,
    CancelRun,
    Command,
    InboxDue,
    SealDue,
    SealRun,
    SignDue,
)
from affidavit.actors.session_inbox import SessionInbox
from affidavit.actors.session_watch import SessionWatch
from affidavit.actors.stream import Committed, Prepare, Stream
from affidavit.actors.timer import StartService, Timer

logger = logging.getLogger(__name__)

R = TypeVar("R")

PARK_GRACE: Final = 5.0
_CLOSED: Final = "the session was closed"


@final
class SessionCore:
    """One run's actor. Owned by `open_session`, which runs its loops; shown to callers only through `Session`."""

    def __init__(
        self,
        log: Log,
        stream: Stream,
        state: RunState,
        clock: Clock,
        sealer: Sealer | None,
        timer: Timer,
        start: StartService,
    ) -> None:
        """Take over a run whose stream is folded into `state`.

        Args:
            log: Where the run is.
            stream: The run's stream.
            state: Its fold.
            clock: Tells whether a request has expired.
            sealer: Seals the run.
            timer: Visits the session while it waits for something.
            start: Starts the mailbox loop once it is needed.
        """
        self.stream = stream
        self.state = state
        self.sealing = Sealing(stream, state, sealer) if sealer is not None else None
        self._sign_every = 0 if sealer is None else sealer.every
        self._is_signing = False
        # Events since the last one about the record: since the last seal, or as good as.
        self._unsigned = 0
        # The first thing that stopped the session, and its sentence; nothing is recorded after it.
        self.failure: BaseException | None = None
        self.stopped = ""
        # What to do when the session has failed; set by its owner.
        self.on_failure: Callable[[], None] | None = None
        self.driven: tuple[Runtime, GoalKey] | None = None
        # Whether anybody submitted or resumed here. A session that was opened only to look leaves its run's record alone.
        self.taken_up = False
        self._mailbox = Mailbox[Command](f"the session of run {stream.id}")
        self._start = start
        self._is_running = False
        self._closed = False
        self.is_cancelling = False
        self._log = log
        self.inbox = SessionInbox(log, state, clock, stream.id, self)
        self._watch = SessionWatch(self, log, timer)
        # Commands that found the mailbox full: it is busy, so its loop looks at these after the command it is at.
        self._due: set[SealDue | SignDue | InboxDue] = set()
        stream.observe(self._observe)
        stream.readers.on_change = self._watch.enrol
        if sealer is not None:
            stream.observe(sealer.feed)

    async def ask(self, command: Callable[[Reply[R]], Command], expected: type[R]) -> R:
        """Post a command and wait for its answer; see `Mailbox.ask`."""
        self._run_mailbox()
        return await self._mailbox.ask(command, expected)

    def _post(self, command: SealDue | SignDue | InboxDue) -> None:
        self._run_mailbox()
        if not self._mailbox.post_nowait(command):
            self._due.add(command)

    def _run_mailbox(self) -> None:
        if not self._is_running and not self._closed:
            self._is_running = True
            self._start(self._mailbox_loop, name=f"mailbox of run {self.stream.id}")

    def wake(self) -> None:
        """Others may have asked for something. Called by the bus."""
        if self.is_live:
            self._post(InboxDue())

    def bus_ended(self) -> None:
        """The bus is gone: requests are found by the floor from now on."""

    def _observe(self, committed: Committed) -> None:
        for event in committed.events:
            self.state.apply(event)
            self._unsigned = 0 if event.kind in RECORD_KINDS else self._unsigned + 1
        if any(event.kind in TERMINAL_KINDS for event in committed.events):
            self._watch.enrol()
            if self.sealing is not None:
                self._post(SealDue())
        elif 0 < self._sign_every <= self._unsigned and not self._is_signing:
            self._is_signing = True
            self._post(SignDue())

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
        """Follow the goal, and answer what others have asked for while nobody owned the run."""
        self._watch.follow()
        self.wake()

    @property
    def is_live(self) -> bool:
        """Whether it has neither failed nor closed."""
        return self.failure is None and not self._closed

    def fail(self, error: BaseException) -> None:
        """Stop the session for this reason; the first one counts."""
        if self.failure is None and not self._closed:
            self.failure = error
            self.release(str(error))
            if self.on_failure is not None:
                self.on_failure()

    def close(self) -> None:
        """Record nothing more: the run's ownership is about to end."""
        self.release(_CLOSED)
        self._closed = True
        self._watch.close()
        if not self._is_running:
            self._mailbox.close(_discard)

    def release(self, reason: str) -> None:
        """Let go of everybody who waits for the run's end, since it will not come in this session."""
        self.stopped = self.stopped or reason
        self.state.done.set()
        self._watch.enrol()

    async def _mailbox_loop(self) -> None:
        """The actor's loop: one command at a time."""
        try:
            while True:
                await self._handle(await self._mailbox.take())
                while self._due:
                    await self._handle(self._due.pop())
        finally:
            self._mailbox.close(_discard)

    async def _handle(self, command: Command) -> None:
        match command:
            case SealRun(reply):
                await answer(reply, self.seal)
            case CancelRun(principal, reason, reply):
                await answer(reply, lambda: self.cancel_run(principal, reason))
            case AttendInbox(reply):
                await answer(reply, self._attend)
            case SealDue():
                await self._seal_quietly()
            case SignDue():
                await self._sign_quietly()
            case InboxDue():
                await self._attend_quietly()

    async def _attend(self) -> int:
        await self.inbox.attend()
        return self.stream.tip

    async def _attend_quietly(self) -> None:
        if self.failure is not None:
            return
        try:
            await self._attend()
        except LogError:
            # An effect that could not be recorded has stopped the session. A request that could not be read or answered stands:
            # for the next look, or for the next owner.
            logger.warning("the inbox of run %s could not be attended to", self.stream.id, exc_info=True)

    async def seal(self, principal: str = "", causation_id: str = "", *, anew: bool = True) -> Event:
        """Seal and check what is recorded; of a run that nobody drives, close first what its last driver left open."""
        if self.sealing is None:
            raise RuntimeError("this session was opened without a sealer")
        try:
            await self._close_open_calls()
            return await self.sealing.seal(principal=principal, causation_id=causation_id, anew=anew)
        except LogError as error:
            self.fail(error)
            raise

    async def _seal_quietly(self) -> None:
        """Seal because it is time to. That it failed is told to the host's log; the events stand and can be sealed later."""
        try:
            await self.seal(anew=False)
        except Exception:
            logger.exception("run %s could not be sealed", self.stream.id)

    async def _sign_quietly(self) -> None:
        try:
            if self.sealing is not None and self.is_live:
                await self.sealing.sign()
        except LogError as error:
            self.fail(error)
        except Exception:
            logger.exception("run %s could not be signed on the way", self.stream.id)
        finally:
            self._is_signing = False

    async def _close_open_calls(self) -> None:
        if self.driven is None and self.state.opened and self.state.terminal is None:
            await self._close(closing_events)

    async def _close(self, closing: Callable[[Conversation], tuple[Event, ...]]) -> None:
        events = closing(fold(await history(self._log, self.stream.id)))
        if events:
            await self.record(events)

    async def cancel_run(self, principal: str, reason: str, causation_id: str = "") -> Event:
        """End the run as cancelled, on the record, unless it has ended. Only the mailbox loop calls this.

        Returns:
            The terminal event that stands.
        """
        self.is_cancelling = True
        try:
            if self.driven is not None and self.state.terminal is None:
                runtime, key = self.driven
                await runtime.stop(key, fault=FaultClass.CANCELLED)
            if self.state.opened and self.state.terminal is None:
                # Our runtime has done this already; another may not, and a run that nobody drives has nobody else for it.
                await self._close(ending_events)
            status = GoalStatus(Phase.STALLED, reason, 0, FaultClass.CANCELLED)
            await self.end(phase_event(status, principal=principal, causation_id=causation_id))
        finally:
            self.is_cancelling = False
        if self.state.terminal is None:
            raise RuntimeError("the run has no terminal event after it was cancelled")
        return self.state.terminal

    async def end_as(self, status: GoalStatus) -> None:
        """Record the end of the root goal as its status tells it; see `end`."""
        await self.end(phase_event(status))

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


def phase_event(status: GoalStatus, *, principal: str = "", causation_id: str = "") -> Event:
    """Return the goal.phase event of a root goal's status."""
    detail: dict[str, object] = {"phase": str(status.phase), "message": status.message, "steps": status.steps}
    return Event(
        Kind.GOAL_PHASE,
        error_class=status.error_class,
        principal=principal,
        causation_id=causation_id,
        detail=detail,
    )


def _discard(command: Command) -> None:
    if isinstance(command, SealRun | CancelRun | AttendInbox):
        command.reply.close()
