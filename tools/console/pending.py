"""What waits for a person, with the exact arguments: as a value that each event of the run moves on.

The rule: arguments are shown only if they are those that the request is bound to. They are kept whole, since a person decides by
them; what is kept is bounded in number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from affidavit.actors.events import Event, Kind

_MOST_CALLS: Final = 256
_KINDS: Final = frozenset(
    {
        *(Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.APPROVAL_REQUESTED, Kind.APPROVAL_DECIDED),
        *(Kind.ACTION_REJECTED, Kind.ACTION_ADMITTED, Kind.BRAKE_ENGAGED, Kind.BRAKE_RELEASED),
    }
)


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for a person.

    Attributes:
        call: Its number.
        action: The tool.
        goal: The goal that asks.
        args: The digest that the request is bound to.
        arguments: The exact arguments as they stand on the record; None if they are not those of the request.
        expires: Unix nanoseconds.
        approvers: Who may decide; empty for anyone.
        signed: Whether the decision must be signed.
    """

    call: int
    action: str
    goal: str
    args: bytes
    arguments: str | None
    expires: int
    approvers: tuple[str, ...] = ()
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The calls that wait, and the tool calls without a result, among which the arguments are found.

    Attributes:
        pending: What waits, in the order in which it was asked.
        calls: The tool.call events without a result, oldest first.
        braked: Whether the brake is on.
    """

    pending: tuple[Pending, ...] = ()
    calls: tuple[Event, ...] = ()
    braked: bool = False

    def arguments(self, event: Event) -> str | None:
        """Return the exact arguments that a request for approval is bound to; None if they are not on the record."""
        for call in reversed(self.calls):
            if (call.goal, call.tool_use_id) == (event.goal, event.tool_use_id):
                return call.input if call.args_digest == event.detail.get("args") else None
        return None


def with_event(waiting: Waiting, event: Event) -> Waiting:
    """Return what waits after one more event."""
    if event.kind not in _KINDS:
        return waiting
    match event.kind:
        case Kind.TOOL_CALL:
            calls = (*waiting.calls[-_MOST_CALLS + 1 :], event)
            return Waiting(waiting.pending, calls, waiting.braked)
        case Kind.TOOL_RESULT:
            place = (event.goal, event.tool_use_id)
            calls = tuple(each for each in waiting.calls if (each.goal, each.tool_use_id) != place)
            return Waiting(waiting.pending, calls, waiting.braked)
        case Kind.APPROVAL_REQUESTED:
            asked = (*_without(waiting, event.call)[-_MOST_CALLS + 1 :], _pending(waiting, event))
            return Waiting(asked, waiting.calls, waiting.braked)
        case Kind.APPROVAL_DECIDED | Kind.ACTION_REJECTED | Kind.ACTION_ADMITTED if waiting.pending:
            return Waiting(_without(waiting, event.call), waiting.calls, waiting.braked)
        case Kind.BRAKE_ENGAGED | Kind.BRAKE_RELEASED:
            return Waiting(waiting.pending, waiting.calls, event.kind == Kind.BRAKE_ENGAGED)
        case _:
            return waiting


def _without(waiting: Waiting, call: int) -> tuple[Pending, ...]:
    return tuple(each for each in waiting.pending if each.call != call)


def _pending(waiting: Waiting, event: Event) -> Pending:
    args, expires = event.detail.get("args"), event.detail.get("expires")
    who = event.detail.get("approvers")
    return Pending(
        event.call,
        event.action,
        event.goal,
        args if isinstance(args, bytes) else b"",
        waiting.arguments(event),
        expires if isinstance(expires, int) else 0,
        tuple(map(str, who)) if isinstance(who, list | tuple) else (),
        signed=event.detail.get("signed") is True,
    )
