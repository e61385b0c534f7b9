"""The contract of the log port, sentence by sentence, held by every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.errors import RunOwned, WriterFenced
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Entry, Guard, Log, Row, StreamInfo
from tests.actors.logs.adapters import ADAPTERS


@pytest.fixture(params=sorted(ADAPTERS))
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    """An empty log of each adapter in turn."""
    async with ADAPTERS[cast("str", request.param)](tmp_path) as opened:
        yield opened


def rows(*texts: str) -> tuple[bytes, ...]:
    """Return texts as the rows of an entry."""
    return tuple(text.encode() for text in texts)


async def contents(log: Log, stream: str) -> tuple[bytes, ...]:
    """Return a stream's whole data, after checking that its seqs are dense."""
    found = await log.read(stream, 0, 100_000)
    assert [row.seq for row in found] == list(range(1, len(found) + 1)), "seq is not dense from 1"
    return tuple(row.data for row in found)


async def test_append_returns_the_new_tip_and_numbers_rows_densely_from_one(log: Log) -> None:
    """Rows get expected_seq + 1 and on, and the entry's result is the tip that this makes."""
    assert await log.append([Entry("a", 0, rows("x", "y"))]) == (2,)
    assert await log.append([Entry("a", 2, rows("z"))]) == (3,)
    assert await log.read("a") == (Row(1, b"x"), Row(2, b"y"), Row(3, b"z"))


async def test_rows_come_back_as_the_very_bytes_that_went_in(log: Log) -> None:
    """Whatever the bytes are (empty, NUL, not text, large), they are returned unchanged."""
    stored = (b"", b"\0", bytes(range(256)), b"\xff" * 300_000)
    await log.append([Entry("a", 0, stored)])
    assert await contents(log, "a") == stored


async def test_a_lost_compare_is_returned_and_writes_nothing(log: Log) -> None:
    """An entry whose expected_seq is too low or too high comes back as WriterFenced with both values."""
    await log.append([Entry("a", 0, rows("x"))])
    for expected in (0, 2, 2**62):
        (lost,) = await log.append([Entry("a", expected, rows("no"), terminal_seq=1, sealed_size=1)])
        assert isinstance(lost, WriterFenced)
        assert (lost.stream, lost.expected, lost.actual) == ("a", expected, 1)
    assert await contents(log, "a") == rows("x")
    assert await log.info("a") == StreamInfo("a", 1)


async def test_a_lost_compare_on_an_unknown_stream_does_not_make_it(log: Log) -> None:
    """A stream exists only once it has an event."""
    (lost,) = await log.append([Entry("a", 5, rows("no"))])
    assert isinstance(lost, WriterFenced)
    assert lost.actual == 0
    assert await log.info("a") is None
    assert await log.list() == ()


async def test_a_lost_compare_fails_that_entry_alone(log: Log) -> None:
    """The other entries of the same append are applied, whichever place the lost one has."""
    await log.append([Entry("b", 0, rows("first"))])
    first, lost, last = await log.append(
        [Entry("a", 0, rows("x")), Entry("b", 0, rows("no")), Entry("c", 0, rows("y", "z"))]
    )
    assert (first, last) == (1, 2)
    assert isinstance(lost, WriterFenced)
    assert await contents(log, "a") == rows("x")
    assert await contents(log, "b") == rows("first")
    assert await contents(log, "c") == rows("y", "z")


async def test_a_guard_keeps_an_entry_off_while_its_stream_holds_more_than_was_read(log: Log) -> None:
    """The lost guard comes back as WriterFenced of its stream, and writes nothing; read so far, the entry is applied."""
    await log.append([Entry("inbox", 0, rows("asked"))])
    (lost,) = await log.append([Entry("a", 0, rows("no"), terminal_seq=1, guard=Guard("inbox", 0))])
    assert isinstance(lost, WriterFenced)
    assert (lost.stream, lost.expected, lost.actual) == ("inbox", 0, 1)
    assert await log.info("a") is None
    assert await log.append([Entry("a", 0, rows("x"), guard=Guard("inbox", 1))]) == (1,)
    assert await log.append([Entry("a", 1, rows("y"), guard=Guard("unknown", 0))]) == (2,)
    assert await contents(log, "a") == rows("x", "y")


