"""The session: one run as a trio actor. It owns the run's event stream, its lifecycle watcher, its subscribers and its record.

`open_session` is the way in. The session does not own the model loop: whatever drives the goal reports through
`Session.reporter`, and the session makes that a stream that can be followed live, replayed, resumed and sealed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, final

import trio

from affidavit.actors.buses.port import Bus, inbox_subject
from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.errors import LogError, ResumeRefused, RunParked, SessionFailed, UnknownRun
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.ids import check_run_id, new_run_id
from affidavit.actors.logs.port import Log
from affidavit.actors.nurseries import TasksFailed, beyond_cancellation, open_owned_nursery, open_services
from affidavit.actors.projection import Projection
from affidavit.actors.push_readers import Handler, PushReaders
from affidavit.actors.reporter import Reporter
from affidavit.actors.run_state import RunState
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.sealer import Sealer
from affidavit.actors.session_commands import AttendInbox, CancelRun, SealRun
from affidavit.actors.session_core import PARK_GRACE, SessionCore, phase_event
from affidavit.actors.stream import Stream
from affidavit.actors.subscription import Subscription
from affidavit.actors.timer import DEFAULT_POLL, DEFAULT_STREAM_POLL, Timer

# What opens a run or a further round of it. A runtime that could report these could reopen a finished run.
_OWN_KINDS: Final = frozenset({Kind.SESSION_STARTED, Kind.USER_MESSAGE})


@final
class SessionReporter:
    """Records whatever drives the run onto the session's stream. Implements the `Reporter` port."""

    def __init__(self, core: SessionCore) -> None:
        """Use `Session.reporter`."""
        self._core = core

    async def report(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append; see the port.

        Raises:
            ValueError: One of them is of a kind that only the session itself writes.
        """
        for event in events:
            if event.kind in _OWN_KINDS or event.kind.startswith("record."):
                raise ValueError(f"{event.kind} is written by the session alone")
        return await self._core.record(events)


@final
class Session:
    """A conversational run: live stream and signed record in one. Made by `open_session`."""

    def __init__(self, core: SessionCore, readers: PushReaders) -> None:
        """Use `open_session`."""
        self._core = core
        self._readers = readers
        self._reporter = SessionReporter(core)

    @property
    def id(self) -> str:
        """The run's id: the name of its stream, its bus subject and its goal."""
        return self._core.stream.id

    @property
    def reporter(self) -> Reporter:
        """Records the conversation onto this session's stream. Wire it into whatever drives the run."""
        return self._reporter

    @property
    def projection(self) -> Projection:
        """The run's status, folded from everything recorded so far."""
        return self._core.state.projection

    @property
    def finished(self) -> bool:
        """Whether the run's terminal event stands."""
        return self._core.state.terminal is not None

    async def submit(self, runtime: Runtime, spec: GoalSpec) -> GoalKey:
        """Open the session with an objective, hand the goal to a runtime, and watch it to its end.

        The goal is named after the session, so one id addresses stream and goal.

        Args:
            runtime: Drives the goal; its lifetime is the caller's.
            spec: The goal.

        Raises:
            RuntimeError: The session was opened before.
            Exception: What kept the runtime from beginning; session.stalled then stands.

        Cancellation: once session.started is recorded, the run exists and can be resumed.
        """
        spec = replace(spec, name=self.id)
        detail = {"spec": spec.as_detail(), **runtime.describe(spec)}
        await self._core.record((Event(Kind.SESSION_STARTED, text=spec.objective, detail=detail),))
        core = self._core
        core.attach(runtime, GoalKey(self.id))
        try:
            key = await self._hand_over(runtime, spec)
        except BaseException as error:
            # Nobody watches a goal that did not begin, so nobody may wait for it either.
            core.release(f"its goal did not begin: {error}")
            raise
        core.watch()
        return key

    async def _hand_over(self, runtime: Runtime, spec: GoalSpec) -> GoalKey:
        try:
            return await runtime.submit(spec, self._reporter)
        except Exception as error:
            reason = f"the goal could not be started: {error}"
            ended = phase_event(GoalStatus(Phase.STALLED, reason, 0, FaultClass.TERMINAL))
            # If the record cannot be extended, the session has failed, and the caller still hears of the first cause.
            with suppress(LogError):
                await self._core.end(ended)  # noqa: ASYNC120  # if this is cancelled, the run is parked and can be resumed
            raise

    async def resume(self, runtime: Runtime, key: GoalKey) -> None:
        """Attach to a goal that was submitted before and watch it to its end. No second session.started is recorded.

        Of a finished run nothing is written, and `wait` returns what stands.

        Raises:
            UnknownRun: Nothing was ever recorded under this id.
            ResumeRefused: The runtime may not go on with it, or the key names another run's goal.
            RuntimeError: The goal is being driven already.
        """
        core, state = self._core, self._core.state
        if not state.opened:
            raise UnknownRun(f"there is no run {self.id} to resume")
        if key.name != self.id:
            raise ResumeRefused(f"goal {key.name} does not belong to run {self.id}")
        if self.finished or state.ended_phase is not None:
            core.taken_up = True
            core.wake()
            await trio.lowlevel.checkpoint()
            if state.ended_phase is not None:
                # The goal's end may stand without the terminal event that belongs to it: another writer's crash.
                await core.end(state.ended_phase)
            return
        core.attach(runtime, key)
        try:
            await runtime.resume(key, self._reporter)
        except Exception as error:
            core.detach(f"it could not be resumed: {error}")
            raise
        except BaseException as error:
            core.release(f"its goal was not taken up again: {error}")
            raise
        core.watch()

    async def wait(self) -> str:
        """Wait for the terminal event of the latest submit or resume.

        Returns:
            The final answer.

        Raises:
            Stalled: The run stalled (`RunCancelled` if it was cancelled).
            RunParked: The session was closed, or its goal stopped, before the run ended; it can be resumed.
            SessionFailed: The session stopped because of a fault; the cause says which. The run can be resumed.
            RuntimeError: Nothing was submitted or resumed, and the run has not ended.

        Cancellation: only the waiting ends.
        """
        core = self._core
        if not self.finished and core.driven is None and not core.stopped:
            raise RuntimeError("there is nothing to wait for: submit a goal or resume the run first")
        await core.state.done.wait()
        while not self.finished and core.failure is None and not core.stopped:
            # It was let go and, before this task ran, taken up again: what counts is the latest.
            await core.state.done.wait()
        if self.finished:
            return core.state.outcome()
        if core.failure is not None:
            raise SessionFailed(f"run {self.id} stopped: {core.failure}") from core.failure
        raise RunParked(f"run {self.id} was parked: {core.stopped}")

    def subscribe(self, after_seq: int = 0) -> AbstractAsyncContextManager[Subscription]:
        """Open a subscription: every event after `after_seq`, the backlog first, then the tail, in order, each once.

        It does not end at a terminal event; it ends with its block, with the session, or when the bus has ended and there is no
        poll floor.

        Raises:
            ValueError: `after_seq` is negative.
        """
        return self._core.stream.subscribe(after_seq)

    async def attach(self, handler: Handler, after_seq: int = 0) -> None:
        """Call `handler` with every event after `after_seq`, in a task of the session's own.

        A handler that raises is dropped and logged; one that stalls holds up itself alone. When the session closes, handlers
        are given a moment to take what is on the record by then.

        Raises:
            ValueError: `after_seq` is negative.
        """
        await trio.lowlevel.checkpoint()
        self._readers.start(handler, after_seq)

    async def seal(self) -> Event:
        """Seal everything recorded so far into a signed record and have it checked.

        Returns:
            The record.sealed event.

        Raises:
            RuntimeError: The session has no sealer, or ended before it answered.
            SealRefused: There is nothing to seal.
            VerificationError: The record does not verify; record.rejected stands with the code.

        Cancellation: a seal once asked for is made all the same.
        """
        if self._core.sealing is None:
            raise RuntimeError("this session was opened without a sealer")
        return await self._core.ask(SealRun, Event)

    async def cancel(self, *, principal: str, reason: str) -> Event:
        """End the run: close its calls as cancelled and record session.stalled with who asked and why.

        Args:
            principal: Who asks.
            reason: Why.

        Returns:
            The terminal event; the one that stands if the run had ended already.

        Raises:
            RuntimeError: The session was never opened, or ended before it answered.
            LogError: It could not be recorded.

        Cancellation: a cancellation once asked for is carried out all the same.
        """
        return await self._core.ask(partial(CancelRun, principal, reason), Event)

    async def attend(self) -> None:
        """Carry out and answer what other processes have asked of the run's owner; see `affidavit.actors.inbox`.

        A session that drives a goal does so by itself. This is for one that was opened for the purpose.

        Raises:
            LogError: It could not be recorded.
            RuntimeError: The session ended before it was done.

        Cancellation: what was begun is carried out all the same.
        """
        await self._core.ask(AttendInbox, int)


@asynccontextmanager
async def open_session(
    log: Log,
    bus: Bus,
    *,
    id: str | None = None,  # the contract's own name for it
    clock: Clock | None = None,
    poll_interval: float = DEFAULT_POLL,
    stream_poll: float = DEFAULT_STREAM_POLL,
    sealer: Sealer | None = None,
    timer: Timer | None = None,
) -> AsyncIterator[Session]:
    """Open a session, new or of a run that exists, and hold the run's ownership while the block lasts.

    Args:
        log: Where the events are made durable.
        bus: Where readers are woken.
        id: The run's id, one token of `[A-Za-z0-9_-]{1,128}`; a fresh UUIDv7 by default.
        clock: Times polls and events; the machine's by default.
        poll_interval: Seconds between two looks at the goal's status.
        stream_poll: Seconds after which a reader re-reads the log even if no wake came; 0 or less turns that floor off, and the
            bus alone keeps readers going.
        sealer: Seals the run at its end, at park and on demand; None leaves it unsealed.
        timer: A timer shared by many sessions over this log, whose intervals then count; by default the session has its own.

    Yields:
        The session. Leaving the block normally waits for the run; leaving it by an exception or cancellation parks the run,
        within 5 s: it stays resumable.

    Raises:
        ValueError: The id is not one token.
        RunOwned: Another owner has the run.
        SessionFailed: A task of the session failed, or the record could not be extended; the cause says why.
        BaseException: The body's own exception, as itself.
    """
    clock = clock or SystemClock()
    run_id = check_run_id(id) if id is not None else new_run_id(clock.now_ns())
    async with log.own(run_id):
        state = RunState()
        events = await history(log, run_id)
        for event in events:
            state.apply(event)
        has_floor = stream_poll > 0 if timer is None else timer.has_floor
        stream = Stream(log, bus, run_id, clock, tip=len(events), has_floor=has_floor)
        core: SessionCore | None = None
        own: BaseException | None = None
        try:
            async with open_services() as services, open_owned_nursery() as nursery:
                start = services.start_soon
                ticking = timer or Timer(log, clock, poll_interval, stream_poll, start)
                core = SessionCore(log, stream, state, clock, sealer, ticking, start)
                # Cancels the caller's block, which lies within this nursery; what failed is said below.
                core.on_failure = partial(nursery.cancel_scope.cancel, reason="the session failed")
                readers = PushReaders(stream, nursery)
                async with bus.subscribe(inbox_subject(run_id), core):
                    try:
                        yield Session(core, readers)
                        await core.settle()
                    except BaseException as error:
                        own = beyond_cancellation(error)
                        # Shielded, so that a cancelled host still closes the run's begun calls and leaves a sealed record.
                        with trio.CancelScope(shield=True, deadline=trio.current_time() + PARK_GRACE):
                            await core.park()
                            await readers.drain()
                        raise
                    await readers.drain()
        except TasksFailed as group:
            if own is not None:
                raise
            raise SessionFailed(f"a task of run {run_id} failed") from group
        finally:
            if core is not None:
                core.close()
            stream.readers.end_all("the session was closed")
            if sealer is not None:
                sealer.forget(run_id)
        if core.failure is not None:
            raise SessionFailed(f"run {run_id} stopped: {core.failure}") from core.failure
