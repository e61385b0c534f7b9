"""A child that does not heed that it is to end: its end stands after the grace, the run goes on, and it says nothing more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.fanout import FanoutState
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.models.port import ModelReply
from affidavit.actors.projection import project
from affidavit.actors.session import Session
from affidavit.actors.session_ends import CANCEL_GRACE
from tests.actors.fanout_kit import fanout_config, spawns
from tests.actors.mission_kit import DONE, GOAL, FakeTool, calls, ended, repeat, session_and_runtime

STUCK_FOR = 10 * CANCEL_GRACE
STUCK = (calls("stuck"), ModelReply("too late"))
TREES = {
    "the child itself": {GOAL.objective: (spawns("one", "two"), calls("note"), DONE), "one": STUCK},
    "one below it": {
        GOAL.objective: (spawns("one", "two"), DONE),
        "one": (spawns("below"), DONE),
        "below": STUCK,
    },
}


@asynccontextmanager
async def stuck_run(log: MemoryLog, tree: Mapping[str, tuple[ModelReply, ...]]) -> AsyncIterator[Session]:
    """Drive a run until a tool of one of its goals works behind a shield."""
    reached = trio.Event()

    async def work(arguments: Mapping[str, object]) -> str:
        reached.set()
        with trio.CancelScope(shield=True):
            await trio.sleep(STUCK_FOR)
        return "done all the same"

    config = fanout_config(tree, FakeTool("stuck", work), FakeTool("note", repeat))
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GOAL)
        await reached.wait()
        yield session


def named(session: Session, objective: str) -> str:
    """Return a child's id."""
    (child,) = [each for each in session.projection.fanout if each.objective == objective]
    return child.id


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
async def test_a_child_that_does_not_heed_its_end_is_ended_without_it_and_the_run_goes_on(
    autojump_clock: MockClock, tree: Mapping[str, tuple[ModelReply, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    """After the grace, not when its tool comes back: the begun call is interrupted, and what it then says is on no record."""
    log = MemoryLog()
    async with stuck_run(log, tree) as session:
        asked = trio.current_time()
        end = await session.cancel_goal(named(session, "one"), principal="ada", reason="hangs")
        assert trio.current_time() - asked == pytest.approx(CANCEL_GRACE)
        assert (end.is_error, end.result) == (True, "hangs")
        assert await session.wait() == DONE.text
        assert trio.current_time() - asked < STUCK_FOR
        await trio.sleep(STUCK_FOR)
        await session.seal()
    run = await ended(log, DONE.text, "")
    assert "did not stop within 5 s" in caplog.text
    states = {child.objective: child.state for child in project(run.events).fanout}
    assert states == dict.fromkeys(states, FanoutState.FAILED) | {"two": FanoutState.DONE}
    assert {fault(event) for event in run.of(Kind.ACTION_COMPLETED)} == {"", FaultClass.INTERRUPTED}
    (phase,) = [each for each in run.of(Kind.GOAL_PHASE) if each.principal]
    assert (phase.principal, phase.error_class) == ("ada", FaultClass.CANCELLED)


def fault(event: Event) -> str:
    """Return an event's fault class."""
    return str(event.error_class)


async def test_while_a_child_does_not_heed_its_end_what_others_ask_waits_no_longer_than_the_grace(
    autojump_clock: MockClock,
) -> None:
    """A cancellation of the whole run that comes behind it has its own grace, and then ends what hangs as well."""
    log = MemoryLog()
    tree = {GOAL.objective: (spawns("one"), calls("stuck"), DONE), "one": STUCK}
    async with stuck_run(log, tree) as session, trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: session.cancel_goal(named(session, "one"), principal="ada", reason="hangs")
        )
        await trio.testing.wait_all_tasks_blocked()
        asked = trio.current_time()
        stalled = await session.cancel(principal="bob", reason="all of it")
        assert trio.current_time() - asked == pytest.approx(2 * CANCEL_GRACE)
        assert (stalled.kind, stalled.principal) == (Kind.STALLED, "bob")
