"""Resuming a run: with the same parts it goes on, with others it is refused or the change is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ResumeRefused
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalSpec, Phase
from affidavit.actors.history import history
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import (
    DONE,
    RUN,
    FakeTool,
    FreeModel,
    KeptLog,
    WatchedModel,
    calls,
    park_when,
    replies,
    run_to_end,
    session_and_runtime,
)

SPEC = GoalSpec("Look.", tools=("look",), max_steps=7)
BOX = Toolbox([FakeTool("look", idempotent=True)])


def model(digest: bytes = b"one") -> FreeModel:
    """A model that looks and is done."""
    made = replies(calls("look"), DONE)
    made.digest = digest
    return made


CONFIG = MissionConfig(model(), BOX)
OTHER_MODEL = replace(CONFIG, model=model(b"two"))


async def parked(config: MissionConfig = CONFIG) -> KeptLog:
    """A log with a run that was parked within its first model call."""
    asked = trio.Event()

    async def wait(position: int) -> ModelReply:
        asked.set()
        await trio.sleep_forever()
        raise AssertionError

    log = KeptLog()
    stuck = FreeModel(wait, digest=config.model.digest)
    await park_when(log, replace(config, model=stuck), asked, SPEC)
    return log


async def test_the_record_says_what_a_run_was_started_with() -> None:
    """session.started carries the goal, the model's name and a digest of each part."""
    log = KeptLog()
    run = await run_to_end(log, CONFIG, SPEC)
    started = run.events[0]
    assert started.detail["model"] == "fake:free"
    assert started.detail["digests"] == CONFIG.digests(SPEC)
    assert GoalSpec.from_detail(started.detail["spec"]) == replace(SPEC, name=RUN)  # type: ignore[arg-type]


async def test_a_run_resumed_with_the_same_parts_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    """A parked run is resumed without a word about changes, and ends; its start is not announced again."""
    log = await parked()
    run = await run_to_end(log, CONFIG, resume=True)
    assert run.answer == DONE.text
    assert len(run.of(Kind.SESSION_STARTED)) == 1
    assert [e.detail for e in run.of(Kind.GOAL_PHASE) if "changed" in e.detail] == []


