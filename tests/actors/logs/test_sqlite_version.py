"""One number that tells a watcher whether anything was written at all, and how `watch` uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from affidavit.actors.codec import encode
from affidavit.actors.errors import LogClosed, LogStateUnknown
from affidavit.actors.events import Event
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Entry, Row, StreamInfo, VersionedReader
from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.watch import watch
from tests.actors.fakes import FaultLog


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    """A new store, open to write."""
    async with open_sqlite_log(tmp_path / "store") as opened:
        yield opened


async def _say(log: SqliteLog, seq: int) -> None:
    event = encode(Event("user.message", text=str(seq)), stream="a", seq=seq, time=1)
    await log.append([Entry("a", seq - 1, (event,))])


async def test_each_commit_by_another_moves_the_version(tmp_path: Path, log: SqliteLog) -> None:
    """The number stands while nothing is written, moves with each append, and every caller may ask at any time."""
    async with open_sqlite_reader(tmp_path / "store") as reader:
        versions = [await reader.version()]
        for seq in (1, 2, 3):
            before = await log.version()
            await _say(log, seq)
            assert await log.version() != before
            versions.append(await reader.version())
            assert await reader.version() == versions[-1]
    assert len(set(versions)) == 4
    with pytest.raises(LogClosed):
        await reader.version()


class _Counted:
    """A reader that counts what it is asked; its version can be made to fail."""

    def __init__(self, log: SqliteLog) -> None:
        self._log = log
        self.reads = 0
        self.versions = 0
        self.broken = False

    async def version(self) -> int:
        self.versions += 1
        if self.broken:
            raise LogStateUnknown("broken by the test")
        return await self._log.version()

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        self.reads += 1
        if self.broken:
            raise LogStateUnknown("broken by the test")
        return await self._log.read(stream, after_seq, limit)

    async def info(self, stream: str) -> StreamInfo | None:
        return await self._log.info(stream)

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        return await self._log.tips(streams)

    async def list(self, prefix: str = "") -> tuple[StreamInfo, ...]:
        return await self._log.list(prefix)


async def test_a_watcher_of_a_quiet_store_does_not_read(
    log: SqliteLog, autojump_clock: trio.testing.MockClock
) -> None:
    """While nothing is written the floor asks for the version alone; the next append is delivered as ever."""
    counted = _Counted(log)
    assert isinstance(counted, VersionedReader)
    await _say(log, 1)
    async with watch(counted, "a", stream_poll=1) as events, trio.open_nursery() as nursery:
        assert (await anext(events)).seq == 1

        async def speak_late() -> None:
            await trio.sleep(1000.5)
            counted.reads = 0
            await _say(log, 2)

        nursery.start_soon(speak_late)
        with trio.move_on_after(1000):
            pytest.fail(f"delivered {await anext(events)}")
        assert counted.versions > 900
        assert counted.reads <= 3
        assert (await anext(events)).seq == 2


async def test_a_watcher_of_a_store_that_fails_is_told(
    log: SqliteLog, autojump_clock: trio.testing.MockClock
) -> None:
    """A version that cannot be had makes the reader look, and what it meets there is raised to the caller."""
    counted = _Counted(log)
    async with watch(counted, "a", stream_poll=1) as events:
        with trio.move_on_after(10):
            pytest.fail(f"delivered {await anext(events)}")
        counted.broken = True
        with pytest.raises(LogStateUnknown, match="broken by the test"):
            await anext(events)


def test_a_version_is_an_offer_and_not_a_part_of_the_port() -> None:
    """The adapters offer it; a log that wraps another without passing it on is a log all the same."""
    assert isinstance(MemoryLog(), VersionedReader)
    assert not isinstance(FaultLog(MemoryLog()), VersionedReader)
