"""How a session's run stops: cancelled, on the record and for good, or parked, to be resumed."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final, final

import trio

from affidavit.actors.crew import Stop
from affidavit.actors.errors import LogError, RunFinished, UnknownGoal
from affidavit.actors.events import Event, FaultClass
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.recovery import child_cancelled, closing_events
from affidavit.actors.runtime_port import DelegatingRuntime, Runtime
from affidavit.actors.session_record import CLOSED, SessionRecord, phase_event
from affidavit.actors.session_seals import SessionSeals

logger = logging.getLogger(__name__)

# Seconds that a session which is left by an error or a cancellation may take to park its run.
PARK_GRACE: Final = 5.0
# Seconds of these that its runtime may take to stop; the rest is for what the session then records and seals.
STOP_GRACE: Final = 4.0
# Seconds that a runtime may take to stop a run which is being cancelled. After that it is ended on the record all the same.
CANCEL_GRACE: Final = 5.0
# Seconds before a runtime is asked again to end a goal that it does not have at work yet.
LOOK_AGAIN: Final = 0.01


@final
class SessionEnds:
    """The ways in which one session lets its run end."""

    def __init__(self, record: SessionRecord, seals: SessionSeals) -> None:
        """Bind a run's record to its seals."""
        self._record = record
        self._seals = seals

    async def cancel(self, principal: str, reason: str, causation_id: str = "") -> Event:
        """End the run as cancelled, on the record, unless it has ended. Only the mailbox loop calls this.

        Returns:
            The terminal event that stands.
        """
        record = self._record
        status = GoalStatus(Phase.STALLED, reason, 0, FaultClass.CANCELLED)
        phase = record.cancelling = phase_event(status, principal=principal, causation_id=causation_id)
        try:
            if record.driven is not None and record.state.terminal is None:
                await self._stop_for_good(*record.driven)
            await record.end(phase)
        finally:
            record.cancelling = None
        if record.state.terminal is None:
            raise RuntimeError("the run has no terminal event after it was cancelled")
        return record.state.terminal

    async def cancel_goal(self, goal: str, stop: Stop) -> Event:
        """End one goal that work was handed to, and those below it, on the record. Only the mailbox loop calls this.

        What drives the run has a grace for it. After that they are ended without it, and what it still reports on them is
        refused.

        Returns:
            The child.completed event that stands.

        Raises:
            UnknownGoal: The run has no such goal.
            RunFinished: The run has ended.
            RuntimeError: What drives the run cannot end a part of it.
            LogError: It could not be recorded.
        """
        record, state = self._record, self._record.state
        if all(child.id != goal for child in state.projection.fanout):
            raise UnknownGoal(f"run {record.stream.id} has handed work to no goal {goal}")
        driver = record.driven if record.driven is not None and not state.done.is_set() else None
        if driver is None:
            if goal not in state.folded_back:
                await record.close_calls(lambda root: child_cancelled(root, goal, stop))
        elif not isinstance(driver[0], DelegatingRuntime):
            raise RuntimeError("what drives this run cannot end a part of it")
        else:
            await self._stop_goal(driver[0], driver[1], goal, stop)
            if self._is_going(goal):
                await self._cut_off(goal, stop)
        if goal not in state.folded_back:
            raise RunFinished(f"run {record.stream.id} stopped before its goal {goal} could be ended")
        return state.folded_back[goal]

    async def _stop_goal(self, runtime: DelegatingRuntime, key: GoalKey, goal: str, stop: Stop) -> None:
        """Have the runtime end a goal of the run, within the grace.

        Raises:
            LogError: What it had to record could not be.
        """
        try:
            with trio.move_on_after(CANCEL_GRACE) as scope:
                # A goal that has just been recorded may not be at work yet.
                while self._is_going(goal) and not await runtime.cancel_child(key, goal, stop):  # noqa: ASYNC110  # it tells nobody
                    await trio.sleep(LOOK_AGAIN)
            if scope.cancelled_caught:
                self._tell_overdue(CANCEL_GRACE, f"goal {goal}")
        except LogError:
            raise
        except Exception:
            logger.exception("goal %s could not be stopped", goal)

    async def _cut_off(self, goal: str, stop: Stop) -> None:
        """End a goal, and those below it, without what drives it."""
        record = self._record
        goals = {goal}
        for child in record.state.projection.fanout:  # none comes before its parent
            if child.parent in goals:
                goals.add(child.id)
        # From here on, so that nothing of theirs comes between what is read of the run and their ends.
        record.cut_off.update(goals)
        await record.close_calls(lambda root: child_cancelled(root, goal, stop))

    def _is_going(self, goal: str) -> bool:
        record = self._record
        return record.is_live and not record.state.done.is_set() and goal not in record.state.folded_back

    async def settle(self) -> None:
        """Wait for the run that is going, and leave its record sealed."""
        record = self._record
        while True:
            if record.driven is not None and record.failure is None:
                await record.state.done.wait()
            async with record.talk:
                # Somebody may have said something meanwhile.
                if record.driven is None or record.failure is not None or record.state.done.is_set():
                    await self._park()
                    return

    async def let_go(self) -> bool:
        """Have nothing more said in this session, since what drives the run is about to go.

        Returns:
            Whether the run has ended; something may just have been said, and then it goes on.
        """
        record = self._record
        async with record.talk:
            if record.state.terminal is None and not record.stopped and record.failure is None:
                return False
            record.driver = None
            if record.on_release is not None:
                record.on_release()
            return True

    async def park(self) -> None:
        """Stop what is still going, keep the run resumable, and seal what stands: complete or not, the record says which."""
        async with self._record.talk:
            await self._park()

    async def _park(self) -> None:
        record = self._record
        record.driver = None
        record.stopped = record.stopped or CLOSED
        if record.driven is not None and record.state.terminal is None:
            await self._stop(*record.driven)
            await self._close_begun()
        # What was lost has stopped the session already, and is told there.
        with suppress(LogError):
            await record.stream.settled()
        record.release(CLOSED)
        if record.failure is None and self._seals.is_possible and record.taken_up:
            await self._seals.seal_quietly()

    async def _stop(self, runtime: Runtime, key: GoalKey) -> None:
        try:
            with trio.move_on_after(STOP_GRACE) as scope:
                await runtime.stop(key, fault=FaultClass.INTERRUPTED)
            if scope.cancelled_caught:
                self._tell_overdue(STOP_GRACE)
        except Exception as error:
            # The caller's own exception may be on its way out, and nothing may take its place.
            logger.exception("the goal of run %s could not be stopped", self._record.stream.id)
            self._record.fail(error)

    async def _stop_for_good(self, runtime: Runtime, key: GoalKey) -> None:
        """Have the runtime stop. Whether it does or not, the run then ends on the record, and nothing more can be reported on it.

        Raises:
            LogError: What it had to record could not be.
        """
        try:
            with trio.move_on_after(CANCEL_GRACE) as scope:
                await runtime.stop(key, fault=FaultClass.CANCELLED)
            if scope.cancelled_caught:
                self._tell_overdue(CANCEL_GRACE)
        except LogError:
            raise
        except Exception:
            logger.exception("the goal of run %s could not be stopped", self._record.stream.id)

    def _tell_overdue(self, grace: float, what: str = "") -> None:
        what = what or f"run {self._record.stream.id}"
        logger.warning("what drives %s did not stop within %g s; it is left behind", what, grace)

    async def _close_begun(self) -> None:
        """Record begun actions as interrupted, where the runtime did not do so itself, and let it report no more."""
        record = self._record
        record.is_shut = True
        if record.is_live and record.state.terminal is None and record.state.open_ends.has_actions:
            try:
                await record.close_calls(closing_events)
            except LogError as error:
                record.fail(error)
