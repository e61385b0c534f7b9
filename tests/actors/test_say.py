"""`say`: a conversation goes on after its terminal event, live, after a restart, and once for each time it is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.asker import MAX_SAID
from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.checks import Check, CheckResult
from affidavit.actors.conversation import fold
from affidavit.actors.errors import NotDriven, ResumeRefused, RunGoing, Stalled
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalKey, GoalSpec, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import Message, ModelReply
from affidavit.actors.projection import project
from affidavit.actors.session import Session, open_session
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import (
    GOAL,
    RUN,
    FakeTool,
    FreeModel,
    KeptLog,
    WatchedModel,
    calls,
    ended,
    replies,
    run_to_end,
    session_and_runtime,
)
from tests.actors.runtimes import SPEC, FakeRuntime

FIRST, SECOND = ModelReply("It is settled."), ModelReply("Twice over.")


def spoken(events: Sequence[Event]) -> list[tuple[str, str]]:
    """The events that open and end a round, with their words."""
    opening = {Kind.SESSION_STARTED, Kind.USER_MESSAGE, Kind.CONVERGED, Kind.STALLED}
    return [(event.kind, event.text or event.err) for event in events if event.kind in opening]


async def answer_of(session: Session) -> str:
    """What `wait` returns, or why the run stalled."""
    try:
        return await session.wait()
    except Stalled as stall:
        return f"stalled: {stall.reason}"


async def test_what_is_said_after_the_end_is_answered_with_all_that_was_said_before() -> None:
    """The model is shown the whole conversation, the run ends once more, and one sealed, complete record holds both rounds."""
    log, model = MemoryLog(), WatchedModel(replies(FIRST, SECOND))
    async with session_and_runtime(log, MissionConfig(model)) as (session, runtime):
        await session.submit(runtime, GOAL)
        assert await session.wait() == "It is settled."
        said = await session.say("Once more, please.", principal="ada")
        assert await session.wait() == "Twice over."
        await session.seal()
    done = await ended(log, "", "")
    assert model.requests[1].messages == (
        Message("user", GOAL.objective),
        Message("assistant", "It is settled."),
        Message("user", "Once more, please."),
    )
    assert spoken(done.events) == [
        (Kind.SESSION_STARTED, GOAL.objective),
        (Kind.CONVERGED, "It is settled."),
        (Kind.USER_MESSAGE, "Once more, please."),
        (Kind.CONVERGED, "Twice over."),
    ]
    message = done.events[said - 1]
    assert (message.kind, message.actor, message.principal) == (Kind.USER_MESSAGE, "human", "ada")
    assert [event.turn for event in done.of(Kind.TURN_STARTED)] == [1, 2]
    assert done.record.complete is True
    # Each seal holds the one before it.
    sizes = [event.detail["size"] for event in done.of(Kind.RECORD_SEALED)]
    assert [event.detail["previous"] for event in done.of(Kind.RECORD_SEALED)] == [0, *sizes[:-1]]
    assert len(done.of(Kind.RECORD_VERIFIED)) == len(sizes) == 2


async def test_words_open_the_status_of_a_run_again() -> None:
    """From user.message on nothing is terminal, and there is neither a result nor an error, until the round has its own."""
    log = MemoryLog()
    async with session_and_runtime(log, MissionConfig(replies(FIRST, ModelReply("")))) as (session, runtime):
        await session.submit(runtime, GOAL)
        await session.wait()
        at = await session.say("And?", principal="ada")
        assert await answer_of(session) == "stalled: the model ended its turn without an answer"
    events = await history(log, RUN)
    before, opened, after = project(events[: at - 1]), project(events[:at]), project(events)
    assert (before.terminal, before.result) == (True, "It is settled.")
    assert (opened.terminal, opened.result, opened.err, opened.objective) == (False, "", "", GOAL.objective)
    assert (after.terminal, after.err) == (True, "the model ended its turn without an answer")
    assert fold(events[:at]).phase is Phase.PENDING


async def test_wait_is_for_the_end_that_was_to_come_when_it_was_called() -> None:
    """Who waited for the first answer gets the first, though by the time they look the run has gone on."""
    log, answers = MemoryLog(), list[str]()
    gate = trio.Event()

    async def answer(position: int) -> ModelReply:
        if position:
            await gate.wait()
        return (FIRST, SECOND)[position]

    async with session_and_runtime(log, MissionConfig(FreeModel(answer))) as (session, runtime):

        async def wait() -> None:
            answers.append(await session.wait())

        async with trio.open_nursery() as nursery:
            await session.submit(runtime, GOAL)
            nursery.start_soon(wait)
            await session.wait()
            await session.say("Once more.", principal="ada")
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert answers == ["It is settled."]
            gate.set()
    assert answers == ["It is settled.", "Twice over."]


async def test_while_a_run_is_going_nothing_can_be_said() -> None:
    """It is a RuntimeError, and nothing is recorded."""
    log, gate = MemoryLog(), trio.Event()

    async def answer(_position: int) -> ModelReply:
        await gate.wait()
        return FIRST

    async with session_and_runtime(log, MissionConfig(FreeModel(answer))) as (session, runtime):
        await session.submit(runtime, GOAL)
        with pytest.raises(RunGoing, match="has not ended") as raised:
            await session.say("Hurry!", principal="ada")
        assert isinstance(raised.value, RuntimeError)
        gate.set()
        await session.wait()
    assert Kind.USER_MESSAGE not in [event.kind for event in await history(log, RUN)]


@pytest.mark.parametrize(
    ("text", "principal", "why"),
    [("  ", "ada", "blank"), ("x" * (MAX_SAID + 1), "ada", "at most"), ("Go on.", " ", "by whom")],
)
async def test_what_cannot_be_recorded_is_not_said(text: str, principal: str, why: str) -> None:
    """Blank words, a book, or words of nobody: a ValueError, and the run stays as it ended."""
    log = MemoryLog()
    async with session_and_runtime(log, MissionConfig(replies(FIRST))) as (session, runtime):
        await session.submit(runtime, GOAL)
        await session.wait()
        with pytest.raises(ValueError, match=why):
            await session.say(text, principal=principal)
        assert session.finished


async def test_a_runtime_that_cannot_go_on_is_found_out_before_anything_is_recorded() -> None:
    """A foreign runtime without `say`, and a session that nothing was handed to: one clear sentence, and no event."""
    log = MemoryLog()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        runtime.converge()
        await session.wait()
        with pytest.raises(NotDriven, match="no `say`") as raised:
            await session.say("Go on.", principal="ada")
        assert isinstance(raised.value, RuntimeError)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        with pytest.raises(NotDriven, match="resume it"):
            await session.say("Go on.", principal="ada")
    assert [kind for kind, _ in spoken(await history(log, RUN))] == [Kind.SESSION_STARTED, Kind.CONVERGED]


async def test_steps_are_given_anew_and_tokens_are_not() -> None:
    """A goal of two turns takes two for each thing that is said, and its tokens are those of the whole run."""
    tool = FakeTool("look")
    config = MissionConfig(replies(calls("look"), FIRST, calls("look"), SECOND, FIRST), Toolbox([tool]))
    log = MemoryLog()
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GoalSpec("Look.", max_steps=2, max_tokens=100_000))
        assert await session.wait() == "It is settled."
        await session.say("Look again.", principal="ada")
        assert await session.wait() == "Twice over."
        spent = fold(await history(log, RUN)).book.used.tokens
    assert spent > 0
    thrifty = MissionConfig(replies(FIRST, SECOND))
    log = MemoryLog()
    async with session_and_runtime(log, thrifty) as (session, runtime):
        await session.submit(runtime, GoalSpec("Look.", max_tokens=1100))
        assert await session.wait() == "It is settled."
        await session.say("Look again.", principal="ada")
        assert "tokens are used" in await answer_of(session)


async def test_a_round_is_held_to_its_steps() -> None:
    """More turns than the goal has for one round stall it, and the next words open it again."""
    look = calls("look")
    config = MissionConfig(replies(look, FIRST, look, look, SECOND), Toolbox([FakeTool("look")]))
    log = MemoryLog()
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GoalSpec("Look.", max_steps=2))
        await session.wait()
        await session.say("Look twice.", principal="ada")
        assert await answer_of(session) == "stalled: the budget of 2 model turns is used up"
        await session.say("Then answer.", principal="ada")
        assert await session.wait() == "Twice over."
        await session.seal()
    done = await ended(log, "", "")
    assert [event.turn for event in done.of(Kind.TURN_STARTED)] == [1, 2, 3, 4, 5]


async def test_a_new_answer_is_checked_anew() -> None:
    """The checks and the model's own look at its answer are had for each round, and each outcome rests on its own check."""
    runs = 0

    async def check() -> CheckResult:
        nonlocal runs
        runs += 1
        await trio.lowlevel.checkpoint()
        return CheckResult(passed=True, detail=f"look {runs}")

    declared = Check("sound", check, idempotent=True)
    config = MissionConfig(replies(FIRST, FIRST, SECOND, SECOND), checks=(declared,))
    log = MemoryLog()
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GoalSpec("Look.", self_checks=1))
        await session.wait()
        await session.say("Look again.", principal="ada")
        await session.wait()
        await session.seal()
    done = await ended(log, "", "")
    assert runs == 2
    assert [event.detail["check"] for event in done.of(Kind.OUTCOME)] == [
        event.detail["check"] for event in done.of(Kind.CHECK)
    ]
    assert done.record.governance is not None
    assert done.record.governance.outcomes_claimed == 2
    assert [bool(event.text) for event in done.of(Kind.TURN_STARTED)] == [False, True, False, True]


