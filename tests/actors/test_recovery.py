"""Crashes: a run cut at any append boundary and resumed ends like the undisturbed one, and does nothing twice.

The cut stands for a kill: what was acknowledged is there, and what an admitted action had already done in the world is done.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.deciders.port import MODEL_ACTION
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import Message
from affidavit.actors.recovery import CANCELLED_TEXT, INTERRUPTED_TEXT, closing_events, ending_events
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import RUN, Ended, FakeTool, KeptLog, Work, run_to_end, script
from tests.environment import CUT_EXAMPLES

SPEC = GoalSpec("Settle it.", tools=("pay", "note", "fail", "crash"), max_steps=50)


@dataclass
class World:
    """What the tools did, each effect with the number of appends that stood when it happened."""

    effects: list[tuple[str, int]] = field(default_factory=list)
    log: KeptLog = field(default_factory=KeptLog)

    def work(self, outcome: str) -> Work:
        """Work that leaves an effect named by its key, and ends in one of three ways."""

        async def act(arguments: Mapping[str, object]) -> str:
            await trio.lowlevel.checkpoint()
            self.effects.append((str(arguments["key"]), len(self.log.appends)))
            if outcome == "fail":
                raise ToolFailed(f"could not {arguments['key']}")
            if outcome == "crash":
                raise ValueError(str(arguments["key"]))
            return f"did {arguments['key']}"

        return act

    @property
    def toolbox(self) -> Toolbox:
        """pay, fail and crash must not be repeated; note may be; hide is not granted."""
        schema = '{"properties":{"key":{"type":"string"}},"required":["key"],"type":"object"}'
        return Toolbox(
            FakeTool(name, self.work(name), idempotent=name == "note", schema=schema)
            for name in ("pay", "note", "fail", "crash", "hide")
        )


@st.composite
def scripts(draw: st.DrawFn) -> list[dict[str, object]]:
    """Scripts of a few turns, with calls of every sort, ids missing and repeated, and transient errors."""
    turns: list[dict[str, object]] = []
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        asked: list[dict[str, object]] = []
        for _ in range(draw(st.integers(1, 3))):
            number += 1
            name = draw(st.sampled_from(["pay", "note", "fail", "crash", "hide", "ghost"]))
            bad = draw(st.sampled_from([False, False, False, True]))
            given_id = draw(st.sampled_from(["", "same", f"id{number}"]))
            asked.append({"name": name, "input": "{" if bad else {"key": f"{name}{number}"}, "id": given_id})
        turn: dict[str, object] = {"text": draw(st.sampled_from(["", "On it."])), "tool_calls": asked}
        if draw(st.booleans()):
            turn["error"] = {"message": "busy", "times": 1}
        turns.append(turn)
    return [*turns, {"text": "Settled."}]


EXAMPLE: list[dict[str, object]] = [
    {
        "text": "On it.",
        "tool_calls": [
            {"name": "pay", "input": {"key": "pay1"}, "id": "same"},
            {"name": "note", "input": {"key": "note2"}, "id": "same"},
            {"name": "ghost", "input": {}},
        ],
        "error": {"message": "busy", "times": 1},
    },
    {"tool_calls": [{"name": "crash", "input": {"key": "crash4"}}, {"name": "pay", "input": "{"}]},
    {"text": "Settled."},
]


async def _run(world: World, turns: list[dict[str, object]], *, resume: bool = False) -> Ended:
    config = MissionConfig(script(*turns), world.toolbox, backoff_seconds=0.1)
    return await run_to_end(world.log, config, SPEC, resume=resume)


async def _check_every_cut(turns: list[dict[str, object]]) -> None:
    live = World()
    whole = await _run(live, turns)
    for count in range(1, len(live.log.appends) + 1):
        again = World(log=await live.log.cut(count))
        # The kill came as late as it could: whatever was begun on this log has had its effect.
        again.effects = [(key, at) for key, at in live.effects if at <= count]
        before = await history(again.log, RUN)
        resumed = await _run(again, turns, resume=True)
        assert resumed.answer == whole.answer == "Settled."
        assert resumed.events[: len(before)] == before
        _check_effects(again, before, {key for key, at in live.effects if at <= count})
        begun = fold(before).book.open_actions.values()
        lost = {action.tool_use_id for action in begun if not action.idempotent}
        answers = {e.tool_use_id: e.result for e in resumed.of(Kind.TOOL_RESULT)}
        assert all(answers[call] == INTERRUPTED_TEXT for call in lost)
        assert _shown(resumed, lost) == _shown(whole, lost)
        assert resumed.conversation.book.open_actions == {}


def _check_effects(world: World, before: tuple[Event, ...], done: set[str]) -> None:
    counts = Counter(key for key, _ in world.effects)
    keys = {e.tool_use_id: e.input for e in before if e.kind == Kind.TOOL_CALL}
    ended = {e.tool_use_id for e in before if e.kind == Kind.ACTION_COMPLETED and e.tool_use_id}
    completed = {json.loads(keys[call])["key"] for call in ended if '"key"' in keys[call]}
    for key, count in counts.items():
        assert count == 1 or (count == 2 and key.startswith("note") and key in done - completed)


def _shown(run: Ended, lost: set[str]) -> list[Message]:
    """The final conversation, without the words of results that the cut made unknowable."""
    return [
        replace(message, text="", is_error=True) if message.tool_use_id in lost else message
        for message in run.conversation.messages
    ]


async def test_a_run_cut_at_any_append_ends_like_the_whole_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One example with every sort of call, cut after each append in turn."""
    await _check_every_cut(EXAMPLE)


