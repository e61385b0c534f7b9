"""What a session knows of its own run: a fold of what is on its stream, and the rules for what may still be added.

Two rules live here. Nothing but the life of the record follows a terminal event. And a terminal phase of the root goal never
stands alone: the session's terminal event is put behind it, in the same append, exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, final

import trio

from affidavit.actors.approvals import Approvals
from affidavit.actors.errors import RunCancelled, RunFinished, Stalled
from affidavit.actors.events import ACTION_KINDS, TERMINAL_KINDS, Event, FaultClass, Kind
from affidavit.actors.goal import Phase
from affidavit.actors.open_ends import OpenEnds
from affidavit.actors.projection import Projection, project

_MOST_BEHIND: Final = 32
_ENDING: Final = TERMINAL_KINDS | {Kind.GOAL_PHASE}


@final
@dataclass(slots=True)
class Round:
    """One stretch of a run, from an objective or a person's words to the terminal event that answers them.

    Attributes:
        done: Set once there is nothing more to wait for: its terminal event stands, or its session has stopped.
        terminal: Its terminal event.
    """

    done: trio.Event = field(default_factory=trio.Event)
    terminal: Event | None = None


@final
class RunState:
    """Folded by the session's stream observer, in commit order."""

    def __init__(self) -> None:
        """Begin with an empty stream."""
        self._projection = Projection()
        # Durable events that are not in the projection yet, since nothing is decided by that: actions alone, which come in
        # numbers and keep little alive, and few of them, so that a look is cheap.
        self._behind: list[Event] = []
        self.opened = False
        # The latest one; whoever waits for another keeps that one.
        self.round = Round()
        self.ended_phase: Event | None = None
        self.last_seal: Event | None = None
        # What came of the last check of a seal: record.verified or record.rejected.
        self.last_check: Event | None = None
        # The seq of the last thing that was ruled about what may be done: a call approved or refused, the brake.
        self.ruled = 0
        # The requests of other processes whose effect is on the record, with its seq.
        self.effects: dict[str, int] = {}
        # The child.completed event of each goal that has folded back.
        self.folded_back: dict[str, Event] = {}
        self.approvals = Approvals()
        self.open_ends = OpenEnds()

    @property
    def projection(self) -> Projection:
        """The status of the run, up to its last durable event."""
        self._catch_up()
        return self._projection

    def _catch_up(self) -> None:
        if self._behind:
            self._projection = project(self._behind, self._projection)
            self._behind.clear()

    @property
    def terminal(self) -> Event | None:
        """The standing terminal event."""
        return self.round.terminal

    @property
    def done(self) -> trio.Event:
        """Set once the run has nothing more to wait for: its terminal event stands, or its session has stopped."""
        return self.round.done

    def apply(self, event: Event) -> None:
        """Fold one durable event."""
        self._behind.append(event)
        if event.kind not in ACTION_KINDS or len(self._behind) > _MOST_BEHIND:
            self._catch_up()
        self.approvals.apply(event)
        self.open_ends.apply(event)
        if event.causation_id:
            self.effects[event.causation_id] = event.seq
        step = _STEPS.get(event.kind)
        if step is not None:
            step(self, event)

    def _started(self, _event: Event) -> None:
        self.opened = True

    def _ended(self, event: Event) -> None:
        self.round.terminal = event
        self.done.set()

    def _phase(self, event: Event) -> None:
        if is_end_of_goal(event):
            self.ended_phase = event

    def _folded_back(self, event: Event) -> None:
        self.folded_back.setdefault(event.child, event)

    def _sealed(self, event: Event) -> None:
        self.last_seal = event

    def _checked(self, event: Event) -> None:
        self.last_check = event

    def _ruled(self, event: Event) -> None:
        self.ruled = event.seq

    def _open_again(self, _event: Event) -> None:
        self.ended_phase = None
        if self.terminal is not None:
            self.round = Round()

    def admit(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Check that events may be added now, and add the terminal event that a terminal phase brings with it.

        Raises:
            RuntimeError: The session was not opened with an objective yet.
            RunFinished: The run's terminal event stands.
        """
        if not events:
            return events
        first = events[0].kind
        if not self.opened and first != Kind.SESSION_STARTED:
            raise RuntimeError("nothing can be reported before the session was submitted or resumed")
        if self.opened and first == Kind.SESSION_STARTED:
            raise RuntimeError("this session was opened already; resume it")
        if self.terminal is not None and first != Kind.USER_MESSAGE:
            raise RunFinished(f"the run ended at seq {self.terminal.seq}; nothing can be reported on it")
        return _with_terminal(events)

    @property
    def since_record(self) -> int:
        """How many events have come since the last seal, or since the one that was refused."""
        events, check = self.projection.events, self.last_check
        told = check.seq if check is not None else 0
        return 0 if told > events else events - min(self.projection.sealed_through, events)

    @property
    def unsealed(self) -> bool:
        """Whether there are events of the run that no seal covers. Events about the record alone never call for one."""
        return self.projection.events > self.projection.sealed_through


def answer_of(terminal: Event) -> str:
    """Return the final answer that a terminal event holds.

    Raises:
        RunCancelled: The run was cancelled.
        Stalled: It stalled.
    """
    if terminal.kind == Kind.CONVERGED:
        return terminal.text
    if terminal.error_class == FaultClass.CANCELLED:
        raise RunCancelled(terminal.err, terminal.error_class, terminal.principal)
    raise Stalled(terminal.err, terminal.error_class)


def is_end_of_goal(event: Event) -> bool:
    """Tell whether an event says that the run's root goal has reached a terminal phase."""
    if event.kind != Kind.GOAL_PHASE or event.goal:
        return False
    phase = Phase.read(event.detail.get("phase"))
    return phase is not None and phase.terminal


def is_end_of_run(event: Event) -> bool:
    """Tell whether an event ends the run: its terminal event, or the terminal phase of its root goal that brings one."""
    return event.kind in TERMINAL_KINDS or is_end_of_goal(event)


def may_end(events: Iterable[Event]) -> bool:
    """Tell quickly whether any of some events could end the run; most cannot."""
    return any(event.kind in _ENDING for event in events)


def is_cancelled_end(event: Event) -> bool:
    """Tell whether an event ends the run as cancelled."""
    converged = event.kind == Kind.CONVERGED or event.detail.get("phase") == Phase.CONVERGED
    return event.error_class == FaultClass.CANCELLED and is_end_of_run(event) and not converged


def terminal_event(phase: Event) -> Event:
    """Return the session's terminal event for the root goal's terminal phase."""
    message = phase.detail.get("message")
    text = message if isinstance(message, str) else ""
    if phase.detail.get("phase") == Phase.CONVERGED:
        return Event(Kind.CONVERGED, text=text)
    return Event(
        Kind.STALLED,
        err=text,
        error_class=phase.error_class,
        error_code=phase.error_code,
        principal=phase.principal,
        causation_id=phase.causation_id,
    )


def size_of(event: Event) -> int:
    """Return the tree size that a record.* event speaks of, 0 if it names none."""
    size = event.detail.get("size")
    return size if isinstance(size, int) else 0


def _with_terminal(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Put the terminal event last, where one belongs: the first that was given, else that of the terminal phase."""
    if not may_end(events):
        return events
    rest = tuple(event for event in events if event.kind not in TERMINAL_KINDS)
    given = next((event for event in events if event.kind in TERMINAL_KINDS), None)
    if given is not None:
        return (*rest, given)
    phase = next((event for event in rest if is_end_of_goal(event)), None)
    return rest if phase is None else (*rest, terminal_event(phase))


_STEPS: Final[dict[str, Callable[[RunState, Event], None]]] = {
    Kind.SESSION_STARTED: RunState._started,  # noqa: SLF001  # the class's own steps
    Kind.USER_MESSAGE: RunState._open_again,  # noqa: SLF001
    Kind.CONVERGED: RunState._ended,  # noqa: SLF001
    Kind.STALLED: RunState._ended,  # noqa: SLF001
    Kind.GOAL_PHASE: RunState._phase,  # noqa: SLF001
    Kind.CHILD_COMPLETED: RunState._folded_back,  # noqa: SLF001
    Kind.RECORD_SEALED: RunState._sealed,  # noqa: SLF001
    Kind.RECORD_VERIFIED: RunState._checked,  # noqa: SLF001
    Kind.RECORD_REJECTED: RunState._checked,  # noqa: SLF001
    Kind.APPROVAL_DECIDED: RunState._ruled,  # noqa: SLF001
    Kind.BRAKE_ENGAGED: RunState._ruled,  # noqa: SLF001
    Kind.BRAKE_RELEASED: RunState._ruled,  # noqa: SLF001
}
