"""Group commit: which appends share a commit, and what one that was cancelled or had to wait knows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trio.testing

from affidavit.actors.errors import LogClosed, LogLocked, WriterFenced
from affidavit.actors.logs import sqlite_store
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_locks import StoreLocks
from tests.actors.logs.appender import Appender, entry, streams_of
from tests.actors.logs.faulty import Plan, plan

__all__ = ["plan"]


async def test_appends_of_one_moment_share_one_commit(tmp_path: Path, plan: Plan) -> None:
    """A hundred tasks that append together are made durable by one sync, each with its own result."""
    async with open_sqlite_log(tmp_path / "store") as log:
        before = plan.commits
        appenders = [Appender(log, entry(f"s{number:03}")) for number in range(100)]
        async with trio.open_nursery() as nursery:
            for appender in appenders:
                nursery.start_soon(appender.run)
        assert [appender.result for appender in appenders] == [(1,)] * 100
        assert plan.commits - before == 1


async def test_what_arrives_during_a_commit_goes_into_the_next_one(tmp_path: Path, plan: Plan) -> None:
    """While one commit is in flight, everything else waits together, in order, for exactly one more."""
    async with open_sqlite_log(tmp_path / "store") as log, trio.open_nursery() as nursery:
        before = plan.commits
        plan.hold("COMMIT")
        nursery.start_soon(Appender(log, entry("a")).run)
        await trio.to_thread.run_sync(plan.entered.wait)
        later = [Appender(log, entry("a", seq)) for seq in (1, 2, 2, 3)]
        for appender in later:
            nursery.start_soon(appender.run)
            await trio.testing.wait_all_tasks_blocked()
        plan.release.set()
    assert [appender.result for appender in later if appender.result != (3,)] == [(2,), later[2].result, (4,)]
    assert later[2].result is not None
    fenced = later[2].result[0]
    assert isinstance(fenced, WriterFenced)
    assert fenced.actual == 3
    assert plan.commits - before == 2


async def test_a_lost_compare_alone_needs_no_commit(tmp_path: Path, plan: Plan) -> None:
    """Nothing written means nothing to sync, and the store is free again for others."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        before = plan.commits
        (lost,) = await log.append([entry("a", 5)])
        assert isinstance(lost, WriterFenced)
        assert plan.commits == before
        with closing(StoreLocks.open(path)) as others:
            assert others.try_write()


async def test_an_append_larger_than_a_batch_is_one_transaction(tmp_path: Path, plan: Plan) -> None:
    """However many rows an append has, they are applied whole."""
    async with open_sqlite_log(tmp_path / "store") as log:
        before = plan.commits
        assert await log.append([Entry("a", 0, (b"x",) * 1000)]) == (1000,)
        assert plan.commits - before == 1


async def test_a_batch_takes_whole_appends_up_to_its_size(tmp_path: Path, plan: Plan) -> None:
    """Appends that together are too many rows for the loop to write in one go are split between them, never within."""
    async with open_sqlite_log(tmp_path / "store") as log:
        before = plan.commits
        appenders = [Appender(log, Entry(f"s{number}", 0, (b"x",) * 100)) for number in range(5)]
        async with trio.open_nursery() as nursery:
            for appender in appenders:
                nursery.start_soon(appender.run)
        assert [appender.result for appender in appenders] == [(100,)] * 5
        assert plan.commits - before == 3


async def test_a_cancelled_append_that_was_taken_returns_its_result(tmp_path: Path, plan: Plan) -> None:
    """Once the commit may be under way, cancelling cannot make the outcome unknown: the tip is returned."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        plan.hold("COMMIT")
        taken = Appender(log, entry("taken"))
        nursery.start_soon(taken.run)
        await trio.to_thread.run_sync(plan.entered.wait)
        taken.scope.cancel()
        plan.release.set()
    assert taken.result == (1,)
    assert not taken.scope.cancelled_caught
    assert await streams_of(path) == ["taken"]


async def test_a_cancelled_append_that_was_not_taken_is_withdrawn(tmp_path: Path, plan: Plan) -> None:
    """Waiting behind another commit, a cancelled append is not written; its neighbours are."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        plan.hold("COMMIT")
        nursery.start_soon(Appender(log, entry("first")).run)
        await trio.to_thread.run_sync(plan.entered.wait)
        withdrawn, kept = Appender(log, entry("withdrawn")), Appender(log, entry("kept"))
        nursery.start_soon(withdrawn.run)
        nursery.start_soon(kept.run)
        await trio.testing.wait_all_tasks_blocked()
        withdrawn.scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert withdrawn.scope.cancelled_caught
        plan.release.set()
    assert (withdrawn.result, kept.result) == (None, (1,))
    assert await streams_of(path) == ["first", "kept"]


