"""What the timer does for one session: looks how its goal stands, and whether the log holds what no wake told of.

A session enrols only while it has a use for it: a goal that is being driven, or a reader. Without either it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from affidavit.actors.errors import LogError
from affidavit.actors.logs.port import LogReader
from affidavit.actors.runtime_port import TellingRuntime
from affidavit.actors.session_inbox import SessionInbox
from affidavit.actors.session_record import SessionRecord, phase_event
from affidavit.actors.timer import Timer


@final
class SessionWatch:
    """The visits of one session."""

    def __init__(
        self,
        record: SessionRecord,
        inbox: SessionInbox,
        wake: Callable[[], None],
        log: LogReader,
        timer: Timer,
    ) -> None:
        """Enrol for nothing yet.

        Args:
            record: What is looked after.
            inbox: What others ask of it.
            wake: Called when there is more in the inbox.
            log: Asked for the tip.
            timer: Makes the visits.
        """
        self._record = record
        self._inbox = inbox
        self._wake = wake
        self._log = log
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
        """Enrol for the floor, or leave it, as the session now needs it."""
        record = self._record
        is_going = record.driven is not None and not record.state.done.is_set()
        if self._timer.has_floor and record.is_live and (is_going or len(record.stream.readers)):
            self._timer.floor.enrol(self, self._poll)
        else:
            self._timer.floor.leave(self)

    def close(self) -> None:
        """Visit no more, and cancel the visit that is under way."""
        self._timer.goals.drop(self)
        self._timer.floor.drop(self)

    async def _poll(self) -> None:
        record = self._record
        readers = record.stream.readers
        try:
            if len(readers):
                info = await self._log.info(record.stream.id)
                readers.check(0 if info is None else info.tip)
            if record.taken_up and await self._inbox.has_more():
                self._wake()
        except LogError:
            # Readers that look for themselves meet the reason, and tell it.
            readers.tick()

    def _look_soon(self) -> None:
        if self._record.is_live:
            self._timer.goals.enrol(self, self._look)

    async def _look(self) -> None:
        """Look how the goal stands: the floor beneath what the runtime reports, and the only signal of one that reports none."""
        record = self._record
        driven = record.driven
        if driven is None or record.state.terminal is not None or not record.is_live:
            self._timer.goals.leave(self)
            return
        runtime, key = driven
        try:
            status = await runtime.status(key)
            if record.driven is not driven:
                return
            if status.phase.terminal:
                self._timer.goals.leave(self)
                await record.end(phase_event(status))
                return
        except Exception as error:
            record.fail(error)
            return
        # While it is being cancelled its runtime has let go of it and its terminal event is still to come.
        if not status.active and not record.is_cancelling:
            self._timer.goals.leave(self)
            record.release("nothing drives it any more")
