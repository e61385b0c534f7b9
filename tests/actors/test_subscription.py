"""One reader of one stream: exactly what was published after its cursor, and an end that says why (S2, S3, S4, S7, S8)."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Entry, Row
from affidavit.actors.readers import Readers
from affidavit.actors.subscription import Closed
from affidavit.actors.tail import WINDOW_EVENTS
from affidavit.crypto.failures import VerificationError
from tests.actors.fakes import Fault, FaultLog, SilentBus
from tests.actors.runtimes import RUN, available, collected, new_stream, take


def said(number: int) -> Event:
    """Return an event that carries a number."""
    return Event(Kind.ASSISTANT, text=str(number))


@given(count=st.integers(0, 12), after=st.integers(0, 15), late=st.integers(0, 12))
async def test_backlog_then_tail_is_exactly_what_was_published_after_the_cursor(
    count: int, after: int, late: int
) -> None:
    """S2: any cursor, before, at or beyond the tip, gives published[n:] in order, each once."""
    stream = await new_stream(MemoryLog())
    published = [*await stream.append(*map(said, range(count)))]
    async with stream.subscribe(after) as events:
        got = await available(events)
        assert got == published[after:]
        for number in range(late):
            published += await stream.append(said(number))
        assert got + await available(events) == published[after:]
        assert events.cursor == max(after, len(published))


async def test_a_backlog_longer_than_one_read_comes_whole() -> None:
    """Batches join without a seam."""
    stream = await new_stream(MemoryLog())
    published = await stream.append(*map(said, range(2 * DEFAULT_READ_LIMIT + 1)))
    async with stream.subscribe() as events:
        assert tuple(await available(events)) == published


async def test_a_negative_cursor_is_a_value_error() -> None:
    """No seq is negative, so a negative cursor is a bug of the caller."""
    stream = await new_stream(MemoryLog())
    with pytest.raises(ValueError, match="not negative: -1"):
        async with stream.subscribe(-1):
            pass
    assert len(stream.readers) == 0


async def test_a_cursor_beyond_the_tip_waits_until_the_stream_gets_there() -> None:
    """Events up to the cursor are never delivered; the first one after it is."""
    stream = await new_stream(MemoryLog())
    async with stream.subscribe(2) as events:
        await stream.append(said(1))
        await stream.append(said(2))
        assert await available(events) == []
        third = await stream.append(said(3))
        assert tuple(await available(events)) == third


async def test_dropping_and_coming_back_at_the_cursor_misses_and_repeats_nothing() -> None:
    """S2, S7: whatever was read ahead and not delivered comes again to the one who comes back."""
    stream = await new_stream(MemoryLog())
    published = await stream.append(*map(said, range(10)))
    got: list[Event] = []
    cursor = 0
    for count in (3, 1, 0, 2):
        async with stream.subscribe(cursor) as events:
            got += await take(events, count)
        assert events.closed == Closed("its block was left", cursor + count)
        cursor = events.closed.cursor
    assert tuple(got) == published[:6]


async def test_a_reader_cancelled_at_any_point_loses_nothing() -> None:
    """A pull that is cancelled, again and again, delivers the same as one that is not."""
    stream = await new_stream(MemoryLog())
    published = await stream.append(*map(said, range(5)))
    got: list[Event] = []
    async with stream.subscribe() as events:
        while len(got) < 5:
            with trio.CancelScope() as scope:
                scope.cancel()
                got.append(await anext(events))
            if scope.cancelled_caught:
                got.append(await anext(events))
        with trio.CancelScope() as scope:
            scope.cancel()
            await anext(events)
        assert scope.cancelled_caught
        assert tuple(got) == published
        later = await stream.append(said(6))
        assert tuple(await available(events)) == later


async def test_iteration_after_the_block_was_left_ends_at_once() -> None:
    """A task that still holds the subscription is let go, with the cursor that `closed` tells."""
    stream = await new_stream(MemoryLog())
    await stream.append(*map(said, range(3)))
    async with trio.open_nursery() as nursery:
        async with stream.subscribe() as events:
            await anext(events)
        with pytest.raises(StopAsyncIteration):
            await anext(events)
        assert events.closed == Closed("its block was left", 1)
        async with stream.subscribe(3) as waiting:

            async def run_out() -> None:
                assert [event async for event in waiting] == []

            nursery.start_soon(run_out)
            await trio.testing.wait_all_tasks_blocked()
    assert waiting.closed == Closed("its block was left", 3)


async def test_two_tasks_cannot_pull_one_subscription() -> None:
    """Each event would go to one of them only, which neither could tell; so the second is refused, by name."""
    stream = await new_stream(MemoryLog())
    async with stream.subscribe() as events, trio.open_nursery() as nursery:
        nursery.start_soon(anext, events)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await anext(events)
        await stream.append(said(1))


async def test_the_end_of_the_readers_delivers_everything_on_the_log_first() -> None:
    """S4: a reader that was full when its stream was closed still gets what stands, then the reason and its cursor."""
    stream = await new_stream(MemoryLog(), SilentBus())
    async with stream.subscribe() as events:
        published = await stream.append(*map(said, range(2 * DEFAULT_READ_LIMIT)), Event(Kind.CONVERGED))
        stream.readers.end_all("closing time")
        assert tuple([event async for event in events]) == published
        assert events.closed == Closed("closing time", len(published))
    async with stream.subscribe(len(published) - 1) as late:
        assert [event.kind async for event in late] == [Kind.CONVERGED]
        assert late.closed == Closed("closing time", len(published))


async def test_a_bus_that_ends_ends_readers_without_a_floor() -> None:
    """Nothing would ever wake them again; everything on the log by then is delivered first."""
    bus = MemoryBus()
    stream = await new_stream(MemoryLog(), bus, floor=False)
    async with stream.subscribe() as events:
        published = await stream.append(said(1))
        bus.close()
        assert tuple([event async for event in events]) == published
        assert events.closed == Closed("the bus ended and there is no poll floor", 1)
    async with stream.subscribe() as late:
        assert tuple([event async for event in late]) == published


async def test_a_bus_that_ends_leaves_readers_with_a_floor_going() -> None:
    """The tail carries them on with what the stream's own writer appends, and the floor with what it does not know of."""
    bus, log = MemoryBus(), MemoryLog()
    stream = await new_stream(log, bus)
    async with stream.subscribe() as events:
        bus.close()
        async with collected(events) as found:
            published = await stream.append(said(1))
            await trio.testing.wait_all_tasks_blocked()
            assert tuple(found) == published
            await (await new_stream(log)).append(said(2))
            await trio.testing.wait_all_tasks_blocked()
            assert tuple(found) == published
            stream.readers.check(1)
            await trio.testing.wait_all_tasks_blocked()
            assert tuple(found) == published, "the log holds no more than the readers were told of"
            stream.readers.check(2)
            await trio.testing.wait_all_tasks_blocked()
            assert [event.text for event in found] == ["1", "2"]
        assert events.closed is None


