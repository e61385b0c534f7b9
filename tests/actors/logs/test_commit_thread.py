"""The thread in which a store's blocking work runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import trio
import trio.testing

from affidavit.actors.logs import commit_thread
from affidavit.actors.logs.commit_thread import CommitThread


@contextmanager
def _thread() -> Iterator[CommitThread]:
    thread = CommitThread("test", 60, lambda: pytest.fail("a job was called overdue"), lambda: None)
    try:
        yield thread
    finally:
        thread.finish(lambda: None)
        thread.join(60)


async def test_jobs_run_in_order_and_their_calls_come_back_in_order() -> None:
    """One job after another, in the thread; what each posts is called in the loop, in the same order."""
    seen: list[tuple[int, bool]] = []
    loop = threading.get_ident()
    finished = trio.Event()

    def job(number: int) -> None:
        in_thread = threading.get_ident() != loop
        thread.post(lambda: seen.append((number, in_thread and threading.get_ident() == loop)))

    with _thread() as thread:
        for number in range(10):
            thread.submit(partial(job, number))
        thread.submit(lambda: thread.post(finished.set))
        await finished.wait()
    assert seen == [(number, True) for number in range(10)]


async def test_a_loop_that_will_not_sleep_waits_for_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a turn without a pause, the loop stands still until the job is done, or its slice is over."""
    done = threading.Event()

    def job() -> None:
        sum(range(200_000))
        done.set()

    monkeypatch.setattr(commit_thread, "GIL_SLICE", 60)
    with _thread() as thread:
        for _ in range(5):
            done.clear()
            thread.submit(job)
            # A signal left by a job that nobody stood still for may end the first of the waits early.
            thread.before_io_wait(0)
            thread.before_io_wait(0)
            assert done.is_set()


async def test_a_loop_that_will_sleep_is_not_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop about to sleep gives the interpreter away by itself, and one without a job has nothing to wait for."""
    monkeypatch.setattr(commit_thread, "GIL_SLICE", 60)
    gate = threading.Event()

    def job() -> None:
        gate.wait(60)

    with _thread() as thread:
        thread.before_io_wait(0)
        thread.submit(job)
        thread.before_io_wait(1)
        gate.set()


async def test_posting_to_a_loop_that_has_ended_does_nothing() -> None:
    """A job that outlives its loop finishes quietly."""
    made: list[CommitThread] = []

    async def inner() -> None:
        made.append(CommitThread("test", 60, lambda: None, lambda: None))

    await trio.to_thread.run_sync(trio.run, inner)
    (thread,) = made
    done = threading.Event()

    def job() -> None:
        thread.post(lambda: pytest.fail("called in a loop that has ended"))
        done.set()

    thread.submit(job)
    await trio.to_thread.run_sync(done.wait, 60)
    assert done.is_set()
    thread._jobs.put(None)
    thread.join(60)


async def test_what_one_turn_asks_for_is_begun_once_when_its_tasks_have_run() -> None:
    """Tasks that ask in the same turn are served by one call at its end, even of a loop that then sleeps."""
    asked: list[int] = []
    served: list[int] = []
    thread = CommitThread("test", 60, lambda: None, lambda: served.append(len(asked)))
    try:

        async def ask(number: int) -> None:
            asked.append(number)
            thread.at_end_of_turn()
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(ask, number)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert served == [5]
    finally:
        thread.finish(lambda: None)
        thread.join(60)


async def test_those_that_a_turn_has_woken_may_join() -> None:
    """With `next_turn` the call waits until the tasks that this turn woke have run; nobody being woken, it comes at once."""
    served: list[bool] = []
    ran = False
    thread = CommitThread("test", 60, lambda: None, lambda: served.append(ran))
    woken = trio.Event()
    try:

        async def sleeper() -> None:
            nonlocal ran
            await woken.wait()
            ran = True

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeper)
            await trio.testing.wait_all_tasks_blocked()
            woken.set()
            thread.at_end_of_turn(next_turn=True)
        await trio.testing.wait_all_tasks_blocked()
        thread.at_end_of_turn(next_turn=True)
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert served == [True, True]
    finally:
        thread.finish(lambda: None)
        thread.join(60)


async def test_both_threads_have_ended_once_it_is_joined() -> None:
    """E1: neither the thread nor the one that watches it in real time outlives the store."""
    before = threading.active_count()
    thread = CommitThread("test", 60, lambda: None, lambda: None)
    assert threading.active_count() == before + 2
    thread.finish(lambda: None)
    thread.join(60)
    assert threading.active_count() == before