async def test_after_a_restart_what_is_said_goes_to_the_same_conversation(autojump_clock: MockClock) -> None:
    """A new session of an ended run takes the runtime by `resume`, which records nothing, and then goes on."""
    log, model = MemoryLog(), WatchedModel(replies(FIRST, SECOND))
    await run_to_end(log, MissionConfig(model))
    tip = len(await history(log, RUN))
    async with session_and_runtime(log, MissionConfig(model)) as (session, runtime):
        await session.resume(runtime, GoalKey(RUN))
        assert await session.say("Once more.", principal="ada") == tip + 1
        assert await session.wait() == "Twice over."
        await session.seal()
    assert [message.text for message in model.requests[-1].messages] == [
        GOAL.objective,
        "It is settled.",
        "Once more.",
    ]
    done = await ended(log, "", "")
    assert done.record.complete is True


async def test_changed_tools_are_refused_before_anything_is_said() -> None:
    """What a resumed run is held to holds for what is said as well; an accepted change is recorded with the new round."""
    log = MemoryLog()
    await run_to_end(log, MissionConfig(replies(FIRST, SECOND)))
    tip = len(await history(log, RUN))
    changed = MissionConfig(replies(FIRST, SECOND), Toolbox([FakeTool("look")]))
    async with session_and_runtime(log, changed) as (session, runtime):
        await session.resume(runtime, GoalKey(RUN))
        with pytest.raises(ResumeRefused, match="other tools"):
            await session.say("Once more.", principal="ada")
    assert len(await history(log, RUN)) == tip
    async with session_and_runtime(log, changed, accept_changes=True) as (session, runtime):
        await session.resume(runtime, GoalKey(RUN))
        await session.say("Once more.", principal="ada")
        assert await session.wait() == "Twice over."
    phases = [event for event in (await history(log, RUN))[tip:] if event.kind == Kind.GOAL_PHASE]
    assert phases[0].detail["changed"] == ["tools"]


