"""What others ask of a run's owner is done once, on the record, and answered, whatever fails in between (S7, S11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from affidavit.actors.approvals import Decision
from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus, inbox_subject
from affidavit.actors.clock import SystemClock
from affidavit.actors.directory import listed_runs
from affidavit.actors.errors import RunCancelled, SessionFailed
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalKey
from affidavit.actors.history import history
from affidavit.actors.inbox import (
    Answer,
    InboxReader,
    brake_event,
    decision_event,
    inbox_of,
    post,
    request_event,
)
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Log
from affidavit.actors.sealer import Sealer, open_sealer
from affidavit.actors.secrets import Secrets
from affidavit.actors.session import Session, open_session
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.actors.timer import DEFAULT_STREAM_POLL
from tests.actors.fakes import Fault, FaultLog, JumpingClock, SilentBus
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, kinds_of_run

CANCEL = request_event(Kind.REQUEST_CANCEL, principal="ada", reason="wrong ledger")
SEAL = request_event(Kind.REQUEST_SEAL, principal="eve", reason="")
CANCELLED = [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.STALLED]
BRAKE = brake_event(engage=True, principal="ada", reason="stop it")
DECIDE = decision_event(Decision(1, True, "ada", "fine", bytes(32)))
EFFECTS = {
    CANCEL.kind: Kind.STALLED,
    SEAL.kind: Kind.RECORD_SEALED,
    BRAKE.kind: Kind.BRAKE_ENGAGED,
    DECIDE.kind: Kind.APPROVAL_DECIDED,
}
ASKED = Event(
    Kind.APPROVAL_REQUESTED,
    action="pay",
    call=1,
    tool_use_id="t1",
    detail={"args": bytes(32), "expires": 1 << 62},
)
SIGNER = EphemeralSigner()


async def ask(log: Log, event: Event, bus: Bus | None = None) -> int:
    """Append a request, and wake the owner if there is a bus."""
    seq = await post(log, RUN, event, SystemClock())
    if bus is not None:
        bus.publish(inbox_subject(RUN))
    return seq


async def answers(log: Log, *seqs: int) -> list[Answer | None]:
    """Return what requests were answered with; None for one that was not."""
    reader = InboxReader(log, RUN)
    for seq in seqs:
        reader.expect(seq)
    await reader.catch_up()
    return [reader.answers.get(seq) for seq in seqs]


@asynccontextmanager
async def going(
    log: Log, bus: Bus | None = None, sealer: Sealer | None = None
) -> AsyncIterator[tuple[Session, FakeRuntime]]:
    """Drive a run, new or from what stands; it is parked at the end."""
    runtime = FakeRuntime()
    with trio.CancelScope() as scope:
        async with open_session(log, bus or MemoryBus(), id=RUN, sealer=sealer) as session:
            if session.projection.objective:
                await session.resume(runtime, GoalKey(RUN))
            else:
                await session.submit(runtime, SPEC)
            yield session, runtime
            scope.cancel()
            await trio.lowlevel.checkpoint()


async def test_a_cancel_is_carried_out_and_answered_by_wake(autojump_clock: MockClock) -> None:
    """At once, in the asker's name, with the request as its cause; whoever waits hears who it was."""
    log, bus = MemoryLog(), MemoryBus()
    async with going(log, bus) as (session, runtime):
        seq = await ask(log, CANCEL, bus)
        with pytest.raises(RunCancelled, match="wrong ledger") as caught:
            await session.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == 0
    assert caught.value.principal == "ada"
    assert runtime.stops == ["cancelled"]
    events = await history(log, RUN)
    assert [event.kind for event in events] == CANCELLED
    assert {(event.principal, event.causation_id) for event in events[1:]} == {("ada", f"{RUN}.inbox/{seq}")}
    assert await answers(log, seq) == [Answer("done", seq=3)]
    assert [event.actor for event in await history(log, inbox_of(RUN))] == ["human", "system"]


