"""A mission's model turns: announced once, retried, refused by budgets, ended honestly, and recorded as they were."""

from __future__ import annotations

from hashlib import sha256

import pytest
import trio
import trio.testing

from affidavit.actors import backoff
from affidavit.actors.clock import SystemClock
from affidavit.actors.deciders.port import MODEL_ACTION
from affidavit.actors.errors import ModelError
from affidavit.actors.events import Event, FaultClass, Kind, Usage
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MAX_TEXT_LIMIT, MissionConfig
from affidavit.actors.models.port import Message, ModelReply, ToolCall
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import (
    DONE,
    GOAL,
    RUN,
    FakeTool,
    FreeModel,
    WatchedModel,
    calls,
    replies,
    run_to_end,
    script,
)


class ListeningClock:
    """The machine's clock, keeping the waits it was asked for."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.now_ns = SystemClock().now_ns

    async def sleep(self, seconds: float) -> None:
        """Keep and wait."""
        self.waits.append(seconds)
        await trio.sleep(seconds)


async def test_a_run_that_only_answers_converges_with_the_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One turn without tools: announced, answered, completed, converged, in this order and with this text."""
    run = await run_to_end(MemoryLog(), MissionConfig(script({"text": "Forty-two."})))
    assert run.answer == "Forty-two."
    assert [event.kind for event in run.events[:9]] == [
        Kind.SESSION_STARTED,
        Kind.GOAL_PHASE,
        Kind.TURN_STARTED,
        Kind.ACTION_ADMITTED,
        Kind.ACTION_COMPLETED,
        Kind.ASSISTANT,
        Kind.TURN_COMPLETED,
        Kind.GOAL_PHASE,
        Kind.CONVERGED,
    ]
    assert run.record.complete is True