async def test_a_guard_counts_what_stands_ahead_in_the_same_append(log: Log) -> None:
    """Entries are applied in order; what comes behind is not asked about."""
    first, lost = await log.append(
        [Entry("inbox", 0, rows("asked")), Entry("a", 0, rows("no"), guard=Guard("inbox", 0))]
    )
    assert first == 1
    assert isinstance(lost, WriterFenced)
    assert lost.stream == "inbox"
    entries = [Entry("a", 0, rows("x"), guard=Guard("inbox", 1)), Entry("inbox", 1, rows("asked again"))]
    assert await log.append(entries) == (1, 2)


async def test_whoever_lost_its_stream_is_told_so_whatever_its_guard_says(log: Log) -> None:
    """Of both compares the writer's own is the graver."""
    await log.append([Entry("inbox", 0, rows("asked")), Entry("a", 0, rows("x"))])
    (lost,) = await log.append([Entry("a", 0, rows("no"), guard=Guard("inbox", 0))])
    assert isinstance(lost, WriterFenced)
    assert (lost.stream, lost.expected, lost.actual) == ("a", 0, 1)


async def test_an_append_of_nothing_returns_nothing(log: Log) -> None:
    """No entries, no results, no stream."""
    assert await log.append([]) == ()
    assert await log.list() == ()


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        pytest.param([Entry("b", 0, ())], ValueError, id="no-rows"),
        pytest.param([Entry("a", 0, (b"x",)), Entry("a", 1, (b"y",))], ValueError, id="stream-twice"),
        pytest.param([Entry("", 0, (b"x",))], ValueError, id="empty-name"),
        pytest.param([Entry("\ud800", 0, (b"x",))], ValueError, id="name-is-no-unicode"),
        pytest.param([Entry("a", -1, (b"x",))], ValueError, id="negative-expected-seq"),
        pytest.param([Entry("a", 0, (b"x",), terminal_seq=2)], ValueError, id="terminal-beyond-the-end"),
        pytest.param([Entry("a", 0, (b"x",), sealed_size=-1)], ValueError, id="negative-sealed-size"),
        pytest.param([Entry("a", 0, (b"x",), guard=Guard("", 0))], ValueError, id="guard-without-a-name"),
        pytest.param([Entry("a", 0, (b"x",), guard=Guard("b", -1))], ValueError, id="guard-before-the-first"),
        pytest.param([Entry("a", 0, (cast("bytes", "text"),))], TypeError, id="row-is-no-bytes"),
    ],
)
async def test_a_malformed_append_is_refused_whole(
    log: Log, entries: list[Entry], error: type[Exception]
) -> None:
    """A caller's mistake raises before anything is written, sound entries beside it included."""
    with pytest.raises(error):
        await log.append([Entry("sound", 0, (b"x",)), *entries])
    assert await log.list() == ()
    assert await log.append([Entry("sound", 0, (b"x",))]) == (1,)


async def test_index_values_are_set_left_and_reset(log: Log) -> None:
    """terminal_seq and sealed_size take a new value, keep the old one on None, and can go back to 0."""
    await log.append([Entry("a", 0, rows("1", "2"), terminal_seq=2)])
    assert await log.info("a") == StreamInfo("a", 2, terminal_seq=2, sealed_size=0)
    await log.append([Entry("a", 2, rows("3"), sealed_size=2)])
    assert await log.info("a") == StreamInfo("a", 3, terminal_seq=2, sealed_size=2)
    await log.append([Entry("a", 3, rows("4"), terminal_seq=0)])
    assert await log.info("a") == StreamInfo("a", 4, terminal_seq=0, sealed_size=2)


async def test_tips_of_many_streams_come_in_the_order_asked(log: Log) -> None:
    """However many there are; 0 for one that has no events or can have none, and twice for one that is named twice."""
    await log.append([Entry(f"s{number}", 0, (b"x",) * (number + 1)) for number in range(300)])
    names = [f"s{number}" for number in range(300)]
    assert await log.tips(names) == tuple(range(1, 301))
    assert await log.tips(names[::-1]) == tuple(range(300, 0, -1))
    assert await log.tips(["s4", "unknown", "", "\ud800", "s4", "s"]) == (5, 0, 0, 0, 5, 0)
    assert await log.tips([]) == ()
    for number in (2, 3, 16, 17, 256, 257):
        assert await log.tips(names[:number]) == tuple(range(1, number + 1))


