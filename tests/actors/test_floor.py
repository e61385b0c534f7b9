"""The poll floor: one look at the log for all who wait for it, and none while nothing was written (E3, S5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.errors import LogClosed
from affidavit.actors.inbox import inbox_of
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.session import open_session
from affidavit.actors.timer import DEFAULT_STREAM_POLL, open_timer
from tests.actors.runtimes import RUN, SPEC, FakeRuntime


class CountingLog(MemoryLog):  # type: ignore[misc]  # a test may add to what is final
    """A log that counts how it is asked.

    Attributes:
        asked: The streams of each look.
        gone: Whether its version cannot be told.
        hold: Where set, the tips wait for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, ...]] = []
        self.gone = False
        self.hold: trio.Event | None = None

    async def version(self) -> int:
        if self.gone:
            raise LogClosed("closed by the test")
        return await super().version()

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        self.asked.append(tuple(streams))
        if self.hold is not None:
            await self.hold.wait()
        return await super().tips(streams)


class Hearer:
    """A member that keeps what it was told."""

    def __init__(self, *streams: str) -> None:
        self._streams = streams
        self.heard: list[Mapping[str, int] | None] = []

    def streams(self) -> tuple[str, ...]:
        """Name what the test said."""
        return self._streams

    def told(self, tips: Mapping[str, int] | None) -> None:
        """Keep it."""
        self.heard.append(tips)


@pytest.fixture
def log() -> CountingLog:
    """A log with two streams."""
    return CountingLog()


async def write(log: MemoryLog, stream: str, seq: int) -> None:
    """Append one row."""
    assert await log.append([Entry(stream, seq - 1, (b"x",))]) == (seq,)


async def test_all_members_are_served_by_one_look(log: CountingLog, autojump_clock: MockClock) -> None:
    """Each stream stands once in it, whoever asks; who has left hears nothing."""
    await write(log, "a", 1)
    first, second, gone = Hearer("a", "b"), Hearer("b"), Hearer("c")
    async with open_timer(log, SystemClock()) as timer:
        for member in (first, second, gone):
            timer.floor.enrol(member)
        timer.floor.leave(gone)
        await trio.sleep(1.5 * DEFAULT_STREAM_POLL)
    assert log.asked == [("a", "b")]
    assert first.heard == second.heard == [{"a": 1, "b": 0}]
    assert gone.heard == []


async def test_a_log_in_which_nothing_was_written_is_not_looked_at(
    log: CountingLog, autojump_clock: MockClock
) -> None:
    """Its version says so. One that cannot tell is asked each time, and members then look for themselves."""
    member = Hearer("a")
    async with open_timer(log, SystemClock()) as timer:
        timer.floor.enrol(member)
        # Never at the moment of a look.
        await trio.sleep(1.1)
        assert member.heard == [{"a": 0}]
        await write(log, "a", 1)
        await trio.sleep(1)
        assert member.heard[1:] == [{"a": 1}]
        log.gone = True
        await trio.sleep(2.5 * DEFAULT_STREAM_POLL)
        assert member.heard[2:] == [None, None]
        log.gone = False
        await trio.sleep(1)
        assert member.heard[4:] == [{"a": 1}], "what was written meanwhile may have been missed"


async def test_a_look_that_hangs_is_given_up_and_made_again(
    log: CountingLog, autojump_clock: MockClock
) -> None:
    """A connection that stands still does not end the floor."""
    log.hold = trio.Event()
    member = Hearer("a")
    async with open_timer(log, SystemClock()) as timer:
        timer.floor.enrol(member)
        await trio.sleep(5.4)
        assert member.heard == [None]
        log.hold = None
        await trio.sleep(1)
        assert member.heard == [None, {"a": 0}]


async def test_a_session_asks_for_its_run_while_it_has_a_reader_and_for_its_inbox_while_it_drives(
    log: CountingLog, autojump_clock: MockClock
) -> None:
    """A thousand sessions are one query; one that neither drives nor is read is in none."""
    async with (
        open_timer(log, SystemClock()) as timer,
        open_session(log, MemoryBus(), id="idle", timer=timer),
        open_session(log, MemoryBus(), id="read", timer=timer) as read,
        open_session(log, MemoryBus(), id=RUN, timer=timer) as session,
        read.subscribe(),
    ):
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        await trio.sleep(1.5 * DEFAULT_STREAM_POLL)
        assert [set(asked) for asked in log.asked] == [{"read", inbox_of(RUN)}]
        async with session.subscribe():
            await write(log, "other", 1)
            await trio.sleep(1.5 * DEFAULT_STREAM_POLL)
            assert set(log.asked[-1]) == {"read", RUN, inbox_of(RUN)}
        runtime.converge()
        assert await session.wait() == "all settled"
