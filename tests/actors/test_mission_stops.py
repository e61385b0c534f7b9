"""Stopping a mission, in a model call and in a tool call: parked it can go on, cancelled its transcript is whole."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
import trio.testing

from affidavit.actors.deciders.port import MODEL_ACTION
from affidavit.actors.errors import ModelError, RunCancelled
from affidavit.actors.events import FaultClass, Kind
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.recovery import CANCELLED_TEXT, INTERRUPTED_TEXT
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import (
    DONE,
    GOAL,
    Ended,
    FakeTool,
    FreeModel,
    KeptLog,
    calls,
    ended,
    park_when,
    replies,
    run_to_end,
    session_and_runtime,
)


class Stuck:
    """Work that says that it has begun and then waits for ever; later runs return at once."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.loose = False

    async def tool(self, arguments: Mapping[str, object]) -> str:
        """Be a tool."""
        await self._wait()
        return "in the end"

    async def model(self, position: int) -> ModelReply:
        """Be a model."""
        await self._wait()
        return DONE

    async def _wait(self) -> None:
        await trio.lowlevel.checkpoint()
        if not self.loose:
            self.begun.set()
            await trio.sleep_forever()


def stuck_tool(stuck: Stuck, *, idempotent: bool) -> MissionConfig:
    """A mission whose first of three calls never returns."""
    box = Toolbox([FakeTool("hold", stuck.tool, idempotent=idempotent), FakeTool("after")])
    return MissionConfig(replies(calls("hold", "after", "after"), DONE), box, tool_seconds=10**6)


async def cancelled(config: MissionConfig, begun: trio.Event, log: KeptLog) -> Ended:
    """Submit, and cancel the run as soon as the work has begun."""
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GOAL)
        await begun.wait()
        await session.cancel(principal="ann", reason="enough")
        with pytest.raises(RunCancelled, match="enough"):
            await session.wait()
        await session.seal()
    return await ended(log, "enough", FaultClass.CANCELLED)


async def test_parked_in_a_model_call_it_is_closed_and_asked_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The call is closed as interrupted with its reservation spent; resumed, the same turn is asked again."""
    stuck, log = Stuck(), KeptLog()
    config = MissionConfig(FreeModel(stuck.model))
    run = await park_when(log, config, stuck.begun)
    end = run.of(Kind.ACTION_COMPLETED)[0]
    assert (end.action, end.error_class) == (MODEL_ACTION, FaultClass.INTERRUPTED)
    assert end.detail["used"] == run.of(Kind.ACTION_ADMITTED)[0].detail["reserved"]
    assert run.record.complete is False
    assert run.conversation.terminal is None
    stuck.loose = True
    resumed = await run_to_end(log, config, resume=True)
    assert resumed.answer == DONE.text
    assert len(resumed.of(Kind.TURN_STARTED)) == 1
    assert [e.error_class for e in resumed.of(Kind.ACTION_COMPLETED)] == [FaultClass.INTERRUPTED, ""]


@pytest.mark.parametrize("idempotent", [True, False])
async def test_parked_in_a_tool_call(*, idempotent: bool, autojump_clock: trio.testing.MockClock) -> None:
    """The begun call is closed; one that may be run again stays open and is run on resume, any other is answered, once."""
    stuck, log = Stuck(), KeptLog()
    config = stuck_tool(stuck, idempotent=idempotent)
    run = await park_when(log, config, stuck.begun)
    assert run.of(Kind.ACTION_COMPLETED)[-1].error_class == FaultClass.INTERRUPTED
    assert run.results == ([] if idempotent else [INTERRUPTED_TEXT])
    assert len(run.conversation.pending) == (3 if idempotent else 2)
    stuck.loose = True
    resumed = await run_to_end(log, config, resume=True)
    assert resumed.results == ["in the end" if idempotent else INTERRUPTED_TEXT, "{}", "{}"]
    assert config.toolbox["hold"].runs == (2 if idempotent else 1)  # type: ignore[attr-defined]
    assert resumed.answer == DONE.text


async def test_cancelled_in_a_model_call(autojump_clock: trio.testing.MockClock) -> None:
    """The call ends as cancelled, and the run with who asked and why."""
    stuck = Stuck()
    run = await cancelled(MissionConfig(FreeModel(stuck.model)), stuck.begun, KeptLog())
    assert run.of(Kind.ACTION_COMPLETED)[0].error_class == FaultClass.CANCELLED
    end = run.of(Kind.STALLED)[0]
    assert (end.err, end.error_class, end.principal) == ("enough", FaultClass.CANCELLED, "ann")
    assert run.record.complete is True


@pytest.mark.parametrize("idempotent", [True, False])
async def test_cancelled_in_a_tool_call(*, idempotent: bool, autojump_clock: trio.testing.MockClock) -> None:
    """The begun call ends as cancelled, and every open call is answered so, whether it might be run again or not."""
    stuck = Stuck()
    run = await cancelled(stuck_tool(stuck, idempotent=idempotent), stuck.begun, KeptLog())
    assert run.of(Kind.ACTION_COMPLETED)[-1].error_class == FaultClass.CANCELLED
    assert run.results == [CANCELLED_TEXT] * 3
    assert [e.turn for e in run.of(Kind.TURN_COMPLETED)] == [1]
    assert run.conversation.pending == {}


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_parked_run_that_is_cancelled_later_owes_no_answer(
    *, idempotent: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """Cancelling a run that nobody drives answers its open calls as well (S9)."""
    stuck, log = Stuck(), KeptLog()
    config = stuck_tool(stuck, idempotent=idempotent)
    await park_when(log, config, stuck.begun)
    async with session_and_runtime(log, config) as (session, _runtime):
        await session.cancel(principal="ann", reason="enough")
        await session.seal()
    run = await ended(log, "enough", FaultClass.CANCELLED)
    assert run.conversation.pending == {}


async def test_parked_between_two_attempts_nothing_is_left_open(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A run parked while it waits to try again goes on with the same turn."""
    waiting, log = trio.Event(), KeptLog()

    class Patient:
        """A clock whose waits of the mission never end."""

        def now_ns(self) -> int:
            return 1

        async def sleep(self, seconds: float) -> None:
            waiting.set()
            await trio.sleep_forever()

    async def busy(position: int) -> ModelReply:
        await trio.lowlevel.checkpoint()
        raise ModelError("busy", fault=FaultClass.TRANSIENT)

    run = await park_when(log, MissionConfig(FreeModel(busy), clock=Patient()), waiting)
    assert [e.error_class for e in run.of(Kind.ACTION_COMPLETED)] == [FaultClass.TRANSIENT]
    resumed = await run_to_end(log, MissionConfig(replies(DONE)), resume=True)
    assert resumed.answer == DONE.text
    assert len(resumed.of(Kind.TURN_STARTED)) == 1
