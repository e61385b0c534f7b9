"""One stream and its one writer: dense seqs, all-or-none appends, failures that leave no trace (S1, S5, S6, S10, S12)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus
from affidavit.actors.codec import decode
from affidavit.actors.errors import LogError, LogFull, LogLocked, LogStateUnknown, WriterFenced
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.stream import Committed, Stream
from affidavit.actors.text import clean
from tests import strategies
from tests.actors.fakes import BrokenBus, DoublingBus, Fault, FaultLog, JumpingClock, SilentBus
from tests.actors.runtimes import RUN, available, collected, kinds, new_stream


def said(text: str) -> Event:
    """Return an event that carries one text."""
    return Event(Kind.ASSISTANT, text=text)


async def texts(log: MemoryLog | FaultLog) -> list[str]:
    """Return the texts on the stream, having checked that its seqs are dense."""
    await kinds(log)
    return [event.text for event in await history(log, RUN)]


async def test_events_get_dense_seqs_the_clocks_time_and_the_actor_of_their_kind() -> None:
    """S1: seq counts from 1 without a gap, whatever the appends were cut into; time and actor are the stream's to say."""
    log, clock = MemoryLog(), JumpingClock(7)
    stream = Stream(log, MemoryBus(), RUN, clock)
    first = await stream.append(said("a"), Event(Kind.USER_MESSAGE, text="b"))
    clock.now = 8
    second = await stream.append(Event(Kind.STALLED, err="c", seq=99, time=99, actor="human"))
    assert [(e.seq, e.time, e.actor) for e in first + second] == [
        (1, 7, "agent"),
        (2, 7, "human"),
        (3, 8, "system"),
    ]
    assert await history(log, RUN) == first + second
    assert stream.tip == 3


async def test_an_append_of_nothing_writes_nothing() -> None:
    """Neither an empty call nor a `prepare` that leaves nothing reaches the log."""
    log = FaultLog(MemoryLog())
    stream = await new_stream(log)
    assert await stream.append() == ()
    assert await stream.append(said("no"), prepare=lambda _events: ()) == ()
    assert log.appends == 0


async def test_prepare_runs_when_it_is_the_appends_turn() -> None:
    """Two appends at once: the second one's `prepare` sees what the first one's observers saw, never the state before it."""
    log = MemoryLog()
    stream = await new_stream(log)
    seen: list[int] = []
    told: list[Committed] = []
    stream.observe(told.append)

    def prepare(events: tuple[Event, ...]) -> tuple[Event, ...]:
        seen.append(len(told))
        return events

    async with trio.open_nursery() as nursery:
        for text in "abc":
            nursery.start_soon(partial(stream.append, said(text), prepare=prepare))
    assert seen == [0, 1, 2]


async def test_a_refusal_by_prepare_leaves_no_trace() -> None:
    """What `prepare` raises comes out as itself, nothing is written, and the next append goes on."""
    log = MemoryLog()
    stream = await new_stream(log)

    def refuse(_events: tuple[Event, ...]) -> tuple[Event, ...]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await stream.append(said("a"), prepare=refuse)
    await stream.append(said("b"))
    assert await texts(log) == ["b"]


@pytest.mark.parametrize("fault", [Fault.FULL, Fault.LOCKED])
@pytest.mark.parametrize("every", [1, 2, 3])
async def test_every_kth_append_failing_leaves_the_survivors_dense(fault: Fault, every: int) -> None:
    """S6: a failed append never existed: its seqs go to the next, readers and observers never hear of it."""
    log = FaultLog(MemoryLog(), every=every, fault=fault)
    stream = await new_stream(log)
    told: list[str] = []
    stream.observe(lambda committed: told.extend(event.text for event in committed.events))
    expected: list[str] = []
    async with stream.subscribe() as events:
        for number in range(1, 13):
            pair = (said(f"{number}a"), said(f"{number}b"))
            if number % every == 0:
                with pytest.raises((LogFull, LogLocked)):
                    await stream.append(*pair)
            else:
                await stream.append(*pair)
                expected += [f"{number}a", f"{number}b"]
        assert [event.text for event in await available(events)] == expected
    assert await texts(log) == expected == told


async def test_after_a_write_of_unknown_outcome_the_old_writer_is_fenced_and_the_new_one_goes_on() -> None:
    """S1, S6: whether the row was written or not, the next owner finds the truth, and the old one writes no more."""
    for fault, expected in ((Fault.WRITTEN, ["a", "b", "c"]), (Fault.LOST, ["a", "c"])):
        log = FaultLog(MemoryLog())
        old = await new_stream(log)
        await old.append(said("a"))
        log.fail_next(fault)
        with pytest.raises(LogStateUnknown):
            await old.append(said("b"))
        log.reopen()
        new = await new_stream(log)
        await new.append(said("c"))
        with pytest.raises(WriterFenced):
            await old.append(said("never"))
        assert await texts(log) == expected


async def test_a_second_writer_is_fenced_and_says_so() -> None:
    """A writer whose tip was moved by another gets WriterFenced, writes nothing and tells nobody."""
    log = MemoryLog()
    one, two = await new_stream(log), await new_stream(log)
    told: list[Committed] = []
    two.observe(told.append)
    await one.append(said("mine"))
    with pytest.raises(WriterFenced) as caught:
        await two.append(said("theirs"))
    assert (caught.value.stream, caught.value.expected, caught.value.actual) == (RUN, 0, 1)
    assert await texts(log) == ["mine"]
    assert told == []
    assert two.tip == 0


