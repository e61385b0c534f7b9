"""What a run waits for is found however far back it was asked for, and is what folding every event gives."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.approvals import waiting
from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.open_requests import open_requests
from affidavit.actors.stream import Stream
from tests.actors.fakes import JumpingClock

ARGS = bytes(32)


def about(kind: Kind, call: int) -> Event:
    """An event about a call, as the waist would write it."""
    decision = {"decision": "approved"} if kind == Kind.APPROVAL_DECIDED else {"expires": 1 << 60}
    return Event(kind, action="pay", call=call, tool_use_id=f"use-{call}", detail={"args": ARGS, **decision})


NOISE = Event(Kind.ASSISTANT, text="it says approval.requested, dispatch.start, brake.engaged")
KINDS = (
    Kind.APPROVAL_REQUESTED,
    Kind.APPROVAL_DECIDED,
    Kind.ACTION_ADMITTED,
    Kind.ACTION_REJECTED,
    Kind.TOOL_RESULT,
    Kind.BRAKE_ENGAGED,
    Kind.BRAKE_RELEASED,
)
EVENTS = st.lists(
    st.builds(about, st.sampled_from(KINDS), st.integers(1, 3)) | st.just(NOISE), min_size=1, max_size=40
)


async def recorded(events: list[Event]) -> MemoryLog:
    """A log that holds one run with these events."""
    log = MemoryLog()
    await Stream(log, MemoryBus(), "run", JumpingClock(1)).append(*events)
    return log


@given(events=EVENTS)
def test_what_is_found_is_what_the_whole_run_says(events: list[Event]) -> None:
    """Passing rows over by their bytes changes nothing, whatever the order and whatever a text quotes."""

    async def check() -> None:
        log = await recorded(events)
        found = await open_requests(log, "run")
        every = await history(log, "run")
        brakes = [event.kind for event in every if event.kind in {Kind.BRAKE_ENGAGED, Kind.BRAKE_RELEASED}]
        assert found.undecided == waiting(every)
        assert found.braked == (brakes[-1:] == [Kind.BRAKE_ENGAGED])

    trio.run(check)


@pytest.mark.parametrize("kind", KINDS[1:5])
async def test_a_request_that_came_to_an_end_is_not_waited_for(kind: Kind) -> None:
    """Decided, used up, refused, or its call answered; another one goes on waiting."""
    log = await recorded(
        [about(Kind.APPROVAL_REQUESTED, 1), about(Kind.APPROVAL_REQUESTED, 2), about(kind, 1)]
    )
    found = await open_requests(log, "run")
    assert [approval.call for approval in found.undecided] == [2]


async def test_a_request_is_found_under_thousands_of_later_events() -> None:
    """However much has happened since, the call still waits."""
    log = await recorded([about(Kind.APPROVAL_REQUESTED, 7), *[NOISE] * 3000])
    found = await open_requests(log, "run")
    assert [approval.call for approval in found.undecided] == [7]
