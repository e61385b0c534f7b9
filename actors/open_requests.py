"""What a run waits for a person to decide, and whether its brake is on: looked for in its stored rows, however many there are.

The rule: memory holds one page of rows and the requests that are open, and a row is decoded only if its bytes name a kind that
counts just then. A kind stands in a row's bytes as it is written, so none that counts is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from affidavit.actors.approvals import Approval, Approvals
from affidavit.actors.codec import STORED_TYPES
from affidavit.actors.events import Kind
from affidavit.actors.history import event_of
from affidavit.actors.logs.port import LogReader


@dataclass(frozen=True, slots=True)
class OpenRequests:
    """How a run stands with people.

    Attributes:
        undecided: The requests that nobody has decided, in the order of the calls.
        braked: Whether the brake is on.
    """

    undecided: tuple[Approval, ...] = ()
    braked: bool = False


async def open_requests(log: LogReader, run_id: str) -> OpenRequests:
    """Look through a run for what it waits for.

    Args:
        log: Where the run is.
        run_id: The run's whole id.

    Raises:
        VerificationError: A row that counts is not one canonical event.
        StoreDamaged: It holds another event than its place says.
        LogError: The log could not be read.

    Cancellation: a checkpoint per page of rows.
    """
    approvals, braked, after = Approvals(), False, 0
    while page := await log.read(run_id, after):
        after = page[-1].seq
        for row in page:
            marks = _WHILE_OPEN if approvals.undecided else _AT_FIRST
            if not any(mark in row.data for mark in marks):
                continue
            event = event_of(row, run_id)
            approvals.apply(event)
            if event.kind in _BRAKE:
                braked = event.kind == Kind.BRAKE_ENGAGED
    return OpenRequests(approvals.undecided, braked)


def _marks(kinds: Iterable[Kind]) -> tuple[bytes, ...]:
    return tuple(STORED_TYPES.get(kind, kind).encode() for kind in kinds)


_BRAKE: Final = (Kind.BRAKE_ENGAGED, Kind.BRAKE_RELEASED)
_AT_FIRST: Final = _marks((Kind.APPROVAL_REQUESTED, *_BRAKE))
# Once something is undecided, what decides it, uses it up or answers its call counts too.
_WHILE_OPEN: Final = _AT_FIRST + _marks(
    (Kind.APPROVAL_DECIDED, Kind.ACTION_ADMITTED, Kind.ACTION_REJECTED, Kind.TOOL_RESULT)
)
