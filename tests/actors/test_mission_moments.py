"""Parking and cancelling at any scheduling point of a run, not only where a test thought of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import trio
import trio.testing

from affidavit.actors.errors import RunCancelled
from affidavit.actors.events import FaultClass, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import (
    RUN,
    Ended,
    FakeTool,
    KeptLog,
    Work,
    check_record,
    ended,
    run_to_end,
    script,
    session_and_runtime,
)

SPEC = GoalSpec("Settle.", tools=("pay", "note"))
TURNS: list[dict[str, object]] = [
    {"tool_calls": [{"name": "pay"}, {"name": "note"}, {"name": "ghost"}]},
    {"text": "Settled."},
]


def config(effects: list[str]) -> MissionConfig:
    """The mission; its tools take effect half-way through their work."""

    def tool(name: str) -> Work:
        async def act(arguments: Mapping[str, object]) -> str:
            await trio.lowlevel.checkpoint()
            effects.append(name)
            await trio.lowlevel.checkpoint()
            return name

        return act

    box = Toolbox(FakeTool(name, tool(name), idempotent=name == "note") for name in ("pay", "note"))
    return MissionConfig(script(*TURNS), box)


async def ticks(count: int) -> None:
    """Let the other tasks take so many turns."""
    for _ in range(count):
        await trio.lowlevel.checkpoint()


async def test_parked_at_any_moment_a_run_can_be_resumed(autojump_clock: trio.testing.MockClock) -> None:
    """Cancelled from outside after any number of turns of the loop: the record is sound, and resumed the run converges."""
    moment, finished = 0, False
    while not finished:
        log, effects = KeptLog(), list[str]()
        with trio.CancelScope() as scope:
            async with session_and_runtime(log, config(effects)) as (session, runtime):
                await session.submit(runtime, SPEC)
                await ticks(moment)
                finished = session.finished
                scope.cancel()
                await trio.lowlevel.checkpoint()
        stood = await history(log, RUN)
        check_record(stood)
        run = await run_to_end(log, config(effects), resume=True)
        assert run.answer == "Settled."
        assert run.events[: len(stood)] == stood
        assert Counter(effects)["pay"] == 1 or run.results[0].startswith("interrupted")
        assert Counter(effects)["pay"] <= 1
        moment += 1
    assert moment > 15


async def test_cancelled_at_any_moment_a_run_owes_no_answer(autojump_clock: trio.testing.MockClock) -> None:
    """Cancelled by someone after any number of turns of the loop: every call is answered, and the end says who asked."""
    moment, finished = 0, False
    while not finished:
        run = await _cancelled_at(moment)
        finished = bool(run.of(Kind.CONVERGED))
        assert len(run.of(Kind.CONVERGED, Kind.STALLED)) == 1
        assert run.conversation.pending == {}
        assert run.conversation.book.open_actions == {}
        if not finished:
            end = run.of(Kind.STALLED)[0]
            assert (end.principal, end.err, end.error_class) == ("ann", "enough", FaultClass.CANCELLED)
        moment += 1
    assert moment > 15


async def _cancelled_at(moment: int) -> Ended:
    log = KeptLog()
    async with session_and_runtime(log, config([])) as (session, runtime):
        await session.submit(runtime, SPEC)
        await ticks(moment)
        await session.cancel(principal="ann", reason="enough")
        try:
            answer = await session.wait()
        except RunCancelled as cancelled:
            answer = cancelled.reason
        await session.seal()
    return await ended(log, answer, "")
