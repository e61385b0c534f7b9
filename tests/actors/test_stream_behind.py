"""What a stream records behind its writer's back: its place, when it is told of, and what follows if it is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
import trio
import trio.testing

from affidavit.actors.behind import MOST_UNDER_WAY
from affidavit.actors.errors import (
    GuardLost,
    LogClosed,
    LogError,
    LogFull,
    LogLocked,
    LogStateUnknown,
    WriterFenced,
)
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Guard, Log, Told
from affidavit.actors.stream import Committed, Stream
from tests.actors.fakes import Fault, HeldLog, LateLog
from tests.actors.mission_kit import KeptLog
from tests.actors.runtimes import RUN, new_stream


def said(text: str) -> Event:
    """Return an event that carries one text."""
    return Event(Kind.ASSISTANT, text=text)


def as_given(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Leave what is to be recorded as it is."""
    return events


class Writer:
    """A stream over a log that takes its time, and what its observer and its owner hear.

    Attributes:
        told: The texts that were told of, an append each.
        failures: What the owner was told could not be made durable.
    """

    def __init__(self, log: Log, stream: Stream) -> None:
        self.log, self.stream = log, stream
        self.told: list[list[str]] = []
        self.failures: list[Exception] = []
        self.observe: Callable[[Committed], None] = self._note
        stream.observe(self._hear)

    def _hear(self, committed: Committed) -> None:
        self.observe(committed)

    def _note(self, committed: Committed) -> None:
        self.told.append([event.text for event in committed.events])

    def behind(self, *texts: str) -> tuple[Event, ...] | None:
        """Record texts behind the caller's back."""
        return self.stream.append_behind(*map(said, texts), prepare=as_given, failed=self.failures.append)

    async def texts(self) -> list[str]:
        """Return what stands, having checked that its seqs are dense."""
        events = await history(self.log, RUN)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        return [event.text for event in events]


async def writer(log: Log | None = None) -> Writer:
    """A writer on an empty stream."""
    log = log or LateLog(MemoryLog())
    return Writer(log, await new_stream(log))


async def test_its_place_is_given_at_once_and_it_is_told_of_once_it_is_durable() -> None:
    """The writer gets the events with their seqs; the tip, observers and readers come to know of them with the sync."""
    w = await writer()
    recorded = w.behind("a", "b")
    assert recorded is not None
    assert [event.seq for event in recorded] == [1, 2]
    assert (w.stream.tip, w.told) == (0, [])
    await w.stream.settled()
    assert (w.stream.tip, w.told) == (2, [["a", "b"]])
    assert await history(w.log, RUN) == recorded


async def test_what_comes_later_stands_behind_it_and_is_told_of_later() -> None:
    """An append of the same turn gets the seqs after it, and returns when both are durable."""
    w = await writer()
    w.behind("a")
    (later,) = await w.stream.append(said("b"), joins=True)
    assert later.seq == 2
    assert w.told == [["a"], ["b"]]
    assert await w.texts() == ["a", "b"]


@pytest.mark.parametrize("joins", [False, True])
async def test_only_who_joins_is_prepared_before_it_is_told_of(joins: bool) -> None:
    """What an append decides by may not be folded yet; whoever needs it waits."""
    w = await writer()
    seen: list[int] = []

    def prepare(events: tuple[Event, ...]) -> tuple[Event, ...]:
        seen.append(len(w.told))
        return events

    w.behind("a")
    await w.stream.append(said("b"), prepare=prepare, joins=joins)
    assert seen == [0 if joins else 1]
    assert await w.texts() == ["a", "b"]


async def test_while_somebody_is_at_an_append_nothing_is_taken() -> None:
    """Whether that append is refused is not known yet, and no place may be given out behind it."""
    w = await writer()
    given: list[object] = []

    def prepare(events: tuple[Event, ...]) -> tuple[Event, ...]:
        given.append(w.behind("no"))
        return events

    await w.stream.append(said("a"), prepare=prepare)
    assert given == [None]
    assert await w.texts() == ["a"]


@pytest.mark.parametrize("make", [MemoryLog, lambda: LateLog(MemoryLog())])
async def test_while_it_is_being_told_of_nothing_is_taken(make: Callable[[], Log]) -> None:
    """An observer that records would have its own events told of ahead of these."""
    w = await writer(make())
    given: list[object] = []
    w.observe = lambda _committed: given.append(w.behind("no"))
    w.behind("a")
    await w.stream.append(said("b"))
    assert given == [None, None]
    assert await w.texts() == ["a", "b"]
    w.observe = lambda _committed: None
    assert w.behind("c") is not None


