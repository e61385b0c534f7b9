"""What the timer does for one session: looks how its goal stands, and whether the log holds what no wake told of.

A session enrols only while it has a use for it: a goal that is being driven or could be gone on with, or a reader. Without these
it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from affidavit.actors.events import FaultClass
from affidavit.actors.goal import GoalStatus, Phase
from affidavit.actors.runtime_port import ConversingRuntime, TellingRuntime
from affidavit.actors.session_inbox import SessionInbox
from affidavit.actors.session_record import SessionRecord, phase_event
from affidavit.actors.timer import Timer

_RUNNING: Final = Phase.RUNNING


@final
class SessionWatch:
    """The visits of one session."""

    __slots__ = ("_inbox", "_record", "_timer", "_wake")

    def __init__(
        self,
        record: SessionRecord,
        inbox: SessionInbox,
        wake: Callable[[], None],
        timer: Timer,
    ) -> None:
        """Enrol for nothing yet.

        Args:
            record: What is looked after.
            inbox: What others ask of it.
            wake: Called when there is more in the inbox.
            timer: Makes the visits.
        """
        self._record = record
        self._inbox = inbox
        self._wake = wake
        self._timer = timer

    def follow(self) -> None:
        """Look after the goal from now on."""
        record = self._record
        if record.driven is not None and record.state.terminal is None and record.is_live:
            runtime, key = record.driven
            if isinstance(runtime, TellingRuntime):
                runtime.tell(key, self._look_soon)
            else:
                self._look_soon()
        self.enrol()

    def enrol(self) -> None:
        """Enrol for what the session now needs, and leave what it no longer does. To be called when any of that has changed."""
        record = self._record
        is_going = record.driven is not None and record.is_live and not record.state.done.is_set()
        if not is_going:
            self._timer.goals.leave(self)
        # Others may want to say something on a run that has ended, as long as something here would answer.
        is_open = record.driver is not None and isinstance(record.driver.runtime, ConversingRuntime)
        if self._timer.has_floor and record.is_live and (is_going or is_open or len(record.stream.readers)):
            self._timer.floor.enrol(self)
        else:
            self._timer.floor.leave(self)

    def close(self) -> None:
        """Visit no more, and cancel the visit that is under way."""
        self._timer.goals.drop(self)
        self._timer.floor.leave(self)

    def streams(self) -> tuple[str, ...]:
        """Name what the floor is to look at: the run while somebody reads along, and its inbox while its owner is here."""
        record = self._record
        run = (record.stream.id,) if len(record.stream.readers) else ()
        return (*run, self._inbox.stream) if record.taken_up else run

    def told(self, tips: Mapping[str, int] | None) -> None:
        """Hear from the floor how far they are; see `Member.told`."""
        record = self._record
        if tips is None:
            # Readers that look for themselves meet the reason, and tell it.
            record.stream.readers.tick()
            return
        if record.stream.id in tips:
            record.stream.readers.check(tips[record.stream.id])
        if self._inbox.stream in tips and self._inbox.has_more(tips[self._inbox.stream]):
            self._wake()

    def _look_soon(self) -> None:
        """Look how the goal stands: the floor beneath what the runtime reports, and the only signal of one that reports none."""
        record = self._record
        driven = record.driven
        if driven is None or not record.is_live:
            return
        ask, key = driven[0].status, driven[1]

        async def look() -> None:
            try:
                status = await ask(key)
                # Kept lean: of a thousand goals that wait, each passes here twenty times a second.
                if status.phase is _RUNNING and status.active:
                    return
                if record.driven is driven and record.state.terminal is None and record.is_live:
                    await self._follow_up(status)
            except Exception as error:
                record.fail(error)

        self._timer.goals.enrol(self, look)

    async def _follow_up(self, status: GoalStatus) -> None:
        record = self._record
        if record.cancelling is not None and (not status.phase.terminal or _is_cancelled(status)):
            # Its runtime has let go of it, and the terminal event, which says who asked for that, is still to come.
            return
        if status.phase.terminal:
            self._timer.goals.leave(self)
            await record.end(phase_event(status))
        elif not status.active:
            self._timer.goals.leave(self)
            record.release("nothing drives it any more")


def _is_cancelled(status: GoalStatus) -> bool:
    return status.phase is Phase.STALLED and status.error_class == FaultClass.CANCELLED