async def test_without_a_wake_the_floor_finds_a_request(autojump_clock: MockClock) -> None:
    """S5: as another process asks: latency is the floor's, and nothing else changes."""
    log = MemoryLog()
    async with going(log, SilentBus()) as (session, _):
        await trio.sleep(1)
        seq = await ask(log, CANCEL)
        asked = trio.current_time()
        with pytest.raises(RunCancelled):
            await session.wait()
        assert trio.current_time() - asked <= DEFAULT_STREAM_POLL + 0.001
    (answer,) = await answers(log, seq)
    assert answer is not None
    assert answer.outcome == "done"


async def test_a_seal_is_made_in_the_askers_name_and_the_run_goes_on(autojump_clock: MockClock) -> None:
    """One seal per request that has something to seal; one that has nothing is answered with the seal that stands."""
    log, bus = MemoryLog(), MemoryBus()
    async with open_sealer(log, SIGNER) as sealer, going(log, bus, sealer) as (session, _):
        first = await ask(log, SEAL, bus)
        await trio.testing.wait_all_tasks_blocked()
        second = await ask(log, SEAL, bus)
        await trio.testing.wait_all_tasks_blocked()
        await session.reporter.report(SPEAK)
        seals = [event for event in await history(log, RUN) if event.kind == Kind.RECORD_SEALED]
        assert [(seal.principal, seal.causation_id) for seal in seals] == [("eve", f"{RUN}.inbox/{first}")]
        assert await answers(log, first, second) == [Answer("done", seq=2), Answer("done", seq=2)]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (SEAL, "failed"),
        (request_event("request.dance", principal="ada", reason=""), "unsupported"),
        (request_event(Kind.REQUEST_CANCEL, principal="ada", reason="", expires=5), "expired"),
        (DECIDE, "not_asked"),
        (Event(Kind.REQUEST_DECIDE, call=1, principal="ada", detail={"decision": "perhaps"}), "malformed"),
        (Event(Kind.REQUEST_DECIDE, call=1, detail={"decision": "approved"}), "malformed"),
        (Event(Kind.REQUEST_BRAKE, principal="ada", detail={"engage": "yes"}), "malformed"),
        (Event(Kind.REQUEST_BRAKE, detail={"engage": True}), "malformed"),
        (Event(Kind.REQUEST_CANCEL, reason="because"), "malformed"),
        (Event(Kind.REQUEST_CANCEL, principal="a\x1b[2Jda"), "malformed"),
        (Event(Kind.REQUEST_CANCEL, principal="a" * 129), "malformed"),
        (Event(Kind.REQUEST_CANCEL, principal="ada", reason="r" * 4097), "malformed"),
        (Event(Kind.REQUEST_SEAL), "malformed"),
        (Event("request." + "x" * 10**6, principal="ada"), "unsupported"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_a_code_and_leaves_no_effect(
    event: Event, code: str, autojump_clock: MockClock
) -> None:
    """No sealer, a request of a later version, one that came too late: the run goes on untouched."""
    log, bus = MemoryLog(), MemoryBus()
    async with going(log, bus) as (session, _):
        seq = await ask(log, event, bus)
        await trio.testing.wait_all_tasks_blocked()
        (answer,) = await answers(log, seq)
        assert answer is not None
        assert (answer.outcome, answer.code) == ("refused", code)
        assert answer.reason
        assert await kinds(log) == [Kind.SESSION_STARTED]
        await session.reporter.report(SPEAK)


async def test_a_cancel_of_a_run_that_ended_meanwhile_is_refused(autojump_clock: MockClock) -> None:
    """The end that stands is not changed, and of two that ask at once the first is the one."""
    log, bus = MemoryLog(), MemoryBus()
    async with going(log, bus):
        first, second = await ask(log, CANCEL), await ask(log, CANCEL, bus)
        await trio.testing.wait_all_tasks_blocked()
    done, refused = await answers(log, first, second)
    assert done is not None
    assert refused is not None
    assert (done.outcome, refused.outcome, refused.code) == ("done", "refused", "finished")
    assert await kinds(log) == CANCELLED


async def test_a_request_that_nobody_could_answer_is_carried_out_by_the_next_owner(
    autojump_clock: MockClock,
) -> None:
    """Asked while nobody owns the run: it waits for the one who resumes it."""
    log = MemoryLog()
    async with going(log):
        pass
    seq = await ask(log, CANCEL)
    async with going(log) as (session, _):
        with pytest.raises(RunCancelled):
            await session.wait()
    (answer,) = await answers(log, seq)
    assert answer is not None
    assert answer.outcome == "done"


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.WRITTEN, Fault.FULL])
@pytest.mark.parametrize("event", [CANCEL, SEAL, BRAKE, DECIDE], ids=["cancel", "seal", "brake", "decide"])
async def test_whatever_append_fails_the_effect_stands_once_and_is_answered_in_the_end(
    event: Event, fault: Fault, autojump_clock: MockClock
) -> None:
    """A crash at each append in turn, before the effect, between effect and answer, after the answer: then a new owner."""
    for place in range(1, 5):
        truth, bus = MemoryLog(), MemoryBus()
        log = FaultLog(truth)
        seq = 0
        try:
            async with open_sealer(log, SIGNER) as sealer, going(log, bus, sealer) as (session, _):
                await session.reporter.report(ASKED)
                seq = await ask(truth, event)
                log._at, log._fault = frozenset({log.appends + place}), fault
                bus.publish(inbox_subject(RUN))
                await trio.testing.wait_all_tasks_blocked()
                log._at = frozenset()
        except SessionFailed:
            assert log.faults == 1
        log.reopen()
        async with open_sealer(log, SIGNER) as sealer, going(log, bus, sealer):
            await trio.testing.wait_all_tasks_blocked()
        (answer,) = await answers(truth, seq)
        assert answer is not None
        assert answer.outcome == "done"
        effects = [each for each in await history(truth, RUN) if each.causation_id == f"{RUN}.inbox/{seq}"]
        assert [each.kind for each in effects].count(EFFECTS[event.kind]) == 1
        answered = [each.kind for each in await history(truth, inbox_of(RUN))]
        assert answered.count(Kind.REQUEST_ANSWERED) == 1


