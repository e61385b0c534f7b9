"""What a run waits for a person to decide, with the exact arguments: as a fold of its events, and in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from affidavit.actors.approvals import Approval, Approvals
from affidavit.actors.events import Event, Kind
from affidavit.tools._verify_report import plain
from affidavit.tools.asking import system_name
from affidavit.tools.goals import goal_label
from affidavit.tools.governance_words import when
from affidavit.tools.lookalikes import lookalike_line
from affidavit.tools.place import Place


@dataclass(frozen=True, slots=True)
class Wait:
    """A call that waits for a person.

    Attributes:
        approval: The request.
        arguments: The exact arguments as they stand on the record; None if they are not those that approval was asked for.
    """

    approval: Approval
    arguments: str | None


@final
class Waits:
    """What one run waits for. Each event counts once, in order.

    Attributes:
        seq: The seq of the last event that counted.
        braked: Whether the brake is on: then nothing is waited for, since every call is refused.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        """Begin with what a run's events say."""
        self.seq = 0
        self.braked = False
        self._approvals = Approvals()
        self._calls: dict[tuple[str, str], Event] = {}
        self._under_way: set[int] = set()
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take one event of the run."""
        if event.seq <= self.seq:
            return
        self.seq = event.seq
        self._approvals.apply(event)
        place = (event.goal, event.tool_use_id)
        match event.kind:
            case Kind.TOOL_CALL:
                self._calls[place] = event
            case Kind.TOOL_RESULT:
                self._calls.pop(place, None)
            case Kind.ACTION_ADMITTED:
                self._under_way.add(event.call)
            case Kind.ACTION_COMPLETED:
                self._under_way.discard(event.call)
            case Kind.BRAKE_ENGAGED | Kind.BRAKE_RELEASED:
                self.braked = event.kind == Kind.BRAKE_ENGAGED

    def standing(self) -> tuple[Wait, ...]:
        """Return every request that nobody has decided, in the order of the calls."""
        return tuple(Wait(approval, self._arguments(approval)) for approval in self._approvals.undecided)

    def on_nothing_else(self, now: int) -> bool:
        """Tell whether the run can only go on once a person has decided, as far as its record says.

        Args:
            now: Unix nanoseconds; what has expired is not waited for.
        """
        if self.braked or self._under_way:
            return False
        return any(approval.expires > now for approval in self._approvals.undecided)

    def _arguments(self, approval: Approval) -> str | None:
        call = self._calls.get((approval.goal, approval.tool_use_id))
        return None if call is None or call.args_digest != approval.args else call.input


def waits_words(waits: Iterable[Wait]) -> str:
    """Return what a run waits for in a few words; empty for nothing."""
    calls = ", ".join(str(wait.approval.call) for wait in waits)
    return f"waits for approval of call {calls}" if calls else ""


def wait_lines(wait: Wait) -> Iterator[str]:
    """Go through the lines that tell what a person is to decide."""
    approval = wait.approval
    by = f" by {', '.join(map(plain, approval.approvers))}" if approval.approvers else ""
    signed = "; the decision must be signed" if approval.signed else ""
    of = f" of child {plain(goal_label(approval.goal))}" if approval.goal else ""
    yield f"call {approval.call}: {plain(approval.action)}{of} waits for approval{by}{signed}"
    yield f"  asked at event {approval.requested}, until {when(approval.expires)}"
    if wait.arguments is None:
        yield "  its arguments are NOT those on the record: it cannot be approved"
    else:
        yield from argument_lines(wait.arguments)


def argument_lines(arguments: str) -> Iterator[str]:
    """Go through the lines that show exact arguments, and beneath them what in them may be taken for something else."""
    yield f"  with {plain(arguments)}"
    doubtful = lookalike_line(arguments)
    if doubtful:
        yield f"  {doubtful}"


def decision_lines(place: Place, run_id: str, approval: Approval) -> Iterator[str]:
    """Go through the command lines that approve a call and that refuse it, with what whoever reads them has to fill in."""
    named = not approval.approvers or system_name() in approval.approvers
    by = (() if named else ("--as", "YOUR_NAME")) + (("--key", "YOUR_KEY_FILE") if approval.signed else ())
    yield place.line("approve", run_id, str(approval.call), *by)
    yield place.line("approve", run_id, str(approval.call), "--refuse", "--reason", "WHY", *by)