async def test_what_append_returned_is_there_to_read_at_once(log: Log) -> None:
    """When append returns, a read by anyone finds the rows and the index row."""
    for seq in range(10):
        await log.append([Entry("a", seq, rows(str(seq)))])
        assert await log.read("a", seq) == (Row(seq + 1, str(seq).encode()),)
        assert await log.info("a") == StreamInfo("a", seq + 1)


async def test_of_racing_writers_with_one_expected_seq_exactly_one_wins(log: Log) -> None:
    """However many append at the same moment, one row is written and all others are told its tip."""
    results: list[int | WriterFenced] = []

    async def write(name: str) -> None:
        results.extend(await log.append([Entry("a", 0, rows(name))]))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(write, str(number))
    assert [result for result in results if not isinstance(result, WriterFenced)] == [1]
    assert all(result.actual == 1 for result in results if isinstance(result, WriterFenced))
    assert len(await contents(log, "a")) == 1


async def test_writers_of_many_streams_do_not_disturb_one_another(log: Log) -> None:
    """Streams appended to at the same time each end dense, complete and in their own order."""
    names = [f"stream-{number}" for number in range(25)]

    async def write(name: str) -> None:
        for seq in range(8):
            assert await log.append([Entry(name, seq, rows(f"{name}/{seq}"))]) == (seq + 1,)

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(write, name)
    for name in names:
        assert await contents(log, name) == rows(*(f"{name}/{seq}" for seq in range(8)))


async def test_an_append_cancelled_beforehand_appends_nothing(log: Log) -> None:
    """Cancelled means that nothing was appended."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await log.append([Entry("a", 0, rows("no"))])
    assert scope.cancelled_caught
    assert await log.info("a") is None


async def test_an_append_returned_or_was_cancelled_and_the_log_agrees(log: Log) -> None:
    """Of appends cancelled at all sorts of moments, exactly those that returned are in the log."""
    returned: set[str] = set()

    async def write(name: str, scope: trio.CancelScope) -> None:
        with scope:
            await log.append([Entry(name, 0, rows(name))])
            returned.add(name)

    for ticks in range(6):
        async with trio.open_nursery() as nursery:
            scopes = [trio.CancelScope() for _ in range(4)]
            for number, scope in enumerate(scopes):
                nursery.start_soon(write, f"{ticks}-{number}", scope)
            for _ in range(ticks):
                await trio.lowlevel.checkpoint()
            for scope in scopes[::2]:
                scope.cancel()
    assert {info.stream for info in await log.list()} == returned
    assert len(returned) >= 12, "the appends that nobody cancelled must have returned"


async def test_every_call_is_a_checkpoint(log: Log) -> None:
    """A loop over any of the calls lets other tasks run and can be cancelled."""
    with trio.testing.assert_checkpoints():
        await log.append([Entry("a", 0, rows("x"))])
    with trio.testing.assert_checkpoints():
        await log.read("a")
    with trio.testing.assert_checkpoints():
        await log.info("a")
    with trio.testing.assert_checkpoints():
        await log.list()


async def test_read_goes_on_after_a_cursor_and_stops_at_its_limit(log: Log) -> None:
    """Reading page by page from the last seq seen gives every row once, in order."""
    await log.append([Entry("a", 0, tuple(str(n).encode() for n in range(1, 11)))])
    assert [row.seq for row in await log.read("a", 3, 4)] == [4, 5, 6, 7]
    assert [row.seq for row in await log.read("a", 8, 4)] == [9, 10]
    assert await log.read("a", 10, 4) == ()
    assert await log.read("a", 2**70, 4) == ()
    assert await log.read("a", 0, 0) == ()
    assert [row.seq for row in await log.read("a", -5, 1)] == [1]


async def test_read_has_a_default_limit(log: Log) -> None:
    """A read that names no limit returns at most the port's default, and a larger limit is honoured."""
    await log.append([Entry("a", 0, (b"x",) * (3 * DEFAULT_READ_LIMIT + 5))])
    assert len(await log.read("a")) == DEFAULT_READ_LIMIT
    assert len(await log.read("a", 0, 3 * DEFAULT_READ_LIMIT + 1)) == 3 * DEFAULT_READ_LIMIT + 1
    assert len(await log.read("a", 1, 2**70)) == 3 * DEFAULT_READ_LIMIT + 4


async def test_a_negative_limit_is_refused(log: Log) -> None:
    """A limit below 0 is a caller's mistake, never "no limit"."""
    with pytest.raises(ValueError, match="limit"):
        await log.read("a", 0, -1)


