"""A mission's tool calls: whatever a tool does, its call is answered, on the record and to the model, and the run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import FaultClass, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ToolCall
from affidavit.actors.recovery import INTERRUPTED_TEXT
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.crypto import decode_event
from tests.actors.mission_kit import (
    DONE,
    GOAL,
    RUN,
    Ended,
    FakeTool,
    WatchedModel,
    Work,
    calls,
    replies,
    run_to_end,
)


async def once(work: Work, *, asked: str = "{}", text_limit: int = 4096) -> tuple[Ended, str]:
    """Run a mission that calls one tool, which does `work`, and then answers; return it and what the model was shown."""
    model = WatchedModel(replies(ModelReply("", (ToolCall("t1", "tool", asked),), "tool_use"), DONE))
    config = MissionConfig(model, Toolbox([FakeTool("tool", work)]), text_limit=text_limit)
    run = await run_to_end(MemoryLog(), config)
    assert run.answer == DONE.text
    assert len(run.of(Kind.TOOL_RESULT)) == 1
    return run, model.requests[1].messages[-1].text


def raising(error: BaseException) -> Work:
    """Work that raises this."""

    async def work(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        raise error

    return work


class Mute(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("broken"),
        Mute(),
        KeyError(),
        RecursionError(),
        MemoryError(),
        ExceptionGroup("several", [ValueError("a"), OSError("b")]),
        BaseExceptionGroup("exits", [SystemExit(3)]),
        SystemExit(3),
        trio.TooSlowError(),
        StopAsyncIteration(),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ValueError("\ud800"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_tool_that_crashes_has_that_as_its_result(error: BaseException) -> None:
    """Whatever a tool raises, asking to exit included, is a failed result that names it; the run goes on (G9)."""
    run, shown = await once(raising(error))
    result = run.of(Kind.TOOL_RESULT)[0]
    assert result.is_error
    assert result.result == shown
    assert shown.startswith(f"tool crashed: {type(error).__name__}: ")
    end = run.of(Kind.ACTION_COMPLETED)[1]
    assert (end.error_class, end.error_code) == (FaultClass.TERMINAL, "tool_crashed")


async def test_a_tools_own_refusal_is_shown_as_it_is() -> None:
    """The sentence of a `ToolFailed` is the result, no more and no less."""
    run, shown = await once(raising(ToolFailed("there is no file b.txt")))
    assert shown == "there is no file b.txt"
    assert run.of(Kind.TOOL_RESULT)[0].is_error
    assert run.of(Kind.ACTION_COMPLETED)[1].error_code == "tool_failed"


async def test_a_tool_that_hangs_is_stopped_after_its_time(autojump_clock: trio.testing.MockClock) -> None:
    """A tool that never returns is cancelled at its limit; the result says so (G9)."""

    async def hang(arguments: Mapping[str, object]) -> str:
        await trio.sleep_forever()
        raise AssertionError

    run, shown = await once(hang)
    assert shown == "tool did not finish within 60 s"
    assert run.of(Kind.ACTION_COMPLETED)[1].error_code == "timeout"


async def test_a_tool_that_turns_its_cancellation_into_a_crash_is_answered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A tool that answers its time limit with an error of its own has crashed; the run goes on."""

    async def spiteful(arguments: Mapping[str, object]) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise ValueError("never mind") from None  # noqa: ASYNC104
        raise AssertionError

    _, shown = await once(spiteful)
    assert shown == "tool crashed: ValueError: never mind"