@settings(max_examples=CUT_EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(turns=scripts())
def test_any_run_cut_at_any_append_ends_like_the_whole_one(turns: list[dict[str, object]]) -> None:
    """For any script and any cut: same conversation, no effect twice that must not be, record verified at L4 (S9, G4)."""
    trio.run(_check_every_cut, turns, clock=trio.testing.MockClock(autojump_threshold=0))


@settings(max_examples=CUT_EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(turns=scripts())
def test_the_fold_of_the_log_is_the_live_conversation(turns: list[dict[str, object]]) -> None:
    """What the record folds to, in one go or event by event, is the same at every prefix, and holds what was said."""

    async def main() -> None:
        run = await _run(World(), turns)
        stepwise = Conversation()
        for count, event in enumerate(run.events, 1):
            stepwise.apply(event)
            assert stepwise == fold(run.events[:count])
        said = [m.text for m in stepwise.messages if m.role == "assistant"]
        assert said == [event.text for event in run.of(Kind.ASSISTANT)]

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_an_interrupted_payment_is_reported_and_not_repeated(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Cut right after the admission of a payment: the model is told that its outcome is unknown, and nobody pays again (G4)."""
    live = World()
    whole = await _run(live, EXAMPLE)
    payment = next(e for e in whole.of(Kind.ACTION_ADMITTED) if e.action == "pay")
    log = await live.log.cut(_append_of(live.log, payment.seq))
    again = World(log=log, effects=[("pay1", 0)])
    resumed = await _run(again, EXAMPLE, resume=True)
    assert Counter(key for key, _ in again.effects)["pay1"] == 1
    result = next(e for e in resumed.of(Kind.TOOL_RESULT) if e.tool_use_id == payment.tool_use_id)
    assert (result.result, result.is_error) == (INTERRUPTED_TEXT, True)
    ends = [e for e in resumed.of(Kind.ACTION_COMPLETED) if e.call == payment.call]
    assert [e.error_class for e in ends] == [FaultClass.INTERRUPTED]
    assert result.time == ends[0].time


async def test_an_interrupted_model_call_has_spent_its_reservation(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Cut within a model call: its end says interrupted, what was reserved counts as used, the turn is not announced again."""
    live = World()
    whole = await _run(live, EXAMPLE)
    asked = next(e for e in whole.of(Kind.ACTION_ADMITTED) if e.action == MODEL_ACTION)
    again = World(log=await live.log.cut(_append_of(live.log, asked.seq)))
    resumed = await _run(again, EXAMPLE, resume=True)
    end = next(e for e in resumed.of(Kind.ACTION_COMPLETED) if e.call == asked.call)
    assert end.error_class == FaultClass.INTERRUPTED
    assert end.detail["used"] == asked.detail["reserved"]
    assert [e.turn for e in resumed.of(Kind.TURN_STARTED)] == [1, 2, 3]


def _append_of(log: KeptLog, seq: int) -> int:
    """The number of the append that wrote this event."""
    return next(
        number
        for number, entries in enumerate(log.appends, 1)
        if entries[0].expected_seq + len(entries[0].rows) >= seq
    )


async def test_numbers_go_on_after_the_largest_on_the_record(autojump_clock: trio.testing.MockClock) -> None:
    """A resumed run numbers its actions after the largest call on the record, children's and refusals included."""
    log = KeptLog()
    spec = replace(SPEC, name=RUN)
    await log.write(
        Event(Kind.SESSION_STARTED, text="x", detail={"spec": spec.as_detail()}),
        Event(Kind.ACTION_ADMITTED, action="look", call=40, goal="child-1"),
        Event(Kind.ACTION_REJECTED, action="look", call=41, error_class=FaultClass.FORBIDDEN),
    )
    world = World(log=log)
    run = await _run(world, [{"text": "Settled."}], resume=True)
    assert [e.call for e in run.of(Kind.ACTION_ADMITTED)] == [40, 42]
    closed = run.of(Kind.ACTION_COMPLETED)[0]
    assert (closed.call, closed.goal, closed.error_class) == (40, "child-1", FaultClass.INTERRUPTED)


def _open(*names: str, idempotent: bool = False) -> Conversation:
    """A conversation whose first call has begun."""
    conversation = Conversation()
    conversation.apply(Event(Kind.SESSION_STARTED, text="x"))
    conversation.apply(Event(Kind.TURN_STARTED, turn=1))
    conversation.apply(Event(Kind.ASSISTANT, turn=1, stop_reason="tool_use"))
    for name in names:
        conversation.apply(Event(Kind.TOOL_CALL, turn=1, tool=name, tool_use_id=name))
    conversation.apply(
        Event(
            Kind.ACTION_ADMITTED,
            action=names[0],
            call=1,
            turn=1,
            tool_use_id=names[0],
            detail={"idempotent": idempotent},
        )
    )
    return conversation


def test_closing_answers_what_must_not_run_again() -> None:
    """The only open call: its end, its answer and the end of the turn; applied, nothing is left open."""
    conversation = _open("pay")
    events = closing_events(conversation)
    assert [e.kind for e in events] == [Kind.ACTION_COMPLETED, Kind.TOOL_RESULT, Kind.TURN_COMPLETED]
    assert events[2].stop_reason == "tool_use"
    for event in events:
        conversation.apply(event)
    assert closing_events(conversation) == ending_events(conversation) == ()


def test_closing_leaves_what_may_run_again_and_what_has_not_begun() -> None:
    """An idempotent call stays open with its action closed; a call not begun stays open beside an answered one."""
    assert [e.kind for e in closing_events(_open("note", idempotent=True))] == [Kind.ACTION_COMPLETED]
    conversation = _open("pay", "later")
    assert [e.kind for e in closing_events(conversation)] == [Kind.ACTION_COMPLETED, Kind.TOOL_RESULT]
    for event in closing_events(conversation):
        conversation.apply(event)
    assert list(conversation.pending) == ["later"]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
def test_ending_answers_every_open_call(names: tuple[str, ...], *, idempotent: bool) -> None:
    """The begun action ends, each call gets an answer in call order, saying what is known of it, and the turn ends."""
    end, *results, turn = ending_events(_open(*names, idempotent=idempotent))
    assert (end.kind, turn.kind) == (Kind.ACTION_COMPLETED, Kind.TURN_COMPLETED)
    assert [e.tool_use_id for e in results] == list(names)
    first = CANCELLED_TEXT if idempotent else INTERRUPTED_TEXT
    assert [e.result for e in results] == [first] + [CANCELLED_TEXT] * (len(names) - 1)
