"""The contract of `SubmittingLog`, sentence by sentence, held by every adapter that offers it: all of ours do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import trio

from affidavit.actors.errors import LogError, WriterFenced
from affidavit.actors.logs.port import Entry, Guard, Log, Row, SubmittingLog
from tests.actors.logs.adapters import ADAPTERS


@pytest.fixture(params=sorted(ADAPTERS))
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    """An empty log of each adapter in turn."""
    async with ADAPTERS[cast("str", request.param)](tmp_path) as opened:
        yield opened


class Heard:
    """What was told of some entries, in the order in which it was."""

    def __init__(self, log: Log) -> None:
        assert isinstance(log, SubmittingLog)
        self._log = log
        self.outcomes: list[int | WriterFenced | LogError] = []
        self._changed = trio.Event()

    def submit(self, entry: Entry) -> None:
        """Submit an entry to the log."""
        self._log.submit(entry, self._told)

    def _told(self, outcome: int | WriterFenced | LogError) -> None:
        self.outcomes.append(outcome)
        self._changed.set()

    async def all(self, count: int) -> list[int | WriterFenced | LogError]:
        """Return so many outcomes, once there are."""
        while len(self.outcomes) < count:
            self._changed = trio.Event()
            await self._changed.wait()
        return self.outcomes


async def test_what_was_submitted_is_durable_once_that_is_told(log: Log) -> None:
    """The new tip is told exactly once, and the rows are there to read by then."""
    heard = Heard(log)
    heard.submit(Entry("a", 0, (b"x", b"y")))
    assert await heard.all(1) == [2]
    assert await log.read("a") == (Row(1, b"x"), Row(2, b"y"))
    await log.append([Entry("b", 0, (b"z",))])
    assert heard.outcomes == [2]


async def test_what_is_given_later_stands_behind_it(log: Log) -> None:
    """Submitted twice and appended at once, each on the tip that the one before makes: all three are applied, in that order."""
    heard = Heard(log)
    heard.submit(Entry("a", 0, (b"first",)))
    heard.submit(Entry("a", 1, (b"second",)))
    assert await log.append([Entry("a", 2, (b"third",))]) == (3,)
    assert heard.outcomes == [1, 2], "both were told of before the append returned"
    assert [row.data for row in await log.read("a")] == [b"first", b"second", b"third"]


async def test_a_lost_compare_is_told_and_writes_nothing(log: Log) -> None:
    """As an append returns it: the stream and both values."""
    heard = Heard(log)
    heard.submit(Entry("a", 5, (b"no",)))
    (lost,) = await heard.all(1)
    assert isinstance(lost, WriterFenced)
    assert (lost.stream, lost.expected, lost.actual) == ("a", 5, 0)
    assert await log.info("a") is None


async def test_a_lost_guard_behind_it_takes_nothing_of_it_away(log: Log) -> None:
    """What was submitted is applied, whatever becomes of an append that shares its sync."""
    await log.append([Entry("inbox", 0, (b"asked",))])
    heard = Heard(log)
    heard.submit(Entry("a", 0, (b"x",)))
    (lost,) = await log.append([Entry("a", 1, (b"no",), guard=Guard("inbox", 0))])
    assert isinstance(lost, WriterFenced)
    assert lost.stream == "inbox"
    assert heard.outcomes == [1]
    assert await log.read("a") == (Row(1, b"x"),)


async def test_cancelling_what_comes_behind_it_takes_nothing_of_it_away(log: Log) -> None:
    """Nobody waits for what was submitted, so nobody can withdraw it."""
    heard = Heard(log)
    with trio.CancelScope() as scope:
        scope.cancel()
        heard.submit(Entry("a", 0, (b"x",)))
        await log.append([Entry("a", 1, (b"no",))])
    assert scope.cancelled_caught
    assert await heard.all(1) == [1]
    assert await log.read("a") == (Row(1, b"x"),)


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        pytest.param(Entry("a", 0, ()), ValueError, id="no-rows"),
        pytest.param(Entry("", 0, (b"x",)), ValueError, id="no-name"),
        pytest.param(Entry("a", 0, (cast("bytes", "text"),)), TypeError, id="row-is-no-bytes"),
    ],
)
async def test_a_malformed_entry_is_refused_at_once(log: Log, entry: Entry, error: type[Exception]) -> None:
    """A caller's mistake raises, nothing is told, and nothing was written."""
    heard = Heard(log)
    with pytest.raises(error):
        heard.submit(entry)
    await log.append([Entry("b", 0, (b"z",))])
    assert heard.outcomes == []
    assert await log.info("a") is None
