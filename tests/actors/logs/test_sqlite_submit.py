"""What is submitted to the store: which sync it shares, and what is told when that fails, written and not written."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio

from affidavit.actors.errors import LogClosed, LogError, LogFull, LogStateUnknown, WriterFenced
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from tests.actors.logs.faulty import How, Plan, plan

__all__ = ["plan"]

Outcome = int | WriterFenced | LogError


async def test_it_shares_the_sync_of_an_append_of_the_same_turn(tmp_path: Path, plan: Plan) -> None:
    """The end of one action and the admission of the next become durable together: one commit, not two."""
    told: list[Outcome] = []
    async with open_sqlite_log(tmp_path / "store") as log:
        before = plan.commits
        log.submit(Entry("a", 0, (b"x",)), told.append)
        assert await log.append([Entry("a", 1, (b"y",))]) == (2,)
        assert plan.commits - before == 1
    assert told == [1]


async def test_it_needs_nobody_to_append_after_it(tmp_path: Path, plan: Plan) -> None:
    """It is made durable at the end of the loop's turn, by a commit of its own if need be."""
    told: list[Outcome] = []
    arrived = trio.Event()

    def tell(outcome: Outcome) -> None:
        told.append(outcome)
        arrived.set()

    async with open_sqlite_log(tmp_path / "store") as log:
        before = plan.commits
        log.submit(Entry("a", 0, (b"x",)), tell)
        await arrived.wait()
        assert (told, plan.commits - before) == ([1], 1)


async def _failing(path: Path, plan: Plan, code: int, how: How) -> tuple[list[Outcome], BaseException]:
    """What is told, and what the append behind it raises, when their shared commit fails."""
    told: list[Outcome] = []
    async with open_sqlite_log(path) as log:
        await log.append([Entry("a", 0, (b"first",))])
        plan.fail("COMMIT", code, how)
        log.submit(Entry("a", 1, (b"x",)), told.append)
        with pytest.raises(LogError) as raised:
            await log.append([Entry("a", 2, (b"y",))])
    return told, raised.value


async def _stored(path: Path) -> list[bytes]:
    async with open_sqlite_log(path) as log:
        return [row.data for row in await log.read("a")]


async def test_a_full_disk_is_told_and_nothing_of_it_is_written(tmp_path: Path, plan: Plan) -> None:
    """Both hear that there is no room; a later opening finds neither."""
    told, raised = await _failing(tmp_path / "store", plan, sqlite3.SQLITE_FULL, How.BEFORE)
    assert [type(outcome) for outcome in told] == [LogFull]
    assert isinstance(raised, LogFull)
    assert await _stored(tmp_path / "store") == [b"first"]


@pytest.mark.parametrize("how", How)
async def test_an_unknown_outcome_is_told_as_one(tmp_path: Path, plan: Plan, how: How) -> None:
    """Failed and written, or failed and not written: the log closes, and both or neither are found later."""
    told, raised = await _failing(tmp_path / "store", plan, sqlite3.SQLITE_IOERR, how)
    assert [type(outcome) for outcome in told] == [LogStateUnknown]
    assert isinstance(raised, LogStateUnknown)
    rest = [b"x", b"y"] if how is How.AFTER else []
    assert await _stored(tmp_path / "store") == [b"first", *rest]


async def test_of_many_that_are_lost_the_first_is_told_first(tmp_path: Path, plan: Plan) -> None:
    """The one whose commit failed says why; those that wait behind it are told only that the log has closed."""
    told: list[Outcome] = []
    async with open_sqlite_log(tmp_path / "store") as log:
        plan.fail("COMMIT", sqlite3.SQLITE_IOERR, How.BEFORE)
        plan.hold("COMMIT")
        log.submit(Entry("a", 0, (b"x",)), told.append)
        await trio.to_thread.run_sync(plan.entered.wait)
        log.submit(Entry("a", 1, (b"late",)), told.append)
        plan.release.set()
        with pytest.raises(LogClosed):
            await log.append([Entry("a", 2, (b"later",))])
    assert [type(outcome) for outcome in told] == [LogStateUnknown, LogClosed]


async def test_closing_waits_for_what_was_taken(tmp_path: Path, plan: Plan) -> None:
    """A commit that is in flight when the log closes is told of, and stands."""
    told: list[Outcome] = []
    path = tmp_path / "store"
    async with open_sqlite_log(path) as log:
        plan.hold("COMMIT")
        log.submit(Entry("a", 0, (b"x",)), told.append)
        await trio.to_thread.run_sync(plan.entered.wait)
        plan.release.set()
    assert told == [1]
    assert await _stored(path) == [b"x"]


async def test_what_no_commit_has_taken_is_refused_when_the_log_closes(tmp_path: Path, plan: Plan) -> None:
    """It is told so at once, and not written; what was in flight stands, and a closed log takes nothing more."""
    told: list[Outcome] = []
    path = tmp_path / "store"

    def tell_and_go_on(outcome: Outcome) -> None:
        told.append(outcome)
        plan.release.set()

    async with open_sqlite_log(path) as log:
        plan.hold("COMMIT")
        log.submit(Entry("a", 0, (b"x",)), told.append)
        await trio.to_thread.run_sync(plan.entered.wait)
        log.submit(Entry("a", 1, (b"late",)), tell_and_go_on)
    assert isinstance(told[0], LogClosed)
    assert told[1:] == [1]
    with pytest.raises(LogClosed):
        log.submit(Entry("a", 1, (b"later",)), told.append)
    assert await _stored(path) == [b"x"]