async def test_no_more_is_taken_than_is_written_in_a_while() -> None:
    """Whoever does not wait is held up by nothing else; beyond the bound an append has to be waited for."""
    log = HeldLog(MemoryLog())
    w = await writer(log)
    log.hold()
    taken = 0
    while w.behind("more"):
        taken += 1
        assert taken <= MOST_UNDER_WAY
    assert taken == MOST_UNDER_WAY
    log.go_on()
    await w.stream.append(said("waited for"))
    assert w.behind("again")
    await w.stream.settled()
    assert len(await w.texts()) == MOST_UNDER_WAY + 2


async def test_over_a_log_that_cannot_do_that_nothing_is_taken() -> None:
    """Then an append will do; nothing has happened."""
    w = await writer(KeptLog())
    assert w.behind("no") is None
    await w.stream.append(said("a"))
    assert await w.texts() == ["a"]


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize("fault", Fault)
async def test_after_a_loss_nothing_follows(fault: Fault, joins: bool) -> None:
    """Written or not: the owner is told once, and whatever comes behind it is refused for that reason."""
    log = LateLog(MemoryLog(), at={1}, fault=fault)
    w = await writer(log)
    w.behind("lost")
    with pytest.raises(LogError):
        await w.stream.append(said("b"), joins=joins)
    wanted = {Fault.FULL: LogFull, Fault.LOCKED: LogLocked}.get(fault, LogStateUnknown)
    assert [type(failure) for failure in w.failures] == [wanted]
    log.reopen()
    for refused in (w.stream.settled, lambda: w.stream.append(said("c"))):
        with pytest.raises(LogClosed) as raised:
            await refused()
        assert raised.value.__cause__ is w.failures[0]
    with pytest.raises(LogClosed):
        w.behind("d")
    assert w.told == []
    assert await w.texts() == (["lost"] if fault is Fault.WRITTEN else [])


async def test_an_append_that_was_on_its_way_when_that_before_it_was_lost_is_told_why() -> None:
    """The log finds its place taken away from under it; nobody else has the stream."""
    log = HeldLog(MemoryLog())
    w = await writer(log)
    log.hold()
    w.behind("lost")

    async def append() -> None:
        with pytest.raises(LogClosed) as raised:
            await w.stream.append(said("b"), joins=True)
        assert isinstance(raised.value.__cause__, LogFull)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(append)
        await trio.testing.wait_all_tasks_blocked()
        log.fail_next(Fault.FULL)
        log.go_on()
    assert await w.texts() == []


async def test_of_several_losses_the_first_says_why() -> None:
    """The others are lost for no other reason than that one before them was."""
    w = await writer(LateLog(MemoryLog(), at={1}))
    w.behind("lost")
    w.behind("lost as well")
    with pytest.raises(LogClosed) as raised:
        await w.stream.settled()
    assert [type(failure) for failure in w.failures] == [LogFull, WriterFenced]
    assert raised.value.__cause__ is w.failures[0]
    assert await w.texts() == []


async def test_a_stream_that_another_writer_has_is_lost_this_way_too() -> None:
    """The compare of what was taken fails: the owner is told that it is fenced."""
    w = await writer()
    await w.log.append([Entry(RUN, 0, (b"x",))])
    w.behind("late")
    with pytest.raises(LogClosed, match="what was to be recorded before this was not"):
        await w.stream.settled()
    assert len(w.failures) == 1


async def test_a_lost_guard_takes_nothing_of_it_away_and_the_stream_goes_on() -> None:
    """An admission that came too late is refused alone; what stood before it stays, and its seq is given anew."""
    w = await writer()
    await w.log.append([Entry("inbox", 0, (b"asked",))])
    w.behind("end")
    with pytest.raises(GuardLost):
        await w.stream.append(said("admission"), guard=Guard("inbox", 0), joins=True)
    w.behind("more")
    (later,) = await w.stream.append(said("judged again"), guard=Guard("inbox", 1), joins=True)
    assert later.seq == 3
    assert await w.texts() == ["end", "more", "judged again"]


