"""What can wait is done when the loop would sleep, and not before."""

from __future__ import annotations

import threading

import trio

from affidavit.actors.leisure import offer

_LONG = 60.0  # seconds; only a failing test waits for so long


async def slept_until(sign: threading.Event) -> None:
    """Let the loop have nothing to do until there is a sign."""
    assert await trio.to_thread.run_sync(sign.wait, _LONG)


async def test_an_offer_is_done_when_the_loop_sleeps_and_not_while_tasks_run() -> None:
    """Turns of a loop with something to run leave it aside; the first that sleeps does it, once."""
    done: list[str] = []
    first, second = threading.Event(), threading.Event()
    offer(first.set)
    offer(lambda: done.append("once"))
    for _ in range(3):
        await trio.lowlevel.checkpoint()
        assert done == []
    await slept_until(first)
    assert done == ["once"]
    offer(second.set)
    await slept_until(second)
    assert done == ["once"]


async def test_what_an_offer_raises_is_left_aside() -> None:
    """Those that were offered before and after it are done all the same, the newest first."""
    done: list[str] = []
    last = threading.Event()

    def broken() -> None:
        raise ValueError("no result")

    offer(last.set)
    offer(lambda: done.append("before"))
    offer(broken)
    offer(lambda: done.append("after"))
    await slept_until(last)
    assert done == ["after", "before"]


async def test_of_many_offers_the_newest_are_kept() -> None:
    """A loop that never sleeps is not filled by them."""
    done: list[int] = []
    last = threading.Event()
    offer(lambda: done.append(-1))
    offer(last.set)
    for number in range(63):
        offer(lambda number=number: done.append(number))  # type: ignore[misc]  # bound now
    await slept_until(last)
    assert done == list(range(62, -1, -1))
