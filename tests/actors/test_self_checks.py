"""A model that checks its own answer: asked on the record, in turns like any other, and as often as the goal says."""

from __future__ import annotations

from dataclasses import replace

from affidavit.actors.checks import Check
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_turn import CHECK_YOURSELF
from affidavit.actors.models.port import ModelReply, ModelRequest
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.checks_kit import PASS, Counted, config
from tests.actors.mission_kit import RUN, FakeTool, KeptLog, WatchedModel, calls, repeat, replies, run_to_end

TWICE = GoalSpec("Add one and one.", self_checks=2)
TURNS = (ModelReply("3"), calls("look"), ModelReply("2, I think"), ModelReply("2"))
BOX = Toolbox([FakeTool("look", repeat, idempotent=True)])


def watched(*turns: ModelReply) -> tuple[MissionConfig, list[ModelRequest]]:
    """A mission that is given these turns, and what its model was shown."""
    model = WatchedModel(replies(*turns))
    return MissionConfig(model, BOX), model.requests


async def test_the_answer_counts_once_the_model_has_checked_it() -> None:
    """Two passes, one of which uses a tool: the last words are the answer, and each question is on the record in words."""
    mission, seen = watched(*TURNS)
    run = await run_to_end(MemoryLog(), mission, TWICE)
    assert (run.answer, run.error_class) == ("2", "")
    asked = [(event.turn, event.text, dict(event.detail)) for event in run.of(Kind.TURN_STARTED)]
    question = CHECK_YOURSELF
    assert asked == [
        (1, "", {}),
        (2, question, {"self_check": 1}),
        (3, "", {}),
        (4, question, {"self_check": 2}),
    ]
    assert [request.messages[-1].role for request in seen] == ["user", "user", "tool", "user"]
    assert [request.messages[-1].text for request in seen][1] == question
    # It is asked behind its own answer, and sees its tool's result as in any turn.
    assert [message.text for message in seen[1].messages] == ["Add one and one.", "3", question]
    assert len(run.of(Kind.CONVERGED)) == 1


async def test_no_check_is_asked_for_by_default() -> None:
    """A goal that says nothing of it converges with the first answer."""
    mission, seen = watched(ModelReply("3"))
    run = await run_to_end(MemoryLog(), mission, replace(TWICE, self_checks=0))
    assert (run.answer, len(seen)) == ("3", 1)


async def test_checking_spends_the_goal_s_budget() -> None:
    """A pass is a step of the run; where none is left, the unchecked answer does not count."""
    mission, _ = watched(*TURNS)
    run = await run_to_end(MemoryLog(), mission, replace(TWICE, max_steps=1))
    assert run.error_class == "budget_exceeded"
    assert [event.turn for event in run.of(Kind.TURN_STARTED)] == [1]


async def test_an_answer_lost_in_checking_is_none() -> None:
    """A check that ends without words, or cut short, ends the run as it would anywhere."""
    mission, _ = watched(ModelReply("3"), ModelReply("", stop_reason="max_tokens"))
    run = await run_to_end(MemoryLog(), mission, TWICE)
    assert run.error_class == "budget_exceeded"
    assert "cut off" in run.answer
    assert not run.of(Kind.CONVERGED)


async def test_cut_at_any_append_the_checking_goes_on_where_it_stood() -> None:
    """Resumed, the model is shown the very requests that were still to come, and checks no more often than asked."""
    log = KeptLog()
    mission, seen = watched(*TURNS)
    await run_to_end(log, mission, TWICE)
    for count in range(1, len(log.appends)):
        cut = await log.cut(count)
        kinds = [event.kind for event in await history(cut, RUN)]
        if Kind.CONVERGED in kinds:
            break
        answered = kinds.count(Kind.ASSISTANT)
        resumed, again = watched(*TURNS)
        run = await run_to_end(cut, resumed, TWICE, resume=True)
        assert run.answer == "2"
        assert again == seen[answered:], count
        assert sum("self_check" in event.detail for event in run.of(Kind.TURN_STARTED)) == 2


async def test_declared_checks_judge_the_answer_that_was_checked() -> None:
    """They run once, after the model is done with its own, about its last answer."""
    counted = Counted(PASS)
    mission = config(Check("tests", counted))
    mission = replace(mission, model=replies(ModelReply("3"), ModelReply("2"), ModelReply("2")))
    run = await run_to_end(MemoryLog(), mission, TWICE)
    assert run.answer == "2"
    (verdict,) = run.of(Kind.CHECK)
    assert verdict.turn == 3
