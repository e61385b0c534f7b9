"""A log that fails under a running mission, at each append and in each way: the session stops, and the run can be resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
import trio
import trio.testing

from affidavit.actors.errors import LogError, SessionFailed
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.fakes import Fault, FaultLog
from tests.actors.mission_kit import RUN, FakeTool, Work, check_record, run_to_end, script

SPEC = GoalSpec("Settle.", tools=("pay", "note"))
TURNS: list[dict[str, object]] = [
    {"tool_calls": [{"name": "pay", "input": {"key": "pay"}}, {"name": "note", "input": {"key": "note"}}]},
    {"tool_calls": [{"name": "ghost"}, {"name": "pay", "input": "{"}]},
    {"text": "Settled."},
]


def config(effects: list[str], began: list[int], log: FaultLog) -> MissionConfig:
    """The mission, its tools noting what they did and how many appends had been asked for then."""

    def tool(name: str) -> Work:
        async def act(arguments: Mapping[str, object]) -> str:
            began.append(log.appends)
            await trio.lowlevel.checkpoint()
            effects.append(name)
            return name

        return act

    box = Toolbox(FakeTool(name, tool(name), idempotent=name == "note") for name in ("pay", "note"))
    return MissionConfig(script(*TURNS), box)


@pytest.mark.parametrize("fault", list(Fault))
async def test_whichever_append_fails_the_run_is_resumable_and_nothing_is_done_twice(
    fault: Fault, autojump_clock: trio.testing.MockClock
) -> None:
    """Each append in turn fails: no work begins on it, nothing is written after it, and the resumed run converges (G1, S6)."""
    undisturbed = FaultLog(MemoryLog())
    await run_to_end(undisturbed, config([], [], undisturbed), SPEC)
    for number in range(1, undisturbed.appends + 1):
        effects: list[str] = []
        began: list[int] = []
        log = FaultLog(MemoryLog(), at={number}, fault=fault)
        with pytest.raises((SessionFailed, LogError)):
            await run_to_end(log, config(effects, began, log), SPEC)
        assert number not in began
        assert log.faults == 1
        log.reopen()
        stood = await history(log, RUN)
        check_record(stood)
        resume = bool(stood)
        run = await run_to_end(log, config(effects, began, log), SPEC, resume=resume)
        assert run.answer == "Settled."
        assert run.events[: len(stood)] == stood
        counts = Counter(effects)
        assert counts["pay"] <= 1
        assert counts["note"] in {1, 2}
        assert len(run.of(Kind.CONVERGED)) == 1