async def test_what_joins_it_and_is_cancelled_leaves_it_where_it_is() -> None:
    """Cancelled means that the append did not happen; it says nothing of what stood before."""
    w = await writer()
    with trio.CancelScope() as scope:
        scope.cancel()
        w.behind("end")
        await w.stream.append(said("no"), joins=True)
    assert scope.cancelled_caught
    await w.stream.settled()
    assert await w.texts() == ["end"]


async def test_an_observer_that_fails_is_told_to_the_owner() -> None:
    """There is no caller whom it could reach; the event stands all the same."""
    w = await writer()

    def fail(_committed: Committed) -> None:
        raise ZeroDivisionError

    w.observe = fail
    w.behind("a")
    await w.stream.settled()
    assert [type(failure) for failure in w.failures] == [ZeroDivisionError]
    assert await w.texts() == ["a"]


async def test_it_has_settled_once_the_last_of_it_is_durable() -> None:
    """Whoever waits, to judge by what stands or to tell somebody outside, waits for all that was taken by then."""
    log = HeldLog(MemoryLog())
    w = await writer(log)
    log.hold()
    w.behind("a")
    w.behind("b")
    is_settled = False

    async def settle() -> None:
        nonlocal is_settled
        await w.stream.settled()
        is_settled = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle)
        await trio.testing.wait_all_tasks_blocked()
        log.write_one()
        await trio.testing.wait_all_tasks_blocked()
        assert (w.told, is_settled) == ([["a"]], False)
        log.go_on()
    assert is_settled


async def test_nothing_at_all_is_taken_at_once() -> None:
    """It has no place, so nobody waits for it."""
    w = await writer()
    assert w.behind() == ()
    await w.stream.settled()
    await w.stream.append(said("a"))
    assert await w.texts() == ["a"]


class RefusingLog(LateLog):
    """A log that refuses what is submitted, as one does whose caller made a mistake or that was closed."""

    refusal: Exception = ValueError("malformed (chosen by the test)")

    def submit(self, entry: Entry, told: Told) -> None:
        """Refuse it; nothing is told."""
        raise self.refusal


async def test_what_the_log_refuses_at_once_has_no_place_and_nobody_waits_for_it() -> None:
    """Nothing was taken, so nothing is missing: the next event gets the seq."""
    w = await writer(RefusingLog(MemoryLog()))
    with pytest.raises(ValueError, match="malformed"):
        w.behind("no")
    await w.stream.settled()
    (recorded,) = await w.stream.append(said("a"))
    assert (recorded.seq, w.stream.tip) == (1, 1)
    assert await w.texts() == ["a"]


async def test_behind_what_a_closed_log_refuses_nothing_is_taken() -> None:
    """The caller hears of it, and so does whoever comes next, at once."""
    log = RefusingLog(MemoryLog())
    log.refusal = LogClosed("closed (chosen by the test)")
    w = await writer(log)
    with pytest.raises(LogClosed):
        w.behind("no")
    for refused in (w.stream.settled, lambda: w.stream.append(said("c"))):
        with pytest.raises(LogClosed):
            await refused()
    assert await w.texts() == []


async def test_many_are_taken_in_a_row() -> None:
    """Each has its place behind the one before, and all are told of in order."""
    w = await writer()
    for text in "abc":
        w.behind(text)
    await w.stream.settled()
    assert w.told == [["a"], ["b"], ["c"]]
    assert await w.texts() == ["a", "b", "c"]


@pytest.mark.parametrize("is_behind", [False, True])
def test_an_interrupt_from_the_keyboard_leaves_nothing_half_done(is_behind: bool) -> None:
    """Ctrl-C in the middle of a record comes out behind it: the tip, the observers and the log agree."""
    told: list[Committed] = []

    async def main() -> None:
        log = MemoryLog()
        stream = await new_stream(log)

        def interrupt_once(committed: Committed) -> None:
            if not told:
                signal.raise_signal(signal.SIGINT)
            told.append(committed)

        async def record() -> None:
            if is_behind:
                stream.append_behind(said("a"), prepare=as_given, failed=lambda _error: None)
            else:
                await stream.append(said("a"))
            await trio.lowlevel.checkpoint()

        stream.observe(interrupt_once)
        with pytest.raises(KeyboardInterrupt):
            await record()
        await stream.append(said("b"))
        assert stream.tip == 2
        assert [event.text for event in await history(log, RUN)] == ["a", "b"]

    trio.run(main)
    assert [committed.events[0].text for committed in told] == ["a", "b"]
