"""The run's book: what all goals of a run share, as a fold of its stream. Calls, budgets, open actions, approvals, the brake.

One book for each driver of a run, advanced in the order of the stream. It judges nothing; the deciders do, over a `Standing`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, final

import trio

from affidavit.actors.amounts import NOTHING, Amounts, reserved_by, used_by
from affidavit.actors.approvals import Approvals
from affidavit.actors.deciders.fanout import SPAWN_ACTION
from affidavit.actors.deciders.port import Action, Standing
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.json_values import same_input

# How many tool calls back a breaker can look: of one goal for what repeats itself, of all goals for what fails.
WINDOW: Final = 64


@dataclass(frozen=True, slots=True)
class OpenAction:
    """An admitted action that has not ended on the record.

    Attributes:
        call: Its correlation id.
        name: The action.
        goal: The goal it ran for.
        trust: Its trust level.
        turn: Its turn.
        tool_use_id: The tool call it serves, empty for a model call.
        idempotent: Whether it may be run again.
        reserved: What it holds back of the budgets.
    """

    call: int
    name: str
    goal: str
    trust: str
    turn: int
    tool_use_id: str
    idempotent: bool
    reserved: Amounts


@final
class RunBook:
    """The shared state of one run.

    Attributes:
        open_actions: Admitted actions without an end, by call, in call order.
        used: What ended actions have used; interrupted ones have used what they held back.
        last_call: The largest correlation id on the record.
        turns: Model turns begun since a person last spoke, of all goals together.
        brake: Why nothing further may begin; None while it may.
        approvals: What waits for a person, or was decided and not used yet.
    """

    def __init__(self) -> None:
        """Begin with an empty stream."""
        self.open_actions: dict[int, OpenAction] = {}
        self.used = NOTHING
        self.last_call = 0
        self.turns = 0
        self.brake: str | None = None
        self.approvals = Approvals()
        # What each goal has asked for, so that the calls of many others do not push its own out of sight.
        self._asked: dict[str, deque[bytes]] = {}
        # Counted when a call is asked for: by the time it is judged, those of its own turn may have left the window.
        self._repeats: dict[tuple[str, str], int] = {}
        self._endings: deque[bool] = deque(maxlen=WINDOW)
        # Counted from the admission on, so that of two delegations at once both count.
        self._children: dict[str, int] = {}
        # Set and replaced each time something was decided that a waiting action may go on by.
        self._changed = trio.Event()
        # Made for whoever waits for others to end, set and forgotten when one has.
        self._freed: trio.Event | None = None

    def __eq__(self, other: object) -> bool:
        """Whether the other was folded to the same state."""
        return isinstance(other, RunBook) and self._state() == other._state()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _state(self) -> tuple[object, ...]:
        counts = (self.used, self.last_call, self.turns, self.brake)
        return (
            *counts,
            self.open_actions,
            self.approvals,
            self._asked,
            self._repeats,
            self._endings,
            self._children,
        )

    @property
    def changed(self) -> trio.Event:
        """Set when an approval has been decided or the brake been pulled; a fresh one then takes its place."""
        return self._changed

    @property
    def freed(self) -> trio.Event:
        """Set once a running action has ended, or something was decided, since this was first asked for."""
        if self._freed is None:
            self._freed = trio.Event()
        return self._freed

    def standing(self, action: Action, now: int) -> Standing:
        """Return where the run stands as far as an action is concerned.

        Args:
            action: The action.
            now: Unix nanoseconds.
        """
        held = sum((running.reserved for running in self.open_actions.values()), NOTHING)
        return Standing(
            spent=self.used + held,
            held=held,
            turns=self.turns,
            brake=self.brake,
            approval=self.approvals.of(action.goal, action.tool_use_id) if action.tool_use_id else None,
            repeats=self._repeats.get((action.goal, action.tool_use_id), 0),
            endings=tuple(self._endings),
            now=now,
            children=self._children.get(action.goal, 0),
        )

    def apply(self, event: Event) -> None:
        """Fold one event of the run, whichever goal it belongs to."""
        step = _STEPS.get(event.kind)
        if step is not None:
            step(self, event)
        self.approvals.apply(event)
        if event.kind in _WAKING:
            self._changed.set()
            self._changed = trio.Event()
        if self._freed is not None and event.kind in _FREEING:
            self._freed.set()
            self._freed = None

    def _admitted(self, event: Event) -> None:
        self.last_call = max(self.last_call, event.call)
        self.open_actions[event.call] = OpenAction(
            call=event.call,
            name=event.action,
            goal=event.goal,
            trust=event.trust,
            turn=event.turn,
            tool_use_id=event.tool_use_id,
            idempotent=event.detail.get("idempotent") is True,
            reserved=reserved_by(event.detail),
        )
        if event.action == SPAWN_ACTION and event.tool_use_id:
            self._children[event.goal] = self._children.get(event.goal, 0) + 1

    def _completed(self, event: Event) -> None:
        self.open_actions.pop(event.call, None)
        self.used += used_by(event.detail)
        if event.tool_use_id and event.error_class not in _STOPPED:
            self._endings.append(bool(event.error_class))
        if event.action == SPAWN_ACTION and event.tool_use_id and event.error_class:
            self._children[event.goal] = self._children.get(event.goal, 1) - 1

    def _numbered(self, event: Event) -> None:
        self.last_call = max(self.last_call, event.call)

    def _rejected(self, event: Event) -> None:
        self._numbered(event)
        self.open_actions.pop(event.call, None)

    def _turn(self, event: Event) -> None:
        self.turns += 1

    def _said(self, event: Event) -> None:
        """Begin anew what looks for a run that goes round in circles: a person has just turned it. What is spent stays spent."""
        self.turns = 0
        self._asked.clear()
        self._endings.clear()

    def _tool_call(self, event: Event) -> None:
        asked = sha256(b"%s\0%s" % (event.tool.encode(), same_input(event.input))).digest()
        earlier = self._asked.setdefault(event.goal, deque(maxlen=WINDOW))
        earlier.append(asked)
        self._repeats[event.goal, event.tool_use_id] = earlier.count(asked)

    def _tool_result(self, event: Event) -> None:
        self._repeats.pop((event.goal, event.tool_use_id), None)

    def _engaged(self, event: Event) -> None:
        self.brake = f"{event.principal}: {event.reason}" if event.reason else event.principal

    def _released(self, event: Event) -> None:
        self.brake = None


# What was stopped from outside has not failed by itself, and trips no breaker.
_STOPPED: Final = frozenset({FaultClass.CANCELLED, FaultClass.INTERRUPTED})
_WAKING: Final = frozenset({Kind.APPROVAL_DECIDED, Kind.BRAKE_ENGAGED})
_FREEING: Final = _WAKING | {Kind.ACTION_COMPLETED, Kind.ACTION_REJECTED}
_STEPS: Final[dict[str, Callable[[RunBook, Event], None]]] = {
    Kind.ACTION_ADMITTED: RunBook._admitted,  # noqa: SLF001  # the class's own steps
    Kind.ACTION_COMPLETED: RunBook._completed,  # noqa: SLF001
    Kind.ACTION_REJECTED: RunBook._rejected,  # noqa: SLF001
    Kind.APPROVAL_REQUESTED: RunBook._numbered,  # noqa: SLF001
    Kind.USER_MESSAGE: RunBook._said,  # noqa: SLF001
    Kind.TURN_STARTED: RunBook._turn,  # noqa: SLF001
    Kind.TOOL_CALL: RunBook._tool_call,  # noqa: SLF001
    Kind.TOOL_RESULT: RunBook._tool_result,  # noqa: SLF001
    Kind.BRAKE_ENGAGED: RunBook._engaged,  # noqa: SLF001
    Kind.BRAKE_RELEASED: RunBook._released,  # noqa: SLF001
}
