"""Nothing that a model or a tool hands over can break a run: it ends, its record verifies, every call is answered (S9, G9)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial

import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.actors.events import Kind, Usage
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ToolCall
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import DONE, FakeTool, Work, calls, replies, run_to_end
from tests.strategies import BROKEN_TEXTS

WORDS = BROKEN_TEXTS | st.text(max_size=40) | st.sampled_from(["", "t1", "run-1/1/1", "run-1/1/2", "x" * 300])
NAMES = st.sampled_from(["tool", "other", "model.generate", ""]) | WORDS
COUNTS = st.integers(-5, 100) | st.sampled_from([2**63, -(2**63) - 1, 2**80])
INPUTS = WORDS | st.sampled_from(["{}", '{"a": 1}', "[1]", "null", '{"a": "\\ud800"}', "{", "9" * 5000])
# What only a broken adapter could hand over; typed as what it should have been.
NONSENSE = st.sampled_from([None, 7, b"x", ["y"]])

REPLIES = st.builds(
    ModelReply,
    text=WORDS | NONSENSE,
    tool_calls=st.lists(st.builds(ToolCall, id=WORDS, name=NAMES, input=INPUTS), max_size=4).map(tuple),
    stop_reason=WORDS | st.sampled_from(["end_turn", "max_tokens"]),
    usage=st.none() | st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS),
    blocks=WORDS,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(turns=st.lists(REPLIES, min_size=1, max_size=4), answer=WORDS | NONSENSE)
def test_any_reply_and_any_result_leave_a_sound_record(turns: list[ModelReply], answer: object) -> None:
    """For whatever turns and results: the run ends, is sealed, and verifies at L4 with all calls answered."""

    async def work(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        return answer  # type: ignore[return-value]

    async def main() -> None:
        box = Toolbox([FakeTool("tool", work), FakeTool("other", work, idempotent=True)])
        config = MissionConfig(replies(*turns, DONE), box, text_limit=64)
        run = await run_to_end(MemoryLog(), config, GoalSpec("x", max_steps=6))
        assert len(run.of(Kind.CONVERGED, Kind.STALLED)) == 1
        assert run.conversation.book.open_actions == {}
        assert all(len(event.result.encode()) <= 64 for event in run.of(Kind.TOOL_RESULT))

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_thread_that_ignores_its_limit_is_left_behind(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A tool whose thread does not stop at the limit is abandoned, by name, on the record; the run goes on without it."""
    release = threading.Event()

    def deaf() -> Work:
        async def work(arguments: Mapping[str, object]) -> str:
            await trio.to_thread.run_sync(partial(release.wait, 60), abandon_on_cancel=True)
            raise AssertionError

        return work

    try:
        config = MissionConfig(
            replies(calls("deaf"), DONE), Toolbox([FakeTool("deaf", deaf())]), tool_seconds=3
        )
        run = await run_to_end(MemoryLog(), config)
    finally:
        release.set()
    assert run.results == ["deaf did not finish within 3 s"]
    assert run.answer == DONE.text
