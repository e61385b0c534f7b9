"""Push readers of a session: each gets everything, and none can harm another, the writer or the session (S3, S4, S7, S8, E2)."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.push_readers import DRAIN_GRACE
from affidavit.actors.session import open_session
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds

WHOLE = [Kind.SESSION_STARTED, Kind.ASSISTANT, Kind.ASSISTANT, Kind.GOAL_PHASE, Kind.CONVERGED]


class Reader:
    """Keeps what it is given; raises at one seq, or waits at one."""

    def __init__(self, *, raises_at: int = 0, stalls_at: int = 0, delay: float = 0) -> None:
        self.seqs: list[int] = []
        self.raises_at, self.stalls_at, self.delay = raises_at, stalls_at, delay

    async def __call__(self, event: Event) -> None:
        if event.seq == self.raises_at:
            raise ValueError("a reader's own bug")
        if event.seq == self.stalls_at:
            await trio.sleep_forever()
        await trio.sleep(self.delay)
        self.seqs.append(event.seq)


async def test_push_readers_get_everything_and_harm_nobody(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One that raises is dropped and logged, one that stalls holds up itself alone, a slow one still gets the terminal event."""
    log, runtime = MemoryLog(), FakeRuntime()
    good, late = Reader(), Reader()
    raising, stalling, slow = Reader(raises_at=2), Reader(stalls_at=2), Reader(delay=0.1)
    async with open_session(log, MemoryBus(), id=RUN) as session:
        for reader in (raising, stalling, slow, good):
            await session.attach(reader)
        await session.submit(runtime, SPEC)
        await session.reporter.report(SPEAK)
        await session.reporter.report(SPEAK)
        runtime.converge()
        await session.wait()
        await session.attach(late, 3)
    assert good.seqs == slow.seqs == [1, 2, 3, 4, 5]
    assert late.seqs == [4, 5]
    assert raising.seqs == stalling.seqs == [1]
    assert await kinds(log) == WHOLE
    assert [record.getMessage() for record in caplog.records] == [
        f"a reader of run {RUN} failed and was dropped"
    ]


async def test_a_stalled_push_reader_delays_the_close_by_its_grace_at_most(autojump_clock: MockClock) -> None:
    """The session has waited for it, and then cancels it."""
    runtime, stalling = FakeRuntime(), Reader(stalls_at=1)
    async with open_session(MemoryLog(), MemoryBus(), id=RUN) as session:
        await session.attach(stalling)
        await session.submit(runtime, SPEC)
        runtime.converge()
        await session.wait()
        left = trio.current_time()
    assert trio.current_time() - left == pytest.approx(DRAIN_GRACE, abs=0.001)


async def test_a_session_without_push_readers_closes_at_once(autojump_clock: MockClock) -> None:
    """The grace costs nothing when there is nobody to wait for."""
    runtime = FakeRuntime()
    async with open_session(MemoryLog(), MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        runtime.converge()
        await session.wait()
        left = trio.current_time()
    assert trio.current_time() == left


async def test_a_negative_cursor_of_a_push_reader_is_the_callers_error(autojump_clock: MockClock) -> None:
    """It is raised where it was made, not logged in a task."""
    async with open_session(MemoryLog(), MemoryBus(), id=RUN) as session:
        with pytest.raises(ValueError, match="not negative"):
            await session.attach(Reader(), -1)


async def test_a_lost_client_is_not_a_stop(autojump_clock: MockClock) -> None:
    """S7: subscribers that come, break off and come back change nothing about the run."""
    log, runtime = MemoryLog(), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, SPEC)
        got: list[int] = []
        for _ in range(3):
            with trio.move_on_after(0.01):
                async with session.subscribe(len(got)) as events:
                    async for event in events:
                        got.append(event.seq)  # noqa: PERF401  # the list is read while it grows
            await session.reporter.report(SPEAK)
        assert runtime.stops == []
        runtime.converge()
        assert await session.wait() == "all settled"
    assert got == [1, 2, 3]
