"""The host's one timer: it visits who waits for something, leaves alone who does not, and nobody can hold it up (E2, E3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.errors import RunParked
from affidavit.actors.goal import GoalKey, GoalStatus, Phase
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.session import open_session
from affidavit.actors.timer import DEFAULT_POLL, Timer, open_timer
from tests.actors.runtimes import RUN, SPEC, FakeRuntime, phase
from tests.actors.session_kit import tasks


@pytest.fixture
async def timer() -> AsyncIterator[Timer]:
    """A timer with the intervals of the contract."""
    async with open_timer(MemoryLog(), SystemClock()) as timer:
        yield timer


async def test_each_member_is_visited_at_every_beat_until_it_leaves(
    timer: Timer, autojump_clock: MockClock
) -> None:
    """Whenever it enrolled; one that leaves during its own visit goes on to that visit's end."""
    seen: list[str] = []

    async def visit() -> None:
        seen.append("a")

    async def once() -> None:
        timer.goals.leave("once")
        await trio.lowlevel.checkpoint()
        seen.append("once")

    timer.goals.enrol("a", visit)
    timer.goals.enrol("once", once)
    await trio.sleep(3.5 * DEFAULT_POLL)
    assert seen == ["a", "once", "a", "a"]
    timer.goals.leave("a")
    await trio.sleep(1)
    assert len(seen) == 4
    timer.goals.enrol("a", visit)
    await trio.sleep(1.5 * DEFAULT_POLL)
    assert len(seen) == 5


async def test_a_visit_that_hangs_delays_nobody_and_ends_when_its_member_is_dropped(
    timer: Timer, autojump_clock: MockClock
) -> None:
    """E2: those behind it in its round are visited by the next one, and those after its cancellation too."""
    seen: list[str] = []
    hung = 0

    async def hang() -> None:
        nonlocal hung
        hung += 1
        await trio.sleep_forever()

    async def visit() -> None:
        seen.append("b")

    timer.goals.enrol("a", hang)
    timer.goals.enrol("b", visit)
    before = tasks()
    await trio.sleep(10.5 * DEFAULT_POLL)
    assert hung == 1
    assert len(seen) >= 8
    assert tasks() <= before + 2, "rounds do not pile up behind the visit that hangs"
    timer.goals.drop("a")
    await trio.testing.wait_all_tasks_blocked()
    count = len(seen)
    await trio.sleep(2 * DEFAULT_POLL)
    assert len(seen) >= count + 1


async def test_a_visit_that_is_cancelled_does_not_take_its_round_with_it(
    timer: Timer, autojump_clock: MockClock
) -> None:
    """Those behind it are visited before the next beat, which for the floor may come only after the next change."""
    seen: list[str] = []

    async def visit() -> None:
        seen.append("b")

    timer.goals.enrol("a", trio.sleep_forever)
    timer.goals.enrol("b", visit)
    await trio.sleep(1.2 * DEFAULT_POLL)
    assert seen == []
    timer.goals.drop("a")
    await trio.sleep(0.5 * DEFAULT_POLL)
    assert seen == ["b"]


async def test_a_round_that_is_slow_and_not_stuck_comes_to_everybody(
    timer: Timer, autojump_clock: MockClock
) -> None:
    """It takes many beats, and no other is begun beside it that would start again with the first."""
    seen: list[int] = []

    def slow(number: int) -> Callable[[], Awaitable[None]]:
        async def visit() -> None:
            await trio.sleep(0.9 * DEFAULT_POLL)
            seen.append(number)

        return visit

    for number in range(10):
        timer.goals.enrol(number, slow(number))
    await trio.sleep(20 * DEFAULT_POLL)
    assert seen[:15] == [*range(10), *range(5)]


async def test_an_idle_session_has_no_task_and_no_timer(timer: Timer, autojump_clock: MockClock) -> None:
    """Nor has one whose run has ended and whose readers have left, except the mailbox that was used."""
    before = tasks()
    async with open_session(MemoryLog(), MemoryBus(), id=RUN, timer=timer) as session:
        assert tasks() == before
        async with session.subscribe():
            assert len(timer.floor) == 1
        assert (len(timer.floor), len(timer.goals)) == (0, 0)
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        assert (len(timer.floor), len(timer.goals)) == (1, 1)
        runtime.converge()
        assert await session.wait() == "all settled"
        await trio.sleep(1)
        assert (len(timer.floor), len(timer.goals)) == (0, 0)
    async with open_session(MemoryLog(), MemoryBus(), id=RUN) as session:
        idle = tasks()
        async with session.subscribe():
            assert tasks() == idle + 1


class Telling(FakeRuntime):  # type: ignore[misc]  # a test may add to what is final
    """A runtime that says when there is something to see.

    Attributes:
        changed: Says so.
        asked: How often its status was asked.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changed: Callable[[], None] | None = None
        self.asked = 0

    def tell(self, key: GoalKey, changed: Callable[[], None]) -> None:
        self.changed = changed

    async def status(self, key: GoalKey) -> GoalStatus:
        self.asked += 1
        return await super().status(key)


async def test_a_goal_whose_runtime_tells_is_not_asked_until_it_has_told(
    timer: Timer, autojump_clock: MockClock
) -> None:
    """E3: a thousand goals that wait cost nothing; the end is found at the next beat."""
    runtime = Telling()
    async with open_session(MemoryLog(), MemoryBus(), id=RUN, timer=timer) as session:
        await session.submit(runtime, SPEC)
        await trio.sleep(5)
        assert (runtime.asked, len(timer.goals)) == (0, 0)
        assert runtime.changed is not None
        runtime.converge()
        runtime.changed()
        told = trio.current_time()
        assert await session.wait() == "all settled"
        assert trio.current_time() - told <= DEFAULT_POLL + 0.001
    runtime.changed()
    assert len(timer.goals) == 0


async def test_a_goal_whose_runtime_does_not_tell_is_asked_at_every_beat_until_it_is_let_go(
    timer: Timer, autojump_clock: MockClock
) -> None:
    """A parked goal is asked no more; one that is taken up again in the same session is."""

    class Counting(Telling):  # type: ignore[misc]  # a test may add to what is final
        tell = None  # type: ignore[assignment]  # so that it does not offer to

    runtime = Counting()
    async with open_session(MemoryLog(), MemoryBus(), id=RUN, timer=timer) as session:
        await session.submit(runtime, SPEC)
        await trio.sleep(10.5 * DEFAULT_POLL)
        assert runtime.asked == 10
        runtime.current = replace(runtime.current, active=False)
        with pytest.raises(RunParked):
            await session.wait()
        asked = runtime.asked
        await trio.sleep(1)
        assert (runtime.asked, len(timer.goals)) == (asked, 0)
        await session.resume(runtime, GoalKey(RUN))
        await trio.sleep(2.5 * DEFAULT_POLL)
        assert runtime.asked == asked + 2
        runtime.converge()
    assert len(timer.goals) == 0


async def test_a_goal_that_has_reported_its_end_is_asked_no_more(
    timer: Timer, autojump_clock: MockClock
) -> None:
    """At once, and not only when a look has found it."""
    async with open_session(MemoryLog(), MemoryBus(), id=RUN, timer=timer) as session:
        await session.submit(FakeRuntime(), SPEC)
        assert len(timer.goals) == 1
        await session.reporter.report(phase(Phase.CONVERGED))
        assert (len(timer.goals), len(timer.floor)) == (0, 0)