async def test_a_closed_log_closes_a_reader_with_reason_and_cursor() -> None:
    """S3: not a silent gap: the reader is told, and comes back at its cursor once the log is open again."""
    log = FaultLog(MemoryLog())
    stream = await new_stream(log)
    await stream.append(said(1))
    async with stream.subscribe() as events:
        await anext(events)
        log.closed = True
        stream.readers.tick()
        with pytest.raises(StopAsyncIteration):
            await anext(events)
        assert events.closed == Closed("the log was closed", 1)
    log.reopen()
    await stream.append(said(2))
    async with stream.subscribe(1) as again:
        assert [event.text for event in await available(again)] == ["2"]


async def test_a_row_that_is_no_event_fails_only_the_read_that_reaches_it() -> None:
    """What stands before it is delivered once, and each further read says again what is wrong."""
    log = MemoryLog()
    stream = await new_stream(log)
    published = await stream.append(said(1), said(2))
    await log.append([Entry(RUN, 2, (b"not an event",))])
    async with stream.subscribe() as events:
        assert tuple(await take(events, 2)) == published
        for _ in range(2):
            with pytest.raises(VerificationError):
                await anext(events)
        assert events.cursor == 2


class Counting(FaultLog):
    """Counts the reads.

    Attributes:
        reads: How many there were.
    """

    def __init__(self) -> None:
        super().__init__(MemoryLog())
        self.reads = 0

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        self.reads += 1
        return await super().read(stream, after_seq, limit)