@pytest.mark.parametrize("stream", ["unknown", "", "\ud800"])
async def test_reading_an_unknown_stream_is_empty(log: Log, stream: str) -> None:
    """A stream that has no events, whatever its name, reads as empty and has no index row."""
    await log.append([Entry("known", 0, rows("x"))])
    assert await log.read(stream) == ()
    assert await log.info(stream) is None


async def test_list_is_ordered_and_filtered_by_prefix(log: Log) -> None:
    """All streams whose id begins with the prefix, ordered by id; nothing in a prefix is a wildcard."""
    names = ["B", "a", "a%", "a%b", "a_", "ab", "a\U0010ffff", "é", "日本", "a.inbox"]
    for name in names:
        await log.append([Entry(name, 0, rows(name))])
    assert [info.stream for info in await log.list()] == sorted(names)
    for prefix in ["a", "a%", "a_", "b", "é", "日", "ab", "\ud800", "a\U0010ffff", "nothing"]:
        expected = sorted(name for name in names if name.startswith(prefix))
        assert [info.stream for info in await log.list(prefix)] == expected


async def test_list_is_complete_however_many_streams_there_are(log: Log) -> None:
    """No page size shows through: every stream is listed once."""
    names = [f"{number:04}" for number in range(2 * DEFAULT_READ_LIMIT + 1)]
    await log.append([Entry(name, 0, rows("x")) for name in names])
    assert await log.list() == tuple(StreamInfo(name, 1) for name in names)


async def test_a_run_has_one_owner_at_a_time(log: Log) -> None:
    """While a run is owned, another attempt fails at once; other runs are free, and so is this one later."""
    async with log.own("a"):
        with pytest.raises(RunOwned) as refused:
            async with log.own("a"):
                pytest.fail("owned twice")
        assert refused.value.stream == "a"
        async with log.own("b"):
            pass
    async with log.own("a"):
        pass


async def test_ownership_ends_however_its_block_ends(log: Log) -> None:
    """An error or a cancellation inside the block frees the run."""
    with pytest.raises(KeyError):
        async with log.own("a"):
            raise KeyError
    with trio.CancelScope() as scope:
        async with log.own("a"):
            scope.cancel()
            await trio.sleep_forever()
    async with log.own("a"):
        pass


async def test_a_refused_owner_does_not_free_the_run(log: Log) -> None:
    """A failed attempt leaves the standing owner as it was, however often it is made."""
    async with log.own("a"):
        for _ in range(3):
            with pytest.raises(RunOwned):
                async with log.own("a"):
                    pytest.fail("owned twice")


_batches = st.lists(
    st.lists(
        st.builds(
            Entry,
            stream=st.sampled_from("abc"),
            expected_seq=st.integers(0, 6),
            rows=st.lists(st.binary(max_size=8), min_size=1, max_size=3).map(tuple),
            terminal_seq=st.sampled_from([None, 0, 1]),
            sealed_size=st.sampled_from([None, 0, 1]),
        ),
        max_size=3,
        unique_by=lambda entry: entry.stream,
    ),
    max_size=12,
)


def _expect(model: dict[str, tuple[list[bytes], StreamInfo]], entry: Entry) -> int | None:
    stored, info = model.get(entry.stream, ([], StreamInfo(entry.stream, 0)))
    if entry.expected_seq != info.tip:
        return None
    stored = [*stored, *entry.rows]
    model[entry.stream] = (
        stored,
        StreamInfo(
            entry.stream,
            len(stored),
            info.terminal_seq if entry.terminal_seq is None else entry.terminal_seq,
            info.sealed_size if entry.sealed_size is None else entry.sealed_size,
        ),
    )
    return len(stored)


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
@given(batches=_batches)
async def test_any_sequence_of_appends_equals_a_plain_list(adapter: str, batches: list[list[Entry]]) -> None:
    """Whatever is appended, results, rows and index equal those of a list per stream."""
    model: dict[str, tuple[list[bytes], StreamInfo]] = {}
    with TemporaryDirectory() as folder:
        async with ADAPTERS[adapter](Path(folder)) as log:
            for batch in batches:
                found = await log.append(batch)
                expected = tuple(_expect(model, entry) for entry in batch)
                assert tuple(None if isinstance(one, WriterFenced) else one for one in found) == expected
            for stream, (stored, info) in model.items():
                assert await contents(log, stream) == tuple(stored)
                assert await log.info(stream) == info
            assert await log.list() == tuple(model[name][1] for name in sorted(model))
