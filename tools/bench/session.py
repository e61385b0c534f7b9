"""Sessions that wait: what one costs in memory, in time to start, and what a thousand of them take of a core.

An idle session is open and owns its run, and nothing was asked of it. A waiting one has a goal whose model has not answered, and
a reader that has seen everything; it is measured with our runtime, which tells of changes, and with one that has to be asked.
"""

from __future__ import annotations

import gc
import os
import time
from functools import partial
from pathlib import Path
from typing import Final, final

import trio
import trio.testing

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ModelRequest
from affidavit.actors.runtime import MissionExecutor, open_runtime
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.session import open_session
from affidavit.actors.timer import Timer, open_timer
from affidavit.tools.bench.endless_goal import EndlessGoal
from affidavit.tools.bench.figures import Figures, alternate

IDLE: Final = 10_000
WAITING: Final = 1_000
_STARTS: Final = 300
_SECONDS: Final = 4.0
_SETTLE: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@final
class _SilentModel:
    """A model that never answers."""

    name = "silent"
    digest = b"silent"
    supports_tools = False

    async def generate(self, request: ModelRequest) -> ModelReply:
        await trio.sleep_forever()
        raise AssertionError


def resident_bytes() -> int:
    """Return how much memory of this process is resident."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


@final
class _Many:
    """Many sessions on one log, with one timer as a host has it."""

    def __init__(self, timer: Timer, log: MemoryLog, nursery: trio.Nursery) -> None:
        self._timer, self._log, self._nursery = timer, log, nursery
        self._bus = MemoryBus()

    async def idle(  # noqa: ASYNC114  # started in `_measure` alone
        self, number: int, *, task_status: trio.TaskStatus[None]
    ) -> None:
        async with open_session(self._log, self._bus, id=f"idle-{number}", timer=self._timer):
            task_status.started()
            await trio.sleep_forever()

    async def waiting(  # noqa: ASYNC114  # as above
        self, number: int, runtime: Runtime, *, task_status: trio.TaskStatus[None]
    ) -> None:
        async with open_session(self._log, self._bus, id=f"run-{number}", timer=self._timer) as session:
            await session.submit(runtime, GoalSpec("settle the ledger"))
            async with session.subscribe() as events:
                task_status.started()
                async for _ in events:
                    pass


async def _measure(idle: int, waiting: int) -> Figures:
    log = MemoryLog()
    executor = MissionExecutor(MissionConfig(_SilentModel()))
    async with (
        open_timer(log, SystemClock()) as timer,
        open_runtime(executor, log) as runtime,
        trio.open_nursery() as nursery,
    ):
        many = _Many(timer, log, nursery)
        await nursery.start(many.idle, -1)
        gc.collect()
        before = resident_bytes()
        for number in range(idle):
            await nursery.start(many.idle, number)
        gc.collect()
        kib = (resident_bytes() - before) / idle / 1024
        for number in range(waiting):
            await nursery.start(many.waiting, number, runtime)
        share = await _share_of_a_core()
        nursery.cancel_scope.cancel(reason="all was measured")
    return Figures(ratios={"kib_per_idle": kib, "idle_cpu_share": share})


async def _measure_asked(waiting: int) -> float:
    log = MemoryLog()
    async with open_timer(log, SystemClock()) as timer, trio.open_nursery() as nursery:
        many, runtime = _Many(timer, log, nursery), EndlessGoal()
        for number in range(waiting):
            await nursery.start(many.waiting, number, runtime)
        share = await _share_of_a_core()
        nursery.cancel_scope.cancel(reason="all was measured")
    return share


async def _share_of_a_core() -> float:
    await trio.testing.wait_all_tasks_blocked()
    # So that the start is not counted.
    await trio.sleep(_SETTLE)
    cpu, began = time.process_time(), time.perf_counter()
    await trio.sleep(_SECONDS)
    return (time.process_time() - cpu) / (time.perf_counter() - began)


async def _sessions(starts: int) -> float:
    log, bus = MemoryLog(), MemoryBus()
    async with open_timer(log, SystemClock()) as timer:
        began = time.perf_counter()
        for number in range(starts):
            async with open_session(log, bus, id=f"run-{number}", timer=timer):
                pass
        return (time.perf_counter() - began) / starts * 1e6


async def _nothing() -> None:
    return


async def _nurseries(starts: int) -> float:
    began = time.perf_counter()
    for _ in range(starts):
        async with trio.open_nursery() as nursery:  # noqa: ASYNC112  # the nursery is what is measured
            nursery.start_soon(_nothing)
    return (time.perf_counter() - began) / starts * 1e6


def run(events: int | None = None) -> Figures:
    """Measure all figures of waiting sessions.

    Args:
        events: How many idle sessions there are, and a tenth as many that wait.
    """
    waiting = max((events or IDLE) * WAITING // IDLE, 1)
    found = trio.run(_measure, events or IDLE, waiting)
    found.figures["asked_cpu_share"] = trio.run(_measure_asked, waiting)
    ratio, ours, bare = alternate(
        partial(trio.run, _sessions, _STARTS), partial(trio.run, _nurseries, _STARTS)
    )
    found.ratios["start_vs_nursery"] = ratio
    found.figures["session_open_and_close_us"] = ours
    found.figures["nursery_and_child_us"] = bare
    return found
