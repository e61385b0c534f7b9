"""A turn whose calls a runtime leaves open, and what must have become of them once its run has ended."""

from __future__ import annotations

from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from tests.actors.fakes import FaultLog
from tests.actors.mission_kit import check_record
from tests.actors.runtimes import RUN

# A turn with two calls, of which one has begun.
TURN = Event(Kind.TURN_STARTED, turn=1)
CALLS = (
    TURN,
    Event(Kind.ASSISTANT, turn=1, text="I pay."),
    Event(Kind.TOOL_CALL, turn=1, tool="pay", tool_use_id="t1", input="{}"),
    Event(Kind.TOOL_CALL, turn=1, tool="pay", tool_use_id="t2", input="{}"),
    Event(Kind.ACTION_ADMITTED, turn=1, action="pay", tool_use_id="t1", call=1, trust="trusted"),
)
CLOSED = [Kind.ACTION_COMPLETED, Kind.TOOL_RESULT, Kind.TOOL_RESULT, Kind.TURN_COMPLETED]
OPENED = [Kind.SESSION_STARTED, *(event.kind for event in CALLS)]


async def closed_properly(log: MemoryLog | FaultLog) -> tuple[Event, ...]:
    """Check that every call has its end and its answer, and return the events."""
    events = await history(log, RUN)
    check_record(events)
    (end,) = [event for event in events if event.kind == Kind.ACTION_COMPLETED]
    assert end.error_class == FaultClass.INTERRUPTED
    return events
