"""Cancelling the host's scope at any step of two runs: all closes in order within the grace, nothing is left (E1, S1, S9)."""

from __future__ import annotations

import threading
from pathlib import Path

import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.clock import SystemClock
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import post, request_event
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.session_ends import PARK_GRACE
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import DONE, GOAL, SIGNER, FakeTool, calls, check_record, repeat, replies
from tests.actors.runtimes import RECORD

RUNS = ("run-1", "run-2")


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope before the n-th step that any task takes.

    Attributes:
        scope: What it cancels.
        left: How many steps are left.
        at: When it did so, by trio's clock.
    """

    def __init__(self, step: int) -> None:
        self.scope = trio.CancelScope()
        self.left = step
        self.at = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count."""
        self.left -= 1
        if self.left == 0:
            self.at = trio.current_time()
            self.scope.cancel()


async def live(log: Log) -> None:
    """Drive two runs with a tool call each, a reader of either kind, and a request from elsewhere, to their ends."""
    config = MissionConfig(replies(calls("pay"), DONE), Toolbox([FakeTool("pay", repeat)]))

    async def handler(event: Event) -> None:
        await trio.lowlevel.checkpoint()

    async def read(run_id: str) -> None:
        run = host.run(run_id)
        assert run is not None
        async with run.session.subscribe() as events:
            async for _ in events:
                pass

    async with open_host(log, signer=SIGNER) as host, trio.open_nursery() as nursery:
        for run_id in RUNS:
            run = await host.submit(GOAL, config, id=run_id)
            await run.session.attach(handler)
            nursery.start_soon(read, run_id)
        await post(log, RUNS[0], request_event(Kind.REQUEST_SEAL, principal="ada", reason=""), SystemClock())
        for run_id in RUNS:
            driven = host.run(run_id)
            assert driven is not None
            await driven.closed()


async def cancelled_at(step: int, log: Log) -> float | None:
    """Live until a step, and check what is left; return how long closing took, or None if it was not cancelled at all."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    instrument = CancelAtStep(step)
    with instrument.scope:
        trio.lowlevel.add_instrument(instrument)
        try:
            await live(log)
        finally:
            trio.lowlevel.remove_instrument(instrument)
    took = trio.current_time() - instrument.at
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    for run_id in RUNS:
        events = await history(log, run_id)
        check_record(events)
        if any(event.kind not in RECORD for event in events):
            assert events[-1].kind in {Kind.RECORD_VERIFIED, Kind.SESSION_STARTED}, [e.kind for e in events]
        async with log.own(run_id):
            pass
    return took if instrument.scope.cancelled_caught else None


async def test_cancelled_at_any_step_nothing_is_left_and_what_stands_is_sealed(
    autojump_clock: MockClock,
) -> None:
    """Every step in turn, until one comes after the end: no task, no ownership, a sound record, and well within the grace."""
    step = 1
    while (took := await cancelled_at(step, MemoryLog())) is not None:
        assert took < PARK_GRACE
        step += 1
    assert step > 100


async def test_cancelled_over_a_store_no_thread_is_left(tmp_path: Path) -> None:
    """The same with real commits in flight, at steps spread over the whole of it."""
    for step in (*range(1, 60, 7), *range(60, 600, 45)):
        async with open_sqlite_log(tmp_path / f"store-{step}") as log:
            await cancelled_at(step, log)
        assert not [each.name for each in threading.enumerate() if "commit" in each.name]