async def test_a_cancelled_append_was_not_appended() -> None:
    """S10: cancelled while it waits for its turn or for the log, an append leaves nothing and the stream goes on."""
    log = MemoryLog()
    stream = await new_stream(log)
    with trio.CancelScope() as scope:
        scope.cancel()
        await stream.append(said("never"))
    assert scope.cancelled_caught
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stream.append(said("a")))
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(0) as waiting:
            await stream.append(said("never either"))
        assert waiting.cancelled_caught
    with trio.testing.assert_checkpoints():
        await stream.append(said("b"))
    assert await texts(log) == ["a", "b"]


@pytest.mark.parametrize(
    "bus", [MemoryBus(), SilentBus(), DoublingBus(), BrokenBus()], ids=lambda b: type(b).__name__
)
async def test_any_bus_leaves_delivery_correct(bus: Bus) -> None:
    """S5: a bus that delivers nothing, twice or fails each publish costs the floor's latency and nothing else."""
    log = MemoryLog()
    stream = await new_stream(log, bus)
    async with stream.subscribe() as events, collected(events) as found:
        published = [*await stream.append(said("a"), said("b")), *await stream.append(said("c"))]
        await trio.testing.wait_all_tasks_blocked()
        assert found == published, "the writer's own process needs no bus"
        stream.readers.tick()
        await trio.testing.wait_all_tasks_blocked()
        assert found == published


async def test_a_memory_bus_alone_wakes_a_reader_without_any_floor() -> None:
    """A wake that is delivered is enough: no tick is needed for the tail."""
    stream = await new_stream(MemoryLog(), floor=False)
    async with stream.subscribe() as events, collected(events) as found:
        published = await stream.append(said("a"))
        await trio.testing.wait_all_tasks_blocked()
        assert tuple(found) == published


@given(times=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8))
async def test_a_clock_that_jumps_changes_no_order(times: list[int]) -> None:
    """S12: whatever the wall clock says, seqs are dense, readers get everything in order, and the claimed time is kept."""
    clock = JumpingClock()
    stream = Stream(MemoryLog(), MemoryBus(), RUN, clock, has_floor=True)
    async with stream.subscribe() as events:
        for now in times:
            clock.now = now
            await stream.append(said("tick"))
        assert [(event.seq, event.time) for event in await available(events)] == list(enumerate(times, 1))


@given(event=strategies.events())
async def test_whatever_a_program_may_report_comes_back_as_it_was(event: Event) -> None:
    """Every field survives the log, and the returned event is what readers see."""
    log = MemoryLog()
    (recorded,) = await (await new_stream(log)).append(event)
    assert (recorded,) == await history(log, RUN)
    assert recorded == replace(event, seq=1, time=recorded.time, actor=recorded.actor)


@given(event=strategies.garbage_events(), broken=strategies.BROKEN_TEXTS, number=st.integers())
async def test_no_text_or_number_from_outside_breaks_the_stream(
    event: Event, broken: str, number: int
) -> None:
    """Lone surrogates and numbers without a canonical form are repaired and marked; never an error, never a gap."""
    log = MemoryLog()
    stream = await new_stream(log)
    detail = {"note": broken, "size": 0, "deep": {"x": [number, broken, 1.5]}, "many": number}
    wild = replace(
        event, kind="provenance.declared", result=broken, reason=broken, principal=broken, detail=detail
    )
    (recorded,) = await stream.append(wild)
    assert recorded.detail["replaced"] is True
    assert recorded.result == clean(broken)
    (row,) = await log.read(RUN)
    assert decode(row.data) == recorded
    assert await texts(log) == [recorded.text]


async def test_an_error_of_the_reporting_program_is_raised_and_writes_nothing() -> None:
    """A kind or detail key that may not be used is the caller's bug: ValueError, and the stream goes on."""
    log = MemoryLog()
    stream = await new_stream(log)
    for wrong in (Event("dispatch.start"), Event(""), Event(Kind.ASSISTANT, text="x", detail={"text": "y"})):
        with pytest.raises(ValueError, match=r"kind|payload keys"):
            await stream.append(said("with it"), wrong)
    await stream.append(said("a"))
    assert await texts(log) == ["a"]


async def test_the_index_follows_terminal_events_and_seals() -> None:
    """The log's index row names the standing terminal event, 0 once a user's message reopened the run, and the seal's size."""
    log = MemoryLog()
    stream = await new_stream(log)

    async def index() -> tuple[int, int]:
        info = await log.info(RUN)
        assert info is not None
        return info.terminal_seq, info.sealed_size

    await stream.append(said("a"))
    assert await index() == (0, 0)
    await stream.append(said("b"), Event(Kind.CONVERGED, text="done"))
    assert await index() == (3, 0)
    await stream.append(Event(Kind.RECORD_SEALED, detail={"size": 3}))
    assert await index() == (3, 3)
    await stream.append(Event(Kind.USER_MESSAGE, text="more"))
    assert await index() == (0, 3)


async def test_a_failed_append_of_any_kind_is_a_log_error() -> None:
    """Whoever stops a session on a failed append needs to know one base class only."""
    for fault in Fault:
        log = FaultLog(MemoryLog(), at={1}, fault=fault)
        with pytest.raises(LogError):
            await (await new_stream(log)).append(said("a"))
