"""`say` by way of a host, of an inbox and of a runtime that is not ours: who may open an ended run again, and who may not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.errors import ResumeRefused, RunGoing, RunOwned, Stalled
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import Answer, InboxReader, post, say_event
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.reporter import Reporter
from affidavit.actors.runtime_port import ConversingRuntime
from affidavit.actors.session import Session, open_session
from affidavit.actors.session_inbox import EXPIRED, GOING, MALFORMED, NOT_DRIVEN
from tests.actors.mission_kit import GOAL, RUN, SIGNER, FreeModel, replies, script, session_and_runtime
from tests.actors.test_say import FIRST, SECOND, spoken

LATER = 2**62


class TalkingRuntime:
    """A runtime of somebody else's, which answers each time with the next of its words, seen only by its status."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.heard: list[str] = []
        self.current = GoalStatus(Phase.PENDING, active=False)
        self.refusal: Exception | None = None

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Say nothing."""
        return {}

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        """Answer."""
        await self._answer()
        return GoalKey(spec.name)

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        """Answer."""
        await self._answer()

    async def may_go_on(self, key: GoalKey, reporter: Reporter) -> None:
        """It may."""
        await trio.lowlevel.checkpoint()

    async def say(self, key: GoalKey, text: str, reporter: Reporter) -> None:
        """Hear it and answer."""
        self.heard.append(text)
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            raise self.refusal
        await self._answer()

    async def _answer(self) -> None:
        await trio.lowlevel.checkpoint()
        self.current = GoalStatus(Phase.CONVERGED, self.answers.pop(0), 1, active=False)

    async def status(self, key: GoalKey) -> GoalStatus:
        """How it stands."""
        await trio.lowlevel.checkpoint()
        return self.current

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        """Nothing runs."""
        await trio.lowlevel.checkpoint()


async def asked(log: Log, session: Session, event: Event) -> Answer:
    """Ask a session's owner for something, as another process does, and return what became of it."""
    seq = await post(log, RUN, event, SystemClock())
    await session.attend()
    inbox = InboxReader(log, RUN)
    inbox.expect(seq)
    await inbox.catch_up()
    return inbox.answers[seq]


async def test_a_host_goes_on_with_a_run_that_it_has_ended() -> None:
    """Right after the end, with the first round being sealed still, and again; each `Run` tells of its own answer."""
    log, config = MemoryLog(), MissionConfig(replies(FIRST, SECOND, ModelReply("Thrice.")))
    async with open_host(log, signer=SIGNER) as host:
        run = await host.submit(GOAL, config, id=RUN)
        assert await run.session.wait() == "It is settled."
        second = await host.say(RUN, config, "Once more.", principal="ada")
        assert await second.session.wait() == "Twice over."
        await second.closed()
        third = await host.say(RUN, config, "And again.", principal="ada")
        assert await third.session.wait() == "Thrice."
        assert host.run(RUN) is third
        await third.closed()
    events = await history(log, RUN)
    assert [text for kind, text in spoken(events) if kind == Kind.USER_MESSAGE] == [
        "Once more.",
        "And again.",
    ]
    assert events[-1].kind == Kind.RECORD_VERIFIED


async def test_a_host_says_nothing_on_a_run_that_is_going() -> None:
    """Driven here, driven by another, or parked: each is told apart, and nothing is recorded."""
    log, gate = MemoryLog(), trio.Event()

    async def answer(_position: int) -> ModelReply:
        await gate.wait()
        return FIRST

    config = MissionConfig(FreeModel(answer))
    async with open_host(log) as host:
        await host.submit(GOAL, config, id=RUN)
        with pytest.raises(RunGoing, match="driven here"):
            await host.say(RUN, config, "Hurry.", principal="ada")
        async with open_host(log) as other:
            with pytest.raises(RunOwned):
                await other.say(RUN, config, "Hurry.", principal="ada")
    async with open_host(log) as host:
        with pytest.raises(RunGoing, match="resume goes on with it"):
            await host.say(RUN, config, "Hurry.", principal="ada")
    assert Kind.USER_MESSAGE not in [event.kind for event in await history(log, RUN)]