async def test_a_tool_that_finishes_in_spite_of_its_cancellation_has_finished(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A tool that swallows the cancellation and returns late has its text recorded."""

    async def stubborn(arguments: Mapping[str, object]) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:  # noqa: ASYNC103
            return "late"  # noqa: ASYNC104
        raise AssertionError

    _, shown = await once(stubborn)
    assert shown == "late"


async def test_a_flood_is_cut_and_says_what_it_was() -> None:
    """A result over the limit is cut between characters, with the whole one's length and SHA-256; the model sees the cut one."""
    whole = "é" * 500_000

    async def flood(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        return whole

    run, shown = await once(flood, text_limit=1001)
    assert shown == "é" * 500
    data = whole.encode()
    assert run.of(Kind.TOOL_RESULT)[0].detail["cut"] == {"bytes": len(data), "sha256": sha256(data).digest()}


async def test_lone_surrogates_become_replacement_characters_and_are_marked() -> None:
    """Text that has no UTF-8 form is repaired, marked, and shown repaired."""

    async def garbled(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        return "a\ud800b"

    run, shown = await once(garbled)
    assert shown == "a\ufffdb"
    assert run.of(Kind.TOOL_RESULT)[0].detail == {"replaced": True}


@pytest.mark.parametrize("answer", [None, 7, b"bytes", ["list"]])
async def test_a_tool_that_returns_no_text_has_crashed(answer: object) -> None:
    """A tool that breaks its own contract is reported as crashed, by the type that it returned."""

    async def wrong(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        return answer  # type: ignore[return-value]

    _, shown = await once(wrong)
    assert shown == f"tool crashed: it returned {type(answer).__name__} and no text"


@pytest.mark.parametrize(
    "asked",
    ["not json", '{"a": 1', "[1]", '"text"', '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 50_000, "\ud800"],
)
async def test_arguments_that_are_no_json_object_are_answered(asked: str) -> None:
    """A call whose arguments cannot be read is kept as text and answered as an error; the tool does not run."""

    async def never(arguments: Mapping[str, object]) -> str:
        raise AssertionError("the tool ran")

    run, shown = await once(never, asked=asked, text_limit=100_000)
    assert run.of(Kind.TOOL_RESULT)[0].is_error
    assert "crashed" not in shown
    assert "arguments" in shown
    assert run.of(Kind.TOOL_CALL)[0].input == asked.replace("\ud800", "\ufffd")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ghost", "unknown_tool"),
        ("pay", "capability_denied"),
        ("model.generate", "unknown_tool"),
        ("", "unknown_tool"),
    ],
)
async def test_refused_hidden_and_unknown_tools_are_rejected_on_the_record(name: str, code: str) -> None:
    """A call to a tool that is not granted or does not exist leaves a rejection and its answer, in one append (G2)."""
    pay = FakeTool("pay")
    model = WatchedModel(replies(ModelReply("", (ToolCall("t1", name, "{}"),), "tool_use"), DONE))
    log = MemoryLog()
    run = await run_to_end(
        log, MissionConfig(model, Toolbox([pay, FakeTool("look")])), GoalSpec("x", tools=("look", "ghost"))
    )
    assert pay.runs == 0
    rejected = run.of(Kind.ACTION_REJECTED)[0]
    assert (rejected.action, rejected.error_class, rejected.error_code) == (name, FaultClass.FORBIDDEN, code)
    assert rejected.tool_use_id == "t1"
    result = run.events[rejected.seq]
    assert (result.kind, result.is_error, result.time) == (Kind.TOOL_RESULT, True, rejected.time)
    assert model.requests[1].messages[-1].text.startswith("refused: ")
    assert run.answer == DONE.text


async def test_calls_run_in_order_and_each_is_answered() -> None:
    """Several calls of one turn run one after the other, in the model's order; the turn ends with the last answer."""
    order: list[str] = []

    def noting(name: str) -> Work:
        async def work(arguments: Mapping[str, object]) -> str:
            await trio.lowlevel.checkpoint()
            order.append(name)
            return name

        return work

    box = Toolbox([FakeTool(name, noting(name)) for name in ("a", "b", "c")])
    run = await run_to_end(MemoryLog(), MissionConfig(replies(calls("c", "a", "b", "a"), DONE), box))
    assert order == run.results == ["c", "a", "b", "a"]
    kinds = [event.kind for event in run.events]
    assert kinds[kinds.index(Kind.TURN_COMPLETED) - 1] == Kind.TOOL_RESULT
    assert kinds.count(Kind.TURN_COMPLETED) == 2


async def test_an_admission_is_bound_to_its_exact_arguments() -> None:
    """The args digest is SHA-256 over the call's salt and its input: it can be checked from the record, and not be guessed."""
    log = MemoryLog()
    asked = (ToolCall("a", "tool", '{"to": "ann"}'), ToolCall("b", "tool", '{"to": "ann"}'))
    config = MissionConfig(replies(ModelReply("", asked, "tool_use"), DONE), Toolbox([FakeTool("tool")]))
    run = await run_to_end(log, config, GOAL)
    rows = {row.seq: row.data for row in await log.read(RUN, 0, 1000)}
    digests = []
    for call in run.of(Kind.TOOL_CALL):
        payload = decode_event(rows[call.seq]).payload
        digest = sha256(payload["salt"] + call.input.encode()).digest()
        admitted = next(e for e in run.of(Kind.ACTION_ADMITTED) if e.tool_use_id == call.tool_use_id)
        assert admitted.detail["args"] == digest
        digests.append(digest)
    assert digests[0] != digests[1]


async def test_an_interrupt_from_the_keyboard_is_no_tools_crash() -> None:
    """Ctrl-C inside a tool ends the program as itself, and the call is closed as interrupted on the record."""
    log = MemoryLog()
    config = MissionConfig(
        replies(calls("tool"), DONE), Toolbox([FakeTool("tool", raising(KeyboardInterrupt()))])
    )
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # itself, or in groups of the nurseries between
        await run_to_end(log, config)
    assert any(isinstance(error, KeyboardInterrupt) for error in _leaves(caught.value))
    events = await history(log, RUN)
    assert [event.result for event in events if event.kind == Kind.TOOL_RESULT] == [INTERRUPTED_TEXT]


def _leaves(error: BaseException) -> list[BaseException]:
    inner = [error.__cause__] if error.__cause__ is not None else []
    inner += error.exceptions if isinstance(error, BaseExceptionGroup) else []
    return [leaf for part in inner for leaf in _leaves(part)] or [error]
