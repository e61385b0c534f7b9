"""What the timer does for one session: looks how its goal stands, and whether the log holds what no wake told of.

A session enrols only while it has a use for it: a goal that is being driven, or a reader. Without either it costs nothing.
"""

from __future__ import annotations

from typing import Protocol, final

from affidavit.actors.errors import LogError
from affidavit.actors.goal import GoalKey, GoalStatus
from affidavit.actors.logs.port import LogReader
from affidavit.actors.run_state import RunState
from affidavit.actors.runtime_port import Runtime, TellingRuntime
from affidavit.actors.session_inbox import SessionInbox
from affidavit.actors.stream import Stream
from affidavit.actors.timer import Timer


class Watched(Protocol):
    """What is looked after.

    Attributes:
        stream: The run's stream.
        state: Its fold.
        inbox: What others ask of it.
        driven: The goal, and what drives it.
        taken_up: Whether anybody submitted or resumed here.
        is_cancelling: Whether its goal is being cancelled just now.
    """

    stream: Stream
    state: RunState
    inbox: SessionInbox
    driven: tuple[Runtime, GoalKey] | None
    taken_up: bool
    is_cancelling: bool

    @property
    def is_live(self) -> bool:
        """Whether it has neither failed nor closed."""
        ...

    def wake(self) -> None:
        """Others may have asked for something."""
        ...

    def fail(self, error: BaseException) -> None:
        """Stop the session for this reason."""
        ...

    def release(self, reason: str) -> None:
        """Let go of everybody who waits for the run's end."""
        ...

    async def end_as(self, status: GoalStatus) -> None:
        """Record the end of the goal."""
        ...


@final
class SessionWatch:
    """The visits of one session."""

    def __init__(self, session: Watched, log: LogReader, timer: Timer) -> None:
        """Enrol for nothing yet."""
        self._session = session
        self._log = log
        self._timer = timer

    def follow(self) -> None:
        """Look after the goal from now on."""
        session = self._session
        if session.driven is not None and session.state.terminal is None and session.is_live:
            runtime, key = session.driven
            if isinstance(runtime, TellingRuntime):
                runtime.tell(key, self._look_soon)
            else:
                self._look_soon()
        self.enrol()

    def enrol(self) -> None:
        """Enrol for the floor, or leave it, as the session now needs it."""
        session = self._session
        is_going = session.driven is not None and not session.state.done.is_set()
        if self._timer.has_floor and session.is_live and (is_going or len(session.stream.readers)):
            self._timer.floor.enrol(self, self._poll)
        else:
            self._timer.floor.leave(self)

    def close(self) -> None:
        """Visit no more, and cancel the visit that is under way."""
        self._timer.goals.drop(self)
        self._timer.floor.drop(self)

    async def _poll(self) -> None:
        session = self._session
        readers = session.stream.readers
        try:
            if len(readers):
                info = await self._log.info(session.stream.id)
                readers.check(0 if info is None else info.tip)
            if session.taken_up and await session.inbox.has_more():
                session.wake()
        except LogError:
            # Readers that look for themselves meet the reason, and tell it.
            readers.tick()

    def _look_soon(self) -> None:
        if self._session.is_live:
            self._timer.goals.enrol(self, self._look)

    async def _look(self) -> None:
        """Look how the goal stands: the floor beneath what the runtime reports, and the only signal of one that reports none."""
        session = self._session
        driven = session.driven
        if driven is None or session.state.terminal is not None or not session.is_live:
            self._timer.goals.leave(self)
            return
        runtime, key = driven
        try:
            status = await runtime.status(key)
            if session.driven is not driven:
                return
            if status.phase.terminal:
                self._timer.goals.leave(self)
                await session.end_as(status)
                return
        except Exception as error:
            session.fail(error)
            return
        # While it is being cancelled its runtime has let go of it and its terminal event is still to come.
        if not status.active and not session.is_cancelling:
            self._timer.goals.leave(self)
            session.release("nothing drives it any more")