async def test_an_answer_that_found_no_room_is_given_when_there_is_some(autojump_clock: MockClock) -> None:
    """The effect stands, the run goes on, and the floor tries again: to answer, and not to do it once more."""
    truth = MemoryLog()
    log = FaultLog(truth)
    async with open_sealer(log, SIGNER) as sealer, going(log, SilentBus(), sealer) as (session, _):
        await trio.testing.wait_all_tasks_blocked()
        seq = await ask(truth, SEAL)
        # record.sealed, record.verified, then the answer.
        log._at = frozenset({log.appends + 3})
        await trio.sleep(1.5 * DEFAULT_STREAM_POLL)
        assert log.faults == 1
        assert await answers(truth, seq) == [None]
        await session.reporter.report(SPEAK)
        await trio.sleep(2 * DEFAULT_STREAM_POLL)
        assert await answers(truth, seq) == [Answer("done", seq=2)]
        seals = [event for event in await history(truth, RUN) if event.kind == Kind.RECORD_SEALED]
        assert [seal.causation_id for seal in seals] == [f"{RUN}.inbox/{seq}"]


async def test_an_answered_request_is_not_carried_out_again_after_a_restart(
    autojump_clock: MockClock,
) -> None:
    """The next owner reads the inbox from its beginning, and does nothing."""
    log, bus = MemoryLog(), MemoryBus()
    async with open_sealer(log, SIGNER) as sealer:
        async with going(log, bus, sealer) as (session, _):
            await ask(log, SEAL, bus)
            await trio.testing.wait_all_tasks_blocked()
            await session.reporter.report(SPEAK)
        inbox, seals = await history(log, inbox_of(RUN)), (await kinds(log)).count(Kind.RECORD_SEALED)
        with trio.CancelScope() as scope:
            async with open_session(log, bus, id=RUN, sealer=sealer) as session:
                await session.attend()
                assert (await kinds(log)).count(Kind.RECORD_SEALED) == seals
                scope.cancel()
                await trio.lowlevel.checkpoint()
    assert await history(log, inbox_of(RUN)) == inbox


