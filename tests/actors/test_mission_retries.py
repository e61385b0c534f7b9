"""A tool that fails for a passing reason is tried again where that is harmless, so many times; one call has one key."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.approvals import Decision
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.policy.model import Approval, Grant, Policy
from affidavit.actors.toolbox.port import KeyedTool
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import (
    DONE,
    RUN,
    FakeTool,
    KeptLog,
    calls,
    park_when,
    replies,
    run_to_end,
    session_and_runtime,
)
from tests.actors.runtimes import SPEC


class Flaky:
    """Fails so often for a passing reason, and then answers."""

    def __init__(self, times: int, fault: str = FaultClass.TRANSIENT) -> None:
        self.left = times
        self._fault = fault

    async def __call__(self, arguments: Mapping[str, object]) -> str:
        """Fail, or answer."""
        await trio.lowlevel.checkpoint()
        if self.left:
            self.left -= 1
            raise ToolFailed("the line is busy", fault=self._fault, code="busy")
        return "looked"


def ends(events: tuple[Event, ...]) -> list[str]:
    """The fault codes with which calls of the tool ended."""
    return [event.fault for event in events if event.kind == Kind.ACTION_COMPLETED and event.action == "look"]


def config(tool: FakeTool | KeyedTool, **more: object) -> MissionConfig:
    """One call of the tool, and an answer."""
    return MissionConfig(replies(calls("look"), DONE), Toolbox([tool]), **more)  # type: ignore[arg-type,list-item]


async def test_an_idempotent_tool_is_tried_again_until_it_answers(autojump_clock: MockClock) -> None:
    """Each attempt is an admitted action of its own; only the last has a result, which is what the model is shown."""
    tool = FakeTool("look", Flaky(2), idempotent=True)
    done = await run_to_end(MemoryLog(), config(tool))
    assert (tool.runs, done.results) == (3, ["looked"])
    assert ends(done.events) == ["busy", "busy", ""]
    assert [event.turn for event in done.of(Kind.TURN_STARTED)] == [1, 2]
    # It waited longer each time.
    assert autojump_clock.current_time() >= 0.75


async def test_the_attempts_have_a_cap(autojump_clock: MockClock) -> None:
    """After as many as the configuration allows, the failure is the call's result."""
    tool = FakeTool("look", Flaky(9), idempotent=True)
    done = await run_to_end(MemoryLog(), config(tool, attempts=2))
    assert (tool.runs, done.results) == (2, ["the line is busy"])
    assert ends(done.events) == ["busy", "busy"]


@pytest.mark.parametrize(
    ("idempotent", "fault"), [(False, FaultClass.TRANSIENT), (True, FaultClass.TERMINAL)]
)
async def test_what_could_do_harm_or_would_not_help_is_not_tried_again(
    idempotent: bool,  # a case of the table
    fault: str,
    autojump_clock: MockClock,
) -> None:
    """A tool that is not declared idempotent, and a failure that will not pass, are had once."""
    tool = FakeTool("look", Flaky(1, fault), idempotent=idempotent)
    done = await run_to_end(MemoryLog(), config(tool))
    assert (tool.runs, done.results) == (1, ["the line is busy"])


async def test_what_a_person_approved_is_done_once(autojump_clock: MockClock) -> None:
    """One approval is for one attempt; another would have to be asked for, so the model is told instead."""
    tool = FakeTool("look", Flaky(1), idempotent=True)
    policy = Policy(grant=Grant(tools=("look",)), approval=(Approval(tools=("look",), expires_seconds=60),))
    log = MemoryLog()
    async with session_and_runtime(log, config(tool, policy=policy)) as (session, runtime):
        await session.submit(runtime, SPEC)
        async with session.subscribe() as events:
            async for event in events:
                if event.kind == Kind.APPROVAL_REQUESTED:
                    break
        (waiting,) = session.waiting
        await session.decide(decision(waiting.call))
        assert await session.wait() == DONE.text
    assert tool.runs == 1


def decision(call: int) -> Decision:
    """Ada approves."""
    return Decision(call, True, "ada", "", None, b"")


class KeyedLook(FakeTool):
    """A tool that notes under which key it was asked.

    Args:
        work: What it does.
    """

    def __init__(self, work: Flaky) -> None:
        super().__init__("look", work, idempotent=True)
        self.keys: list[str] = []
        self.hold: trio.Event | None = None
        self.held = trio.Event()

    async def run_keyed(self, arguments: Mapping[str, object], key: str) -> str:
        """Note the key, wait if the test says so, and do the work."""
        self.keys.append(key)
        if self.hold is not None:
            self.held.set()
            await self.hold.wait()
        return await self.run(arguments)


async def test_each_attempt_at_a_call_has_the_same_key_and_no_other_call_has_it(
    autojump_clock: MockClock,
) -> None:
    """The key is made of the run and the call's own id."""
    tool = KeyedLook(Flaky(1))
    assert isinstance(tool, KeyedTool)
    again = ModelReply("", calls("x", "look").tool_calls[1:], "tool_use")
    model = replies(calls("look"), again, DONE)
    await run_to_end(MemoryLog(), MissionConfig(model, Toolbox([tool])))
    assert tool.keys == [f"{RUN}/t1", f"{RUN}/t1", f"{RUN}/t2"]


async def test_after_a_crash_the_call_is_run_again_under_its_key() -> None:
    """The run is left while the tool works, and taken up by another owner, from any append on: one key."""
    kept, tool = KeptLog(), KeyedLook(Flaky(0))
    tool.hold = trio.Event()
    await park_when(kept, config(tool), tool.held)
    assert tool.keys == [f"{RUN}/t1"]
    tool.hold = None
    for count in range(1, len(kept.appends) + 1):
        tool.keys.clear()
        done = await run_to_end(await kept.cut(count), config(tool), resume=True)
        assert (tool.keys, done.results) == ([f"{RUN}/t1"], ["looked"])