async def test_many_wakes_are_one_read() -> None:
    """A burst of wakes costs a reader in another process one look at the log."""
    log = Counting()
    stream = await new_stream(log)
    readers = Readers(has_floor=True)
    async with readers.subscribe(log, MemoryBus(), RUN, 0) as events:
        await available(events)
        log.reads = 0
        for number in range(20):
            await stream.append(said(number))
        for _ in range(20):
            events.wake()
        assert len(await available(events)) == 20
        assert log.reads == 2, "one that finds the events, one that finds no more"


async def test_readers_that_keep_up_share_what_was_decoded_once_and_never_read_the_log() -> None:
    """The hot path: the very same events reach the writer's caller and every reader, from memory."""
    log = Counting()
    stream = await new_stream(log)
    async with stream.subscribe() as one, stream.subscribe() as other:
        assert await available(one) == await available(other) == []
        log.reads = 0
        for number in range(50):
            (event,) = await stream.append(said(number))
            assert (await anext(one)) is event
            assert (await other.next_batch())[0] is event
        assert log.reads == 0


async def test_a_reader_that_fell_out_of_the_window_reads_the_log_and_comes_back() -> None:
    """S3: it is slowed, and misses nothing: what the window lost comes from the log, then the tail serves it again."""
    log = Counting()
    stream = await new_stream(log)
    async with stream.subscribe() as slow, stream.subscribe() as quick:
        published = [*await stream.append(said(0))]
        assert await anext(slow) == published[0]
        for number in range(WINDOW_EVENTS + 7):
            published += await stream.append(said(number))
            await quick.next_batch()
        log.reads = 0
        assert [published[0], *await available(slow)] == published
        assert 0 < log.reads <= 2 + len(published) // DEFAULT_READ_LIMIT
        log.reads = 0
        published += await stream.append(said(-1))
        assert await available(slow) == published[-1:]
        assert log.reads == 0
        assert slow.cursor == len(published)


async def test_batches_hold_all_that_is_at_hand_and_share_the_cursor_with_single_events() -> None:
    """Each batch is as long as it can be; an event is in one of them or was taken alone, never both."""
    stream = await new_stream(MemoryLog())
    published = await stream.append(*map(said, range(5)))
    async with stream.subscribe() as events:
        assert await anext(events) == published[0]
        assert await events.next_batch() == published[1:]
        later = [await stream.append(said(number), said(-number)) for number in range(3)]
        assert await events.next_batch() == sum(later, ())
        assert events.cursor == 11
        await stream.append(said(7))
        stream.readers.end_all("closing time")
        assert [[event.text for event in batch] async for batch in events.batches()] == [["7"]]
        assert await events.next_batch() == ()
        assert events.closed == Closed("closing time", 12)


@pytest.mark.parametrize("as_batches", [True, False])
async def test_a_reader_with_everything_at_hand_lets_others_run(*, as_batches: bool) -> None:
    """A checkpoint comes with each batch: an endless supply starves nobody, and a cancelled reader ends."""
    stream = await new_stream(MemoryLog())
    async with stream.subscribe() as events:
        await available(events)
        for _ in range(3):
            await stream.append(said(1))
            with trio.CancelScope() as scope:
                scope.cancel()
                await (events.next_batch() if as_batches else anext(events))
            assert scope.cancelled_caught
        assert events.cursor == 0
        assert len(await available(events)) == 3


async def test_a_thousand_readers_go_on_beside_one_that_is_stuck() -> None:
    """S8: the stuck one holds nothing but its own cursor; the writer and all others never notice."""
    stream = await new_stream(MemoryLog())
    got = [0] * 1000

    async def reader(number: int) -> None:
        async with stream.subscribe() as events:
            if number == 0:
                await anext(events)
                await trio.sleep_forever()
            async for _ in events:
                got[number] += 1

    async with trio.open_nursery() as nursery:
        for number in range(1000):
            nursery.start_soon(reader, number)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(10):
            await stream.append(said(number))
        await trio.testing.wait_all_tasks_blocked()
        assert got == [0, *[10] * 999]
        nursery.cancel_scope.cancel()
    assert len(stream.readers) == 0


async def test_a_failing_append_reaches_no_reader() -> None:
    """S6: an event that was not made durable is never seen, not even by a reader that was woken meanwhile."""
    log = FaultLog(MemoryLog(), at={1}, fault=Fault.FULL)
    stream = await new_stream(log)
    async with stream.subscribe() as events:
        with pytest.raises(Exception, match="no room"):
            await stream.append(said(1))
        stream.readers.tick()
        assert await available(events) == []
