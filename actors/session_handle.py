"""What a caller holds of a session: `Session`, made by `affidavit.actors.session.open_session`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Final, final

import trio

from affidavit.actors.approvals import Approval, Decision
from affidavit.actors.asker import checked_asker
from affidavit.actors.crew import Stop
from affidavit.actors.deltas import LiveReader
from affidavit.actors.events import Event
from affidavit.actors.fork_context import Fork
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.projection import Projection
from affidavit.actors.push_readers import Handler, PushReaders
from affidavit.actors.reporter import Reporter
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.session_commands import AttendInbox, CancelGoal, CancelRun, SealRun
from affidavit.actors.session_core import SessionCore
from affidavit.actors.session_goal import begin_goal, outcome, resume_goal
from affidavit.actors.session_reporter import SessionReporter
from affidavit.actors.subscription import Subscription


@final
class Session:
    """A conversational run: live stream and signed record in one. Made by `open_session`."""

    def __init__(self, core: SessionCore, readers: PushReaders) -> None:
        """Use `open_session`."""
        self._core = core
        self._readers = readers
        self._reporter: Final = SessionReporter(
            core.record, core.attend_if_asked, core.live.show, core.inbox.guard
        )

    @property
    def id(self) -> str:
        """The run's id: the name of its stream, its bus subject and its goal."""
        return self._core.record.stream.id

    @property
    def reporter(self) -> Reporter:
        """Records the conversation onto this session's stream. Wire it into whatever drives the run."""
        return self._reporter

    @property
    def projection(self) -> Projection:
        """The run's status, folded from everything recorded so far."""
        return self._core.record.state.projection

    @property
    def finished(self) -> bool:
        """Whether the run's terminal event stands."""
        return self._core.record.state.terminal is not None

    async def submit(self, runtime: Runtime, spec: GoalSpec, *, fork: Fork | None = None) -> GoalKey:
        """Open the session with an objective, hand the goal to a runtime, and watch it to its end.

        The goal is named after the session, so one id addresses stream and goal.

        Args:
            runtime: Drives the goal; its lifetime is the caller's.
            spec: The goal.
            fork: The point of another run that it goes on from, see `affidavit.actors.forking`.

        Raises:
            RuntimeError: The session was opened before.
            Exception: What kept the runtime from beginning; session.stalled then stands.

        Cancellation: once session.started is recorded, the run exists and can be resumed.
        """
        return await begin_goal(self._core, self._reporter, runtime, spec, fork)

    async def resume(self, runtime: Runtime, key: GoalKey) -> None:
        """Attach to a goal that was submitted before and watch it to its end. No second session.started is recorded.

        Of a finished run nothing is written, and `wait` returns what stands.

        Raises:
            UnknownRun: Nothing was ever recorded under this id.
            ResumeRefused: The runtime may not go on with it, or the key names another run's goal.
            RuntimeError: The goal is being driven already.
        """
        await resume_goal(self._core, self._reporter, runtime, key)

    async def say(self, text: str, *, principal: str, causation_id: str = "") -> int:
        """Go on with a conversation that has ended: the run is open again, and what drove it last answers.

        The goal is given its steps anew; what it may spend in tokens, money and time is not. A session opened on a run that had
        ended has to `resume` it first, which says what is to drive it.

        Args:
            text: What is said.
            principal: Who says it.
            causation_id: The request that this is the effect of; one whose effect is on the record is not said again.

        Returns:
            The seq of the user.message.

        Raises:
            ValueError: Nothing is said, or too much at once, or by nobody; see `affidavit.actors.asker`.
            RunGoing: The run has not ended. It is a RuntimeError.
            NotDriven: Nothing was submitted or resumed here, or what drives the run cannot go on. It is a RuntimeError.
            UnknownRun: Nothing was ever recorded under this id.
            ResumeRefused: The runtime may not go on with it; nothing was recorded.
            LogError: It could not be recorded.
            Exception: What kept the runtime from going on; session.stalled then stands.

        Cancellation: once user.message is recorded, the run is open and can be resumed.
        """
        return await self._core.talk.say(text, principal, causation_id)

    async def let_go(self) -> bool:
        """Have nothing more said here, since what drives the run is about to be closed.

        Returns:
            Whether the run has ended. If not, something was just said, and it is going.
        """
        return await self._core.ends.let_go()

    def effect_of(self, causation_id: str) -> int:
        """Return the seq of the last event on the record that names this request as its cause; 0 if there is none."""
        return self._core.record.state.effects.get(causation_id, 0)

    async def wait(self) -> str:
        """Wait for the terminal event of the latest submit, resume or say.

        Returns:
            The final answer.

        Raises:
            Stalled: The run stalled (`RunCancelled` if it was cancelled).
            RunParked: The session was closed, or its goal stopped, before the run ended; it can be resumed.
            SessionFailed: The session stopped because of a fault; the cause says which. The run can be resumed.
            RuntimeError: Nothing was submitted or resumed, and the run has not ended.

        Cancellation: only the waiting ends.
        """
        return await outcome(self._core.record)

    def subscribe(self, after_seq: int = 0) -> AbstractAsyncContextManager[Subscription]:
        """Open a subscription: every event after `after_seq`, the backlog first, then the tail, in order, each once.

        It does not end at a terminal event; it ends with its block, with the session, or when the bus has ended and there is no
        poll floor.

        Raises:
            ValueError: `after_seq` is negative.
        """
        return self._core.record.stream.subscribe(after_seq)

    def subscribe_live(self) -> AbstractContextManager[LiveReader]:
        """Read the model's answers in the making: pieces of text from now on, never recorded, some lost if it reads too slowly.

        The recorded answer follows on `subscribe`, whole and once. Only the process that drives the run has such pieces.
        """
        return self._core.live.subscribe()

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
        if not self._core.seals.is_possible:
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
            ValueError: It names nobody, or cannot be recorded so; see `affidavit.actors.asker`.
            RuntimeError: The session was never opened, or ended before it answered.
            LogError: It could not be recorded.

        Cancellation: a cancellation once asked for is carried out all the same.
        """
        checked_asker(principal, reason)
        return await self._core.ask(partial(CancelRun, principal, reason), Event)

    async def cancel_goal(self, goal: str, *, principal: str, reason: str) -> Event:
        """End one goal that work was handed to, and those below it; the goal above is told, and the run goes on.

        Args:
            goal: Its id, as child.spawned says it.
            principal: Who asks.
            reason: Why.

        Returns:
            The child.completed event; the one that stands if the goal had ended already.

        Raises:
            ValueError: It names nobody, or cannot be recorded so; see `affidavit.actors.asker`.
            UnknownGoal: The run has no such goal.
            RunFinished: The run ended or stopped before.
            RuntimeError: What drives the run cannot end a part of it, or the session ended before it answered.
            LogError: It could not be recorded.

        Cancellation: a cancellation once asked for is carried out all the same.
        """
        checked_asker(principal, reason)
        return await self._core.ask(partial(CancelGoal, goal, Stop(principal, reason)), Event)

    @property
    def waiting(self) -> tuple[Approval, ...]:
        """The calls that wait for a person's decision, in order; one whose time is up until the waist has said so."""
        return self._core.record.state.approvals.undecided

    async def decide(self, decision: Decision) -> Event:
        """Record what a person decided about a call that waits for approval; the call then goes on, or is refused.

        Returns:
            The approval.decided event.

        Raises:
            ApprovalRefused: Nothing waits under this number, or this person may not decide it so.
            RunFinished: The run has ended.
            RuntimeError: The session was never opened.
            LogError: It could not be recorded.

        Cancellation: Cancelled means that nothing was decided.
        """
        return await self._core.rulings.decide(decision)

    async def brake(self, *, principal: str, reason: str = "", engage: bool = True) -> Event:
        """Pull the brake: whatever is under way ends, and every further action is refused on the record. Or let it go again.

        Args:
            principal: Who asks.
            reason: Why.
            engage: Whether to pull it or to let it go.

        Returns:
            The brake.engaged or brake.released event.

        Raises:
            ValueError: It names nobody, or cannot be recorded so; see `affidavit.actors.asker`.
            RunFinished: The run has ended.
            RuntimeError: The session was never opened.
            LogError: It could not be recorded.

        Cancellation: Cancelled means that nothing was recorded.
        """
        return await self._core.rulings.brake(engage=engage, principal=principal, reason=reason)

    async def attend(self) -> None:
        """Carry out and answer what other processes have asked of the run's owner; see `affidavit.actors.inbox`.

        A session that drives a goal does so by itself. This is for one that was opened for the purpose.

        Raises:
            LogError: It could not be recorded.
            RuntimeError: The session ended before it was done.

        Cancellation: what was begun is carried out all the same.
        """
        await self._core.ask(AttendInbox, int)