async def test_a_say_that_was_cut_short_is_resumed_under_its_request_and_not_doubled() -> None:
    """A host dies in the second round; the same request, made again elsewhere, goes on with what was said."""
    log, gate = MemoryLog(), trio.Event()

    async def answer(position: int) -> ModelReply:
        if position:
            await gate.wait()
        return (FIRST, SECOND)[position]

    config = MissionConfig(FreeModel(answer))
    async with open_host(log, signer=SIGNER) as host:
        run = await host.submit(GOAL, config, id=RUN)
        await run.closed()
        run = await host.say(RUN, config, "Once more.", principal="ada", causation_id="web/7")
        again = await host.say(RUN, config, "Once more.", principal="ada", causation_id="web/7")
        assert again is run
    gate.set()
    async with open_host(log, signer=SIGNER) as host:
        run = await host.say(RUN, config, "Once more.", principal="ada", causation_id="web/7")
        assert await run.session.wait() == "Twice over."
        await run.closed()
        done = await host.say(RUN, config, "Once more.", principal="ada", causation_id="web/7")
        assert await done.session.wait() == "Twice over."
    assert [kind for kind, _ in spoken(await history(log, RUN))] == [
        Kind.SESSION_STARTED,
        Kind.CONVERGED,
        Kind.USER_MESSAGE,
        Kind.CONVERGED,
    ]


async def test_changes_are_refused_by_the_host_with_the_run_as_it_was() -> None:
    """The caller hears why, and the run has not been opened."""
    log = MemoryLog()
    async with open_host(log) as host:
        run = await host.submit(GOAL, MissionConfig(replies(FIRST)), id=RUN)
        await run.closed()
        other = MissionConfig(script({"text": "It is settled."}))
        with pytest.raises(ResumeRefused, match="another model"):
            await host.say(RUN, other, "Once more.", principal="ada")
    assert spoken(await history(log, RUN))[-1] == (Kind.CONVERGED, "It is settled.")


async def test_the_owner_says_what_another_process_asks_it_to_say() -> None:
    """By way of the inbox: the words stand in the asker's name with the request as their cause, and are answered for."""
    log = MemoryLog()
    async with session_and_runtime(log, MissionConfig(replies(FIRST, SECOND))) as (session, runtime):
        await session.submit(runtime, GOAL)
        await session.wait()
        answer = await asked(log, session, say_event("Once more.", principal="eve", expires=LATER))
        assert await session.wait() == "Twice over."
    said = (await history(log, RUN))[answer.seq - 1]
    assert (answer.outcome, said.kind, said.text) == ("done", Kind.USER_MESSAGE, "Once more.")
    assert (said.actor, said.principal, said.causation_id) == ("human", "eve", f"{RUN}.inbox/1")


async def test_a_request_to_say_something_is_refused_with_the_reason() -> None:
    """Too late, blank, while the run is going, or where nothing could go on: a code each, and nothing on the record."""
    log, gate = MemoryLog(), trio.Event()

    async def answer(_position: int) -> ModelReply:
        await gate.wait()
        return FIRST

    hurry = say_event("Hurry.", principal="eve", expires=LATER)
    async with session_and_runtime(log, MissionConfig(FreeModel(answer))) as (session, runtime):
        await session.submit(runtime, GOAL)
        assert (await asked(log, session, hurry)).code == GOING
        gate.set()
        await session.wait()
        assert (await asked(log, session, say_event(" ", principal="eve", expires=LATER))).code == MALFORMED
        assert (await asked(log, session, say_event("Hurry.", principal="eve", expires=1))).code == EXPIRED
        assert await session.let_go()
        assert (await asked(log, session, hurry)).code == NOT_DRIVEN
    async with open_session(log, MemoryBus(), id=RUN) as session:
        assert (await asked(log, session, hurry)).code == NOT_DRIVEN
    assert Kind.USER_MESSAGE not in [event.kind for event in await history(log, RUN)]