SAID = {"model": "another model", "tools": "other tools", "configuration": "another configuration"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: replace(c, model=model(b"two")), ["model"]),
        (lambda c: replace(c, toolbox=Toolbox([FakeTool("look")])), ["tools"]),
        (lambda c: replace(c, toolbox=Toolbox([*BOX.values(), FakeTool("pay")])), ["tools"]),
        (lambda c: replace(c, text_limit=1000), ["configuration"]),
        (lambda c: replace(c, model=model(b"two"), toolbox=Toolbox()), ["model", "tools"]),
    ],
)
async def test_a_changed_part_is_refused_by_name_or_accepted_and_recorded(
    change: Callable[[MissionConfig], MissionConfig],
    named: list[str],
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Another model, tools or limits: refused with nothing written, unless accepted, and then it stands on the record."""
    log = await parked()
    before = await history(log, RUN)
    other = change(CONFIG)
    with pytest.raises(ResumeRefused, match=" and ".join(SAID[name] for name in named)):
        await run_to_end(log, other, resume=True)
    assert _about_the_run(await history(log, RUN)) == _about_the_run(before)
    run = await run_to_end(log, other, resume=True, accept_changes=True)
    assert run.answer == DONE.text
    recorded = [e.detail for e in run.of(Kind.GOAL_PHASE) if "changed" in e.detail]
    assert [detail["changed"] for detail in recorded] == [named]
    assert recorded[0]["digests"] == other.digests(SPEC)


def _about_the_run(events: tuple[Event, ...]) -> list[Event]:
    return [event for event in events if not event.kind.startswith("record.")]


async def test_a_policy_other_than_the_recorded_one_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A recorded policy digest that this version does not arrive at from the recorded goal is a changed policy."""
    log = await parked()
    forged = {**CONFIG.digests(SPEC), "policy": bytes(32)}

    started = (await history(log, RUN))[0]
    kept = KeptLog()
    await kept.write(replace(started, detail={**started.detail, "digests": forged}))
    with pytest.raises(ResumeRefused, match="another policy"):
        await run_to_end(kept, CONFIG, resume=True)


async def test_an_accepted_change_is_what_the_next_resume_is_compared_with(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """After a change was accepted, going on with it is no change, and going back is one."""
    log = await parked()
    asked = trio.Event()

    async def wait(position: int) -> ModelReply:
        asked.set()
        await trio.sleep_forever()
        raise AssertionError

    stuck = replace(CONFIG, model=FreeModel(wait, digest=b"two"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_resume_until_cancelled, log, stuck)
        await asked.wait()
        nursery.cancel_scope.cancel()
    with pytest.raises(ResumeRefused, match="another model"):
        await run_to_end(log, CONFIG, resume=True)
    run = await run_to_end(log, OTHER_MODEL, resume=True)
    assert run.answer == DONE.text
    assert len([e for e in run.of(Kind.GOAL_PHASE) if "changed" in e.detail]) == 1


async def _resume_until_cancelled(log: KeptLog, config: MissionConfig) -> None:
    await run_to_end(log, config, resume=True, accept_changes=True)


async def test_words_of_the_operator_without_a_utf8_form_are_repaired_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An objective or system prompt with lone surrogates is repaired as it is recorded; resuming finds nothing changed."""
    asked, log = trio.Event(), KeptLog()

    async def wait(position: int) -> ModelReply:
        asked.set()
        await trio.sleep_forever()
        raise AssertionError

    spec = GoalSpec("look \ud800", system="be \udfff kind", tools=("look",))
    await park_when(log, replace(CONFIG, model=FreeModel(wait, digest=b"one")), asked, spec)
    watched = WatchedModel(CONFIG.model)
    run = await run_to_end(log, replace(CONFIG, model=watched), resume=True)
    assert run.answer == DONE.text
    request = watched.requests[0]
    assert (request.system, request.messages[0].text) == ("be \ufffd kind", "look \ufffd")


async def test_a_finished_run_is_not_driven_again(autojump_clock: trio.testing.MockClock) -> None:
    """Resuming a run that converged asks no model, writes nothing of the run, and says the answer that stands."""
    log = KeptLog()
    first = await run_to_end(log, CONFIG, SPEC)
    again = await run_to_end(log, OTHER_MODEL, resume=True)
    assert again.answer == first.answer
    assert _about_the_run(again.events) == _about_the_run(first.events)


@pytest.mark.parametrize(
    "detail",
    [{"spec": "text"}, {"spec": {"objective": 7}}, {"spec": {"objective": "x", "tools": [1]}}, {"spec": {}}],
)
async def test_a_goal_stated_in_a_form_of_its_own_cannot_be_driven(
    detail: Mapping[str, object], autojump_clock: trio.testing.MockClock
) -> None:
    """A run that another program began in its own words is refused in one sentence, and can still be read and sealed."""
    log = KeptLog()
    await log.write(Event(Kind.SESSION_STARTED, text="x", detail=detail))
    with pytest.raises(ResumeRefused, match="no goal"):
        await run_to_end(log, CONFIG, resume=True)
    async with session_and_runtime(log, CONFIG) as (session, _runtime):
        assert (await session.seal()).kind == Kind.RECORD_SEALED


async def test_a_goal_whose_end_stands_without_its_terminal_event_gets_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A stream cut between the goal's end and the session's, by another writer, is completed on resume, and not driven."""
    log = KeptLog()
    await log.write(
        Event(Kind.SESSION_STARTED, text="x", detail={"spec": GoalSpec("x", name=RUN).as_detail()}),
        Event(Kind.GOAL_PHASE, detail={"phase": str(Phase.CONVERGED), "message": "It was so.", "steps": 3}),
    )
    run = await run_to_end(log, CONFIG, resume=True)
    assert run.answer == "It was so."
    assert run.of(Kind.TURN_STARTED) == []
    assert len(run.of(Kind.GOAL_PHASE)) == 1
