"""What happens when a run cannot be sealed, or what was sealed is no longer what is stored (V1, V2, V4)."""

# ruff: noqa: PT012, SIM117  # what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.codec import encode
from affidavit.actors.errors import SealRefused
from affidavit.actors.events import Event, Kind
from affidavit.actors.fanout import RecordState
from affidavit.actors.goal import GoalKey
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.mailbox import ActorGone
from affidavit.actors.sealer import Sealer, open_sealer
from affidavit.actors.session import open_session
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError
from tests.actors.fakes import FailingSigner, Fault, FaultLog
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, new_stream
from tests.actors.sealing_kit import SEALED, badge, change, finished, parked, record


async def test_a_signer_that_fails_leaves_the_run_unsealed_and_the_session_alive(
    autojump_clock: MockClock,
    log: MemoryLog,
    sealer: Sealer,
    signer: FailingSigner,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On demand the caller hears of it; at the end it is logged; once the signer works, the run can be sealed."""
    runtime = FakeRuntime()
    signer.broken = True
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        with pytest.raises(ProducerError) as caught:
            await session.seal()
        assert caught.value.code is FailureCode.SIGN_SIGN_FAILED
        await session.reporter.report(SPEAK)
        runtime.converge()
        assert await session.wait() == "all settled"
    assert not set(SEALED) & set(await kinds(log))
    assert "could not be sealed" in caplog.text
    signer.broken = False
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.seal()
    assert (await record(log)).complete is True


async def test_a_seal_that_was_never_checked_is_checked_by_the_next_owner(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, signer: FailingSigner
) -> None:
    """The crash between record.sealed and record.verified: no second seal, only the missing check."""
    await finished(log, sealer)
    assert log._streams[RUN].rows.pop()
    assert (await kinds(log))[-1] == Kind.RECORD_SEALED
    made = signer.signatures
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.seal()
    assert (await kinds(log))[-2:] == SEALED
    assert signer.signatures == made
    assert badge(session) is RecordState.VERIFIED


async def test_a_row_changed_behind_the_sealer_is_rejected_with_its_code(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """V1: record.rejected stands with the code, record.verified does not; asking again says it again and writes no more."""
    runtime = FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        await session.reporter.report(SPEAK)
        await trio.testing.wait_all_tasks_blocked()
        await change(log, 2)
        for _ in range(2):
            with pytest.raises(VerificationError) as caught:
                await session.seal()
            assert caught.value.code is FailureCode.RECORD_ROOT_MISMATCH
        written = await history(log, RUN)
        assert [event.kind for event in written[2:]] == [Kind.RECORD_SEALED, Kind.RECORD_REJECTED]
        assert written[-1].detail["code"] == "record.root_mismatch"
        assert badge(session) is RecordState.SEALED
        await session.cancel(principal="ada", reason="tampered")
    assert Kind.RECORD_VERIFIED not in await kinds(log)


async def test_a_later_seal_never_covers_up_a_change_under_an_earlier_one(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, signer: FailingSigner
) -> None:
    """V4: what no longer extends the seal before is not signed; the rejection says why, once."""
    await parked(log, sealer)
    made = signer.signatures
    await change(log, 2)
    async with open_sealer(log, signer) as fresh:
        async with open_session(log, MemoryBus(), id=RUN, sealer=fresh) as session:
            runtime = FakeRuntime()
            await session.resume(runtime, GoalKey(RUN))
            runtime.converge()
            assert await session.wait() == "all settled"
    assert signer.signatures == made
    (rejected,) = [event for event in await history(log, RUN) if event.kind == Kind.RECORD_REJECTED]
    assert rejected.detail["code"] == "merkle.consistency_invalid"


async def test_a_run_without_events_cannot_be_sealed(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """V2: refused, and nothing is written."""
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        with pytest.raises(SealRefused, match="no events"):
            await session.seal()
    with pytest.raises(SealRefused, match="no events"):
        await sealer.seal(RUN, 0)
    with pytest.raises(SealRefused, match="holds 0 events, not 3"):
        await sealer.seal(RUN, 3)
    assert await log.list() == ()


async def test_a_seal_that_cannot_be_recorded_stops_the_session(
    autojump_clock: MockClock, signer: FailingSigner
) -> None:
    """Its append is one like any other; the next owner seals anew."""
    log = FaultLog(MemoryLog())
    async with open_sealer(log, signer) as sealer:
        with pytest.raises(Exception, match="no room"):
            async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
                await session.submit(FakeRuntime(), SPEC)
                log.fail_next(Fault.FULL)
                await session.seal()
        assert await kinds(log) == [Kind.SESSION_STARTED]
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.seal()
        assert await kinds(log) == [Kind.SESSION_STARTED, *SEALED]


async def test_a_sealer_that_has_ended_answers_nobody(log: MemoryLog, signer: FailingSigner) -> None:
    """Whoever still holds the handle learns that the actor has gone; feeding it does nothing."""
    async with open_sealer(log, signer) as sealer:
        pass
    stream = await new_stream(log)
    stream.observe(sealer.feed)
    await stream.append(SPEAK)
    sealer.forget(RUN)
    with pytest.raises(ActorGone, match="the sealer has ended"):
        await sealer.seal(RUN, 1)


async def test_a_stored_seal_that_is_none_is_refused(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """A record.sealed event without root and checkpoint is not taken for one, whoever wrote it."""
    stream = await new_stream(log)
    await stream.append(Event(Kind.SESSION_STARTED, text="x"), Event(Kind.RECORD_SEALED, detail={"size": 1}))
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        with pytest.raises(SealRefused, match="holds no seal"):
            await session.seal()
    await log.append([Entry(RUN, 2, (encode(SPEAK, stream=RUN, seq=3, time=0),))])
    with pytest.raises(SealRefused, match=r"holds no (checkpoint|root)"):
        await record(log)


async def test_a_seal_that_was_verified_once_is_read_back_when_it_is_asked_for_again(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """Asked for by hand a finished run is checked as it stands now: nothing is added while it holds, and a change is told."""
    await finished(log, sealer)
    before = await kinds(log)
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.seal()
        assert await kinds(log) == before
        await change(log, 2)
        with pytest.raises(VerificationError):
            await session.seal()
    assert (await kinds(log))[len(before) :] == [Kind.RECORD_REJECTED]