async def test_an_effect_whose_answer_was_lost_is_answered_and_not_said_again() -> None:
    """The owner dies between the words and its answer; the next one finds them on the record."""
    log = MemoryLog()
    hurry = say_event("Once more.", principal="eve", expires=LATER)
    async with session_and_runtime(log, MissionConfig(replies(FIRST, SECOND))) as (session, runtime):
        await session.submit(runtime, GOAL)
        await session.wait()
        seq = await post(log, RUN, hurry, SystemClock())
        at = await session.say("Once more.", principal="eve", causation_id=f"{RUN}.inbox/{seq}")
        await session.wait()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.attend()
    inbox = InboxReader(log, RUN)
    inbox.expect(seq)
    await inbox.catch_up()
    assert (inbox.answers[seq].outcome, inbox.answers[seq].seq) == ("done", at)


async def test_a_runtime_of_somebody_elses_goes_on_the_same_way(autojump_clock: MockClock) -> None:
    """It reports no phases: each round is found to be over by a look at its status, and an old status ends no new round."""
    log, runtime = MemoryLog(), TalkingRuntime("one", "two", "three")
    assert isinstance(runtime, ConversingRuntime)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, GOAL)
        assert await session.wait() == "one"
        for words, answer in (("next", "two"), ("last", "three")):
            await session.say(words, principal="ada")
            assert await session.wait() == answer
    assert runtime.heard == ["next", "last"]
    assert [text for kind, text in spoken(await history(log, RUN)) if kind == Kind.CONVERGED] == [
        "one",
        "two",
        "three",
    ]


async def test_a_runtime_that_fails_to_go_on_leaves_a_stall(autojump_clock: MockClock) -> None:
    """The words stand, the round ends in session.stalled with the reason, the caller hears the error, and more can be said."""
    log, runtime = MemoryLog(), TalkingRuntime("one", "two")
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, GOAL)
        await session.wait()
        runtime.refusal = OSError("no line")
        with pytest.raises(OSError, match="no line"):
            await session.say("next", principal="ada")
        with pytest.raises(Stalled, match="could not be gone on with: no line"):
            await session.wait()
        runtime.refusal = None
        await session.say("again", principal="ada")
        assert await session.wait() == "two"


async def test_a_run_that_was_cancelled_can_be_gone_on_with() -> None:
    """Cancelled is an end like any other; a person who says something more opens it again."""
    log, gate = MemoryLog(), trio.Event()

    async def answer(_position: int) -> ModelReply:
        await gate.wait()
        return SECOND

    async with session_and_runtime(log, MissionConfig(FreeModel(answer))) as (session, runtime):
        await session.submit(runtime, GOAL)
        await trio.testing.wait_all_tasks_blocked()
        await session.cancel(principal="ada", reason="not now")
        gate.set()
        await session.say("Now.", principal="ada")
        assert await session.wait() == "Twice over."


async def test_a_request_that_no_wake_tells_of_is_found_by_the_floor(autojump_clock: MockClock) -> None:
    """A session that could go on looks into its inbox after the end, also one that took up a run which had ended before."""
    log, config = MemoryLog(), MissionConfig(replies(FIRST, SECOND))
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GOAL)
        await session.wait()
    async with session_and_runtime(log, config) as (session, runtime):
        await session.resume(runtime, GoalKey(RUN))
        tip = len(await history(log, RUN))
        await post(log, RUN, say_event("Once more.", principal="eve", expires=LATER), SystemClock())
        async with session.subscribe(tip) as events:
            assert (await anext(events)).text == "Once more."
        assert await session.wait() == "Twice over."