async def test_cut_after_every_append_of_the_second_round_it_is_answered_once() -> None:
    """A crash at any point after the words are durable: the run is resumed, the words stand once, the answer ends the round."""
    kept = KeptLog()
    config = MissionConfig(
        replies(FIRST, calls("look"), SECOND), Toolbox([FakeTool("look", idempotent=True)])
    )
    async with session_and_runtime(kept, config) as (session, runtime):
        await session.submit(runtime, GOAL)
        await session.wait()
        await session.seal()
        first = len(kept.appends)
        await session.say("Once more.", principal="ada", causation_id="web/7")
        await session.wait()
        last = len(kept.appends)
    for count in range(first + 1, last + 1):
        log = await kept.cut(count)
        done = await run_to_end(log, config, resume=True)
        assert done.answer == "Twice over."
        assert [kind for kind, _ in spoken(done.events)] == [
            Kind.SESSION_STARTED,
            Kind.CONVERGED,
            Kind.USER_MESSAGE,
            Kind.CONVERGED,
        ]
        assert done.record.complete is True


async def test_a_request_that_was_carried_out_is_not_said_again() -> None:
    """Said twice under one request's id, it stands once, and the second caller is told where."""
    log = MemoryLog()
    async with session_and_runtime(log, MissionConfig(replies(FIRST, SECOND))) as (session, runtime):
        await session.submit(runtime, GOAL)
        await session.wait()
        at = await session.say("Once more.", principal="ada", causation_id="web/7")
        assert await session.say("Once more.", principal="ada", causation_id="web/7") == at
        await session.wait()
        assert await session.say("Once more.", principal="ada", causation_id="web/7") == at
    assert [kind for kind, _ in spoken(await history(log, RUN))].count(Kind.USER_MESSAGE) == 1