async def test_an_append_can_be_cancelled_while_another_process_writes(tmp_path: Path) -> None:
    """Waiting for the store's lock is not being taken: the append is withdrawn, and the log goes on afterwards."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        with closing(StoreLocks.open(path)) as others:
            assert others.try_write()
            waiting = Appender(log, entry("waiting"))
            nursery.start_soon(waiting.run)
            await trio.testing.wait_all_tasks_blocked()
            waiting.scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert waiting.scope.cancelled_caught
        assert await log.append([entry("next")]) == (1,)
        assert [info.stream for info in await log.list()] == ["next"]


async def test_a_store_that_stays_locked_is_a_known_not_written(tmp_path: Path) -> None:
    """After the grace the append fails as LogLocked with nothing written, and works once the lock is free."""
    path = tmp_path / "store"
    async with open_sqlite_log(path, lock_grace=0.02) as log:
        with closing(StoreLocks.open(path)) as others:
            assert others.try_write()
            with pytest.raises(LogLocked):
                await log.append([entry("a")])
            assert await log.list() == ()
        assert await log.append([entry("a")]) == (1,)


async def test_only_those_who_waited_a_grace_are_refused_for_the_lock(tmp_path: Path) -> None:
    """An append that came while another waited for the lock has its own grace, and gets through if the lock is let go."""
    path = tmp_path / "store"
    async with open_sqlite_log(path, lock_grace=0.5) as log, trio.open_nursery() as nursery:
        others = StoreLocks.open(path)
        assert others.try_write()
        first, gone, second = (Appender(log, entry(name)) for name in ("first", "gone", "second"))
        nursery.start_soon(first.run)
        nursery.start_soon(gone.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(second.run)
        await trio.testing.wait_all_tasks_blocked()
        gone.scope.cancel()
        while first.error is None:
            await trio.testing.wait_all_tasks_blocked()
        others.close()
    assert isinstance(first.error, LogLocked)
    assert (gone.result, gone.error, second.result) == (None, None, (1,))


async def test_an_append_waits_for_another_processs_transaction(tmp_path: Path) -> None:
    """A lock that is let go within the grace costs time only."""
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        others = StoreLocks.open(path)
        assert others.try_write()
        waiting = Appender(log, entry("a"))
        nursery.start_soon(waiting.run)
        await trio.testing.wait_all_tasks_blocked()
        others.close()
    assert waiting.result == (1,)


async def test_a_foreign_writer_is_waited_for_too(tmp_path: Path) -> None:
    """A program that locks the database itself makes appends wait, then fail as LogLocked; the loop never blocks."""
    path = tmp_path / "store"
    async with open_sqlite_log(path, lock_grace=0.02) as log:
        with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            with pytest.raises(LogLocked):
                await log.append([entry("a")])
            foreign.execute("ROLLBACK")
        assert await log.append([entry("a")]) == (1,)


async def test_the_write_ahead_log_is_recycled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints keep it small while the log goes on, and a reader on its own connection does not prevent that."""
    path = tmp_path / "store"
    monkeypatch.setattr(sqlite_store, "CHECKPOINT_PAGES", 100)
    async with open_sqlite_log(path) as log:
        for seq in range(60):
            await log.append([Entry("a", seq, (b"x" * 40_000,))])
            await log.read("a", seq)
        assert (tmp_path / "store-wal").stat().st_size < 1_000_000 < path.stat().st_size


async def test_closing_waits_for_the_commit_in_flight(tmp_path: Path, plan: Plan) -> None:
    """Leaving the block, even cancelled, gives the append under way its result; one not yet taken is refused."""
    path = tmp_path / "store"
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with open_sqlite_log(path) as log:
                plan.hold("COMMIT")
                taken, waiting = Appender(log, entry("taken")), Appender(log, entry("waiting"))
                nursery.start_soon(taken.run)
                await trio.to_thread.run_sync(plan.entered.wait)
                nursery.start_soon(waiting.run)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(_release_when_blocked, plan)
                scope.cancel()
    assert taken.result == (1,)
    assert isinstance(waiting.error, LogClosed)
    assert await streams_of(path) == ["taken"]


async def _release_when_blocked(plan: Plan) -> None:
    await trio.testing.wait_all_tasks_blocked()
    plan.release.set()


async def test_closing_ends_a_wait_for_the_lock(tmp_path: Path) -> None:
    """An append that waits for another process's transaction is told that the log closed, and was not written."""
    path = tmp_path / "store"
    async with trio.open_nursery() as nursery, open_sqlite_log(path, lock_grace=0.1) as log:
        others = StoreLocks.open(path)
        assert others.try_write()
        waiting = Appender(log, entry("a"))
        nursery.start_soon(waiting.run)
        await trio.testing.wait_all_tasks_blocked()
    others.close()
    assert isinstance(waiting.error, LogClosed)
    assert await streams_of(path) == []


async def test_a_test_clock_cannot_outrun_a_commit(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """All graces are real time, so a clock that jumps whenever all tasks wait makes no append fail."""
    async with open_sqlite_log(tmp_path / "store") as log, trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 10**9)
        for seq in range(20):
            assert await log.append([entry("a", seq)]) == (seq + 1,)
        nursery.cancel_scope.cancel()


async def test_a_busy_loop_does_not_starve_the_commit_thread(tmp_path: Path) -> None:
    """An append gets through while another task never lets the loop sleep."""
    async with open_sqlite_log(tmp_path / "store") as log, trio.open_nursery() as nursery:
        turns = 0

        async def hog() -> None:
            nonlocal turns
            while True:
                turns += 1
                await trio.lowlevel.checkpoint()

        nursery.start_soon(hog)
        for seq in range(20):
            await log.append([entry("a", seq)])
        assert turns > 20
        nursery.cancel_scope.cancel()


async def test_those_just_answered_share_the_next_commit_with_those_that_waited(
    tmp_path: Path, plan: Plan
) -> None:
    """An appender that goes on as soon as it is answered does not miss the transaction that is begun next."""
    async with open_sqlite_log(tmp_path / "store") as log, trio.open_nursery() as nursery:
        plan.hold("COMMIT")

        async def twice() -> None:
            await log.append([entry("a")])
            await log.append([entry("a", 1)])

        nursery.start_soon(twice)
        await trio.to_thread.run_sync(plan.entered.wait)
        nursery.start_soon(Appender(log, entry("b")).run)
        await trio.testing.wait_all_tasks_blocked()
        plan.release.set()
    assert plan.commits == 2 + 1  # and the one that made the tables
