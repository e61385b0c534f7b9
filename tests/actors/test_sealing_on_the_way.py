"""A run that goes on for long is signed on the way: after so many events, or within so many seconds (V3, V4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.events import Event, Kind
from affidavit.actors.fanout import RecordState
from affidavit.actors.goal import GoalKey
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.sealer import open_sealer
from affidavit.actors.session import open_session
from affidavit.actors.timer import open_timer
from tests.actors.fakes import FailingSigner
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds
from tests.actors.sealing_kit import SIGNER, change, parked, record


async def seals(log: MemoryLog) -> list[Event]:
    """Return the record.sealed events of the run."""
    return [event for event in await history(log, RUN) if event.kind == Kind.RECORD_SEALED]


async def test_a_long_run_is_signed_on_the_way_and_checked_at_its_end(
    autojump_clock: MockClock, log: MemoryLog, signer: FailingSigner
) -> None:
    """Every N events, without a check, which would cost the more the longer it gets; each seal extends the last."""
    runtime = FakeRuntime()
    async with (
        open_sealer(log, signer, every=3) as sealer,
        open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session,
    ):
        await session.submit(runtime, SPEC)
        for _ in range(8):
            await session.reporter.report(SPEAK)
            await trio.testing.wait_all_tasks_blocked()
        on_the_way = await kinds(log)
        runtime.converge()
        assert await session.wait() == "all settled"
    assert Kind.RECORD_VERIFIED not in on_the_way
    found = await seals(log)
    assert [seal.detail["size"] for seal in found] == [3, 7, 11, 14]
    assert [seal.detail["previous"] for seal in found] == [0, 3, 7, 11]
    assert (await kinds(log)).count(Kind.RECORD_VERIFIED) == 1
    assert (await record(log)).complete is True


async def test_a_signer_that_fails_on_the_way_stops_nobody(
    autojump_clock: MockClock, log: MemoryLog, signer: FailingSigner, caplog: pytest.LogCaptureFixture
) -> None:
    """The run goes on, the host's log says so, and the next events try again."""
    signer.broken = True
    async with (
        open_sealer(log, signer, every=2) as sealer,
        open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session,
    ):
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        await session.reporter.report(SPEAK)
        await trio.testing.wait_all_tasks_blocked()
        assert "could not be signed on the way" in caplog.text
        signer.broken = False
        await session.reporter.report(SPEAK)
        await trio.testing.wait_all_tasks_blocked()
        assert session.projection.record is RecordState.SEALED
        runtime.converge()
    assert (await record(log)).complete is True


async def test_an_event_of_a_going_run_is_signed_within_the_interval(
    autojump_clock: MockClock, log: MemoryLog, signer: FailingSigner
) -> None:
    """However few there are; unchecked, and while nothing is recorded nothing is signed, nor is anybody visited."""
    runtime = FakeRuntime()
    async with (
        open_timer(log, SystemClock(), poll_interval=5, stream_poll=5) as timer,
        open_sealer(log, signer, interval=60) as sealer,
        open_session(log, MemoryBus(), id=RUN, sealer=sealer, timer=timer) as session,
    ):
        beat = timer.every(60)
        assert len(beat) == 0
        await session.submit(runtime, SPEC)
        assert len(beat) == 1
        await trio.sleep(60.5)
        assert [seal.detail["size"] for seal in await seals(log)] == [1]
        await trio.sleep(3600)
        assert len(await seals(log)) == 1
        assert len(beat) == 0
        for _ in range(3):
            await session.reporter.report(SPEAK)
            await trio.sleep(60.5)
        assert [seal.detail["size"] for seal in await seals(log)] == [1, 3, 5, 7]
        assert Kind.RECORD_VERIFIED not in await kinds(log)
        await session.reporter.report(SPEAK)
        runtime.converge()
        assert await session.wait() == "all settled"
        await trio.sleep(1)
        assert len(beat) == 0
    assert (await kinds(log)).count(Kind.RECORD_VERIFIED) == 1
    assert (await record(log)).complete is True


async def test_many_events_within_the_interval_are_signed_once(
    autojump_clock: MockClock, log: MemoryLog, signer: FailingSigner
) -> None:
    """The interval bounds how often a run is signed, too."""
    runtime = FakeRuntime()
    async with (
        open_sealer(log, signer, interval=10) as sealer,
        open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session,
    ):
        await session.submit(runtime, SPEC)
        for _ in range(100):
            await session.reporter.report(SPEAK)
            await trio.sleep(0.5)
        assert 4 <= signer.signatures <= 5
        runtime.converge()
    assert (await record(log)).complete is True


async def test_what_a_former_owner_left_unsealed_is_signed_within_the_interval(
    autojump_clock: MockClock, log: MemoryLog, signer: FailingSigner
) -> None:
    """Also if the resumed run then waits for long; one that was only opened to be looked at is left alone."""
    await parked(log, None)
    before = await kinds(log)
    async with open_sealer(log, signer, interval=10) as sealer:
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer):
            await trio.sleep(60)
        assert await kinds(log) == before
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            runtime = FakeRuntime()
            await session.resume(runtime, GoalKey(RUN))
            await trio.sleep(10.5)
            assert [seal.detail["size"] for seal in await seals(log)] == [2]
            runtime.converge()


async def test_what_was_refused_is_not_tried_again_until_more_is_recorded(
    autojump_clock: MockClock, log: MemoryLog, signer: FailingSigner, caplog: pytest.LogCaptureFixture
) -> None:
    """A run whose sealed events were changed is rejected once, and its next owner does not ask for a seal at every beat."""
    async with open_sealer(log, signer) as sealer:
        await parked(log, sealer)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.resume(runtime, GoalKey(RUN))
        await session.reporter.report(SPEAK)
        runtime.current = replace(runtime.current, active=False)
    await change(log, 2)
    for refused in (True, False):
        caplog.clear()
        async with (
            open_sealer(log, signer, interval=10) as sealer,
            open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session,
        ):
            runtime = FakeRuntime()
            await session.resume(runtime, GoalKey(RUN))
            await trio.sleep(35)
            assert ("could not be signed on the way" in caplog.text) is refused
            runtime.current = replace(runtime.current, active=False)
    assert (await kinds(log)).count(Kind.RECORD_REJECTED) == 1


async def test_a_signer_that_is_back_signs_at_the_next_interval(
    autojump_clock: MockClock, log: MemoryLog, signer: FailingSigner, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing has to be recorded for it to be tried again; meanwhile the run goes on."""
    signer.broken = True
    runtime = FakeRuntime()
    async with (
        open_sealer(log, signer, interval=10) as sealer,
        open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session,
    ):
        await session.submit(runtime, SPEC)
        await trio.sleep(25)
        assert caplog.text.count("could not be signed on the way") >= 2
        signer.broken = False
        await trio.sleep(10)
        assert session.projection.record is RecordState.SEALED
        runtime.converge()


async def test_a_negative_interval_of_seals_is_the_callers_error(log: MemoryLog) -> None:
    """Zero is how it is turned off."""
    with pytest.raises(ValueError, match="not -1"):
        async with open_sealer(log, SIGNER, every=-1):
            pass


@pytest.mark.parametrize("interval", [-1.0, float("inf"), float("nan")])
async def test_an_interval_that_is_none_is_the_callers_error(log: MemoryLog, interval: float) -> None:
    """Zero is how it is turned off."""
    with pytest.raises(ValueError, match="every so many seconds"):
        async with open_sealer(log, SIGNER, interval=interval):
            pass