async def test_a_turn_is_announced_once_however_often_it_is_tried(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transient errors: each attempt is a call of its own on the record, the turn is announced once, waits double."""
    monkeypatch.setattr(backoff, "new_fraction", lambda: 0.5)
    clock = ListeningClock()
    model = script({"text": "At last.", "error": {"message": "overloaded", "code": "busy", "times": 2}})
    run = await run_to_end(MemoryLog(), MissionConfig(model, clock=clock, attempts=3, backoff_seconds=1.0))
    assert run.answer == "At last."
    assert len(run.of(Kind.TURN_STARTED)) == 1
    assert [e.fault for e in run.of(Kind.ACTION_COMPLETED)] == ["busy", "busy", ""]
    assert [e.error_class for e in run.of(Kind.ACTION_COMPLETED)] == [FaultClass.TRANSIENT] * 2 + [""]
    assert [wait for wait in clock.waits if wait in {0.75, 1.5, 3.0}] == [0.75, 1.5]


async def test_transient_errors_without_end_stall_with_their_reason(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """After the last attempt the run stalls, saying what failed and how often it was tried."""
    run = await run_to_end(
        MemoryLog(), MissionConfig(script({"error": {"message": "overloaded"}}), attempts=2)
    )
    assert "overloaded" in run.answer
    assert "tried 2 times" in run.answer
    assert run.error_class == FaultClass.TRANSIENT
    assert len(run.of(Kind.ACTION_ADMITTED)) == 2


async def test_a_terminal_error_is_not_tried_again(autojump_clock: trio.testing.MockClock) -> None:
    """A terminal error of the model stalls the run at once, with its reason."""
    model = script({"error": {"message": "no such model", "fault": "terminal"}})
    run = await run_to_end(MemoryLog(), MissionConfig(model, attempts=5))
    assert "no such model" in run.answer
    assert run.error_class == FaultClass.TERMINAL
    assert len(run.of(Kind.ACTION_ADMITTED)) == 1


class Unspeakable(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [ValueError("a bug"), Unspeakable(), ExceptionGroup("g", [OSError("net")]), RuntimeError("\ud800")],
)
async def test_a_model_that_crashes_stalls_the_run(
    error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever a model adapter raises ends the run on the record, named, and not the session."""

    async def crash(position: int) -> ModelReply:
        await trio.lowlevel.checkpoint()
        raise error

    run = await run_to_end(MemoryLog(), MissionConfig(FreeModel(crash)))
    assert type(error).__name__ in run.answer
    assert run.error_class == FaultClass.TERMINAL
    assert run.of(Kind.ACTION_COMPLETED)[0].error_code == "crashed"


async def test_an_error_message_of_any_length_is_recorded_cut(autojump_clock: trio.testing.MockClock) -> None:
    """A megabyte of an error message does not break the record."""

    async def fail(position: int) -> ModelReply:
        await trio.lowlevel.checkpoint()
        raise ModelError("x" * 2_000_000, code="y" * 2_000_000)

    run = await run_to_end(MemoryLog(), MissionConfig(FreeModel(fail)))
    assert run.error_class == FaultClass.TERMINAL
    assert len(run.answer) < 300_000


@pytest.mark.parametrize(
    ("reply", "words", "error_class"),
    [
        (ModelReply(""), "without an answer", FaultClass.TERMINAL),
        (ModelReply(" \n\t "), "without an answer", FaultClass.TERMINAL),
        (
            ModelReply("Half a sen", (), "max_tokens", Usage(9, 3)),
            "cut off after 3 output tokens",
            FaultClass.BUDGET_EXCEEDED,
        ),
        (ModelReply("", (), "max_tokens"), "cut off at a limit", FaultClass.BUDGET_EXCEEDED),
        (ModelReply("I will not.", (), "refusal"), "declined to answer", FaultClass.TERMINAL),
        (ModelReply("Well, ", (), "content_filter"), "withheld the answer", FaultClass.TERMINAL),
    ],
)
async def test_no_answer_is_not_taken_for_one(
    reply: ModelReply, words: str, error_class: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Empty, cut short, declined, withheld: the run stalls honestly; what was said is on the record all the same."""
    run = await run_to_end(MemoryLog(), MissionConfig(replies(reply)))
    assert words in run.answer
    assert run.error_class == error_class
    assert run.of(Kind.ASSISTANT)[0].text == reply.text
    assert run.of(Kind.TURN_COMPLETED)[0].stop_reason == reply.stop_reason
    assert run.of(Kind.CONVERGED) == []


async def test_a_step_budget_stalls_the_run_with_a_refusal_on_the_record(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Turn 3 of 2 is refused: dispatch.rejected stands, no third turn is announced, the reason is the budget."""

    async def on_and_on(position: int) -> ModelReply:
        await trio.lowlevel.checkpoint()
        return ModelReply("", (ToolCall(f"t{position}", "look", "{}"),), "tool_use")

    config = MissionConfig(FreeModel(on_and_on), Toolbox([FakeTool("look")]))
    run = await run_to_end(MemoryLog(), config, GoalSpec("x", max_steps=2))
    assert run.error_class == FaultClass.BUDGET_EXCEEDED
    assert len(run.of(Kind.TURN_STARTED)) == 2
    rejected = run.of(Kind.ACTION_REJECTED)
    assert [(e.action, e.error_class, e.error_code) for e in rejected] == [
        (MODEL_ACTION, FaultClass.BUDGET_EXCEEDED, "steps")
    ]


async def test_a_token_budget_is_held_back_and_settled(autojump_clock: trio.testing.MockClock) -> None:
    """Each call reserves its most, counts what the vendor says it used, and the run stalls before it would overspend."""
    turns = [
        {"tool_calls": [{"name": "look"}], "usage": {"input_tokens": 30, "output_tokens": 20}}
        for _ in range(9)
    ]
    config = MissionConfig(script(*turns), Toolbox([FakeTool("look")]))
    run = await run_to_end(MemoryLog(), config, GoalSpec("x", max_tokens=400, max_output_tokens=200))
    assert run.error_class == FaultClass.BUDGET_EXCEEDED
    assert run.of(Kind.ACTION_REJECTED)[0].error_code == "tokens"
    model_calls = [e for e in run.of(Kind.ACTION_ADMITTED) if e.action == MODEL_ACTION]
    assert all(e.detail["reserved"]["tokens"] >= 200 for e in model_calls)  # type: ignore[index]
    assert run.conversation.book.used.tokens == 50 * len(model_calls)
    assert 1 < len(model_calls) < 9


@pytest.mark.parametrize(
    "usage", [Usage(-(10**6), 0), Usage(0, -1), Usage(2**70, 1), Usage(2**62, 2**62), Usage(True, 1)]
)
async def test_token_counts_that_are_none_do_not_falsify_a_budget(
    usage: Usage, autojump_clock: trio.testing.MockClock
) -> None:
    """A vendor that reports negative or absurd counts is taken to have used what was held back, and no usage is recorded."""
    turns = replies(ModelReply("", (ToolCall("a", "look", "{}"),), "tool_use", usage), DONE)
    run = await run_to_end(MemoryLog(), MissionConfig(turns, Toolbox([FakeTool("look")])))
    first = run.of(Kind.ACTION_ADMITTED)[0]
    assert run.of(Kind.ACTION_COMPLETED)[0].detail["used"] == first.detail["reserved"]
    assert run.of(Kind.ASSISTANT)[0].usage is None


async def test_text_in_a_wide_script_is_held_back_for_by_its_bytes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of a script whose characters are tokens of their own, at least one token per character is reserved."""
    run = await run_to_end(
        MemoryLog(), MissionConfig(replies(DONE)), GoalSpec("账" * 3000, max_output_tokens=1)
    )
    assert run.of(Kind.ACTION_ADMITTED)[0].detail["reserved"]["tokens"] >= 3000  # type: ignore[index]


async def test_the_model_is_shown_exactly_what_is_recorded(autojump_clock: trio.testing.MockClock) -> None:
    """Each request equals what the record before it folds to: repaired and cut texts as recorded, nothing more."""
    flood = FakeTool("flood", work=_flood)
    turns = (
        ModelReply("Look \ud800 here.", (ToolCall("a", "flood", '{"n": "\udfff"}'),), "tool_use"),
        ModelReply("b" * 900, (ToolCall("a", "flood", "nonsense"), ToolCall("", "ghost", "{}")), "tool_use"),
        DONE,
    )
    model = WatchedModel(replies(*turns))
    run = await run_to_end(MemoryLog(), MissionConfig(model, Toolbox([flood]), text_limit=100))
    assert len(model.requests) == 3
    for turn, request in enumerate(model.requests, 1):
        announced = next(e.seq for e in run.of(Kind.TURN_STARTED) if e.turn == turn)
        assert request.messages == _shown(run.events[:announced])
    last = model.requests[-1].messages
    assert [m.role for m in last] == ["user", "assistant", "tool", "assistant", "tool", "tool"]
    assert last[1].text == "Look \ufffd here."
    assert last[2].text == "é" * 50
    assert last[3].text == "b" * 100


async def _flood(arguments: object) -> str:
    await trio.lowlevel.checkpoint()
    return "é" * 1_000_000


def _shown(events: tuple[Event, ...]) -> tuple[Message, ...]:
    """What a model should see of a record: written out here once more, apart from the product's fold."""
    shown: list[Message] = []
    for event in events:
        if event.kind == Kind.SESSION_STARTED:
            shown.append(Message("user", event.text))
        elif event.kind == Kind.ASSISTANT:
            asked = tuple(
                ToolCall(call.tool_use_id, call.tool, call.input)
                for call in events
                if call.kind == Kind.TOOL_CALL and call.turn == event.turn
            )
            shown.append(Message("assistant", event.text, asked))
        elif event.kind == Kind.TOOL_RESULT:
            shown.append(
                Message("tool", event.result, tool_use_id=event.tool_use_id, is_error=event.is_error)
            )
    return tuple(shown)


async def test_altered_text_is_marked(autojump_clock: trio.testing.MockClock) -> None:
    """Repaired words are marked `replaced`; cut ones carry the whole one's length and digest."""
    turns = (ModelReply("\ud800" + "x" * 200, (ToolCall("a", "look", "\udfff"),), "tool_use"), DONE)
    run = await run_to_end(
        MemoryLog(), MissionConfig(replies(*turns), Toolbox([FakeTool("look")]), text_limit=100)
    )
    said, call = run.of(Kind.ASSISTANT)[0], run.of(Kind.TOOL_CALL)[0]
    whole = ("\ufffd" + "x" * 200).encode()
    assert said.detail == {"replaced": True, "cut": {"bytes": len(whole), "sha256": sha256(whole).digest()}}
    assert call.detail == {"replaced": True}
    assert call.input == "\ufffd"


async def test_missing_repeated_and_unusable_ids_are_replaced(autojump_clock: trio.testing.MockClock) -> None:
    """An id that is absent, repeated, garbled, endless or in our own form becomes ours; the vendor's is kept."""
    long = "x" * 5000
    forged = f"{RUN}/1/2"
    first = (forged, "", "a", "a", "\ud800", "\ud801", long)
    turns = (
        ModelReply("", tuple(ToolCall(given, "look", "{}") for given in first), "tool_use"),
        ModelReply("", (ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}")), "tool_use"),
        DONE,
    )
    run = await run_to_end(MemoryLog(), MissionConfig(replies(*turns), Toolbox([FakeTool("look")])))
    asked = run.of(Kind.TOOL_CALL)
    assert [e.tool_use_id for e in asked] == [
        f"{RUN}/1/1",
        f"{RUN}/1/2",
        "a",
        f"{RUN}/1/4",
        f"{RUN}/1/5",
        f"{RUN}/1/6",
        f"{RUN}/1/7",
        f"{RUN}/2/1",
        "b",
    ]
    kept = [e.detail.get("vendor_id") for e in asked]
    assert kept == [forged, None, None, "a", "\ufffd", "\ufffd", "x" * 256, "a", None]
    assert len(run.results) == len(asked)


async def test_a_reply_too_big_for_one_event_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    """Megabytes in every field of a reply are cut or left out; the run goes on to its answer."""
    big = "z" * 3_000_000
    turns = (ModelReply(big, (ToolCall(big, big, big),), big, None, f'["{big}"]'), DONE)
    run = await run_to_end(MemoryLog(), MissionConfig(replies(*turns), text_limit=MAX_TEXT_LIMIT))
    assert run.answer == DONE.text
    said, call = run.of(Kind.ASSISTANT)[0], run.of(Kind.TOOL_CALL)[0]
    assert len(said.text) == MAX_TEXT_LIMIT
    assert "blocks" not in said.detail
    assert said.detail["blocks_cut"]["bytes"] == len(big) + 4  # type: ignore[index]
    assert (len(call.tool), call.tool_use_id) == (256, f"{RUN}/1/1")
    assert run.of(Kind.ACTION_REJECTED)[0].error_code == "unknown_tool"


async def test_a_vendors_own_content_is_given_back_to_it_whole(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Blocks that a reply carries are recorded and shown again with its message."""
    turns = (ModelReply("", (ToolCall("a", "look", "{}"),), "tool_use", None, '[{"thinking": 1}]'), DONE)
    model = WatchedModel(replies(*turns))
    run = await run_to_end(MemoryLog(), MissionConfig(model, Toolbox([FakeTool("look")])))
    assert run.of(Kind.ASSISTANT)[0].detail["blocks"] == '[{"thinking": 1}]'
    assert model.requests[1].messages[1].blocks == '[{"thinking": 1}]'


async def test_a_model_is_offered_what_is_granted(autojump_clock: trio.testing.MockClock) -> None:
    """Only granted tools are offered, and none to a model that cannot ask for any."""
    box = Toolbox([FakeTool("look"), FakeTool("pay")])
    model = WatchedModel(replies(DONE))
    await run_to_end(MemoryLog(), MissionConfig(model, box), GoalSpec("x", tools=("look",)))
    assert [tool.name for tool in model.requests[0].tools] == ["look"]
    mute = replies(DONE)
    mute.supports_tools = False
    model = WatchedModel(mute)
    await run_to_end(MemoryLog(), MissionConfig(model, box))
    assert model.requests[0].tools == ()


async def test_usage_stands_with_the_words_and_with_the_turn(autojump_clock: trio.testing.MockClock) -> None:
    """assistant.message and turn.completed both carry the turn's usage and stop reason, so either may be the last one seen."""
    usage = Usage(7, 3, 2, 1)
    turns = (ModelReply("", calls("look").tool_calls, "tool_use", usage), DONE)
    run = await run_to_end(MemoryLog(), MissionConfig(replies(*turns), Toolbox([FakeTool("look")])), GOAL)
    for event in (run.of(Kind.ASSISTANT)[0], run.of(Kind.TURN_COMPLETED)[0]):
        assert (event.usage, event.stop_reason) == (usage, "tool_use")
    assert run.of(Kind.TURN_COMPLETED)[1].usage is None


def test_a_configuration_out_of_range_is_refused() -> None:
    """No attempt at all, or a text that no event could hold, is a mistake of the caller."""
    with pytest.raises(ValueError, match="at least one attempt"):
        MissionConfig(script({"text": "x"}), attempts=0)
    for limit in (0, MAX_TEXT_LIMIT + 1):
        with pytest.raises(ValueError, match="text limit"):
            MissionConfig(script({"text": "x"}), text_limit=limit)
