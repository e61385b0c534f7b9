"""The window of the newest events: whatever a cursor asks for, it is exact or refused, and the window stays bounded (S8)."""

from __future__ import annotations

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.events import Event, Kind
from affidavit.actors.tail import WINDOW_BYTES, WINDOW_EVENTS, Tail


def batch(first: int, count: int) -> tuple[Event, ...]:
    """Return that many events from a seq on."""
    return tuple(Event(Kind.ASSISTANT, seq=first + offset) for offset in range(count))


@given(
    tip=st.integers(0, 3),
    appends=st.lists(st.tuples(st.integers(1, 400), st.integers(0, 1 << 19), st.booleans()), max_size=12),
    cursor=st.integers(0, 2500),
)
async def test_an_answer_is_exactly_what_follows_the_cursor_or_none(
    tip: int, appends: list[tuple[int, int, bool]], cursor: int
) -> None:
    """Never a gap, never an event twice: the log is asked instead."""
    tail, start = Tail(tip), tip
    for count, size, keep in appends:
        tail.publish(batch(tip + 1, count), size, keep=keep)
        tip += count
    found = tail.after(cursor)
    if cursor >= tip:
        assert found == ()
    elif found is None:
        assert cursor < tip - len(tail)
    else:
        assert cursor >= tip - len(tail) >= start
        assert [event.seq for event in found] == list(range(cursor + 1, tip + 1))


async def test_the_window_is_bounded_in_events_and_in_bytes() -> None:
    """Old appends go first; the newest stays, however long it is."""
    tail = Tail(0)
    for number in range(3 * WINDOW_EVENTS):
        tail.publish(batch(number + 1, 1), 1, keep=True)
    assert len(tail) == WINDOW_EVENTS
    tail.publish(batch(tail.tip + 1, 2), WINDOW_BYTES + 1, keep=True)
    assert len(tail) == 2
    tail.publish(batch(tail.tip + 1, 1), WINDOW_BYTES // 2, keep=True)
    tail.publish(batch(tail.tip + 1, 1), WINDOW_BYTES // 2, keep=True)
    assert len(tail) == 2


async def test_nothing_is_kept_for_nobody() -> None:
    """A stream that nobody reads costs no memory, and its next reader begins with the log."""
    tail = Tail(0)
    tail.publish(batch(1, 5), 100, keep=False)
    assert (len(tail), tail.tip, tail.after(4), tail.after(5)) == (0, 5, None, ())
    tail.publish(batch(6, 1), 100, keep=True)
    tail.publish(batch(7, 1), 100, keep=False)
    assert (len(tail), tail.after(6)) == (0, None)


async def test_all_who_wait_are_woken_by_one_publication() -> None:
    """Each waits on the event that stood when it looked."""
    tail, woken = Tail(0), []

    async def wait(number: int) -> None:
        await tail.grown.wait()
        woken.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(wait, number)
        await trio.testing.wait_all_tasks_blocked()
        tail.publish(batch(1, 1), 1, keep=False)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(woken) == list(range(10))
        assert not tail.grown.is_set()