async def test_garbage_in_an_inbox_stops_nobody(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may write the store may write an inbox: what makes no sense is left aside, and the next request is done."""
    log, bus = MemoryLog(), MemoryBus()
    await log.append([Entry(inbox_of(RUN), 0, (b"not an event",))])
    seq = 0
    for event in (
        Event("something.else", text="?"),
        Event(Kind.REQUEST_ANSWERED, detail={"request": 99, "outcome": "done"}),
        Event(Kind.REQUEST_ANSWERED, detail={"request": "first"}),
        Event(Kind.REQUEST_CANCEL, principal="ada", detail={"expires": "never"}, reason="a \ud800 reason"),
    ):
        seq = await ask(log, event)
    async with going(log, bus):
        await trio.testing.wait_all_tasks_blocked()
    assert await kinds_of_run(log) == CANCELLED
    (answer,) = await answers(log, seq)
    assert answer is not None
    assert "row 1 of run-1.inbox is not an event" in caplog.text


@given(writers=st.integers(1, 8), each=st.integers(1, 4))
async def test_an_inbox_has_many_writers_and_loses_none(writers: int, each: int) -> None:
    """Whoever loses the compare tries again: dense from 1, every request once."""
    log = MemoryLog()
    seqs: list[int] = []

    async def write(number: int) -> None:
        for count in range(each):
            event = request_event(Kind.REQUEST_SEAL, principal=f"{number}-{count}", reason="")
            seqs.append(await post(log, RUN, event, JumpingClock()))

    async with trio.open_nursery() as nursery:
        for number in range(writers):
            nursery.start_soon(write, number)
    assert sorted(seqs) == list(range(1, writers * each + 1))
    principals = {event.principal for event in await history(log, inbox_of(RUN))}
    assert len(principals) == writers * each


async def test_an_inbox_is_not_listed_as_a_run(autojump_clock: MockClock) -> None:
    """It is a stream of its own, and no run."""
    log, bus = MemoryLog(), MemoryBus()
    async with going(log, bus):
        await ask(log, CANCEL, bus)
        await trio.testing.wait_all_tasks_blocked()
    assert [run.id for run in await listed_runs(log)] == [RUN]
    assert [info.stream for info in await log.list()] == [RUN, inbox_of(RUN)]


@pytest.mark.parametrize(
    "asked",
    [
        request_event(Kind.REQUEST_CANCEL, principal="ada", reason="planted-secret got out"),
        brake_event(engage=True, principal="ada", reason="planted-secret got out"),
        decision_event(Decision(1, True, "ada", "planted-secret got out", bytes(32))),
        # Refused, in words that repeat what was asked.
        request_event("request.planted-secret", principal="ada", reason=""),
        decision_event(Decision(7, True, "planted-secret", "")),
    ],
    ids=["cancel", "brake", "decision", "unknown", "refused"],
)
async def test_effects_and_answers_hold_no_secret_of_the_run(asked: Event, autojump_clock: MockClock) -> None:
    """What others wrote stands in the inbox as they wrote it; what the owner writes, there and on the run, is scrubbed (E7)."""
    log, bus, runtime = MemoryLog(), MemoryBus(), FakeRuntime()
    runtime.secrets = Secrets(frozenset({"planted-secret"}))
    with trio.CancelScope() as scope:
        async with open_session(log, bus, id=RUN) as session:
            await session.submit(runtime, SPEC)
            await session.reporter.report(ASKED)
            seq = await ask(log, asked, bus)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.lowlevel.checkpoint()
    (answer,) = await answers(log, seq)
    assert answer is not None
    written = [row.data for row in await log.read(inbox_of(RUN), seq)]
    written += [row.data for row in await log.read(RUN, 0)]
    assert len(written) >= 3
    assert not any(b"planted-secret" in data for data in written)
    if answer.outcome == "done":
        assert any(b"[secret removed] got out" in data for data in written)
