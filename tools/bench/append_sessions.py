"""The whole path of a session, from its reporter until the event is durable, for many sessions on one store."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.reporter import Reporter
from affidavit.actors.session import Session, open_session
from affidavit.actors.timer import open_timer
from affidavit.tools.bench.endless_goal import EndlessGoal
from affidavit.tools.bench.figures import Figures, alternate

_WORDS: Final = "The quick brown fox jumps over the lazy dog, and the ledger balances. " * 2


@asynccontextmanager
async def _sessions(path: Path, count: int, generation: int) -> AsyncIterator[list[Session]]:
    async with (
        open_sqlite_log(path) as log,
        open_timer(log, SystemClock()) as timer,  # one for all, as a host has it
        AsyncExitStack() as stack,
    ):
        opened = []
        for number in range(count):
            session = await stack.enter_async_context(
                open_session(log, MemoryBus(), id=f"run-{generation}-{number}", timer=timer)
            )
            await session.submit(EndlessGoal(), GoalSpec("settle the ledger"))
            opened.append(session)
        yield opened


class Sessions:
    """Ours: each session's task reports one event after another."""

    def __init__(self, path: Path, sessions: int, events: int) -> None:
        """Work on a store of its own, with new runs in each round."""
        self._path = path
        self._sessions = sessions
        self._rounds = max(events // sessions, 1)
        self._generation = 0

    def __call__(self) -> float:
        """Do a round, and return events per second."""
        self._generation += 1
        return trio.run(self._round)

    async def _round(self) -> float:
        took = 0.0
        with trio.CancelScope() as scope:
            async with _sessions(self._path, self._sessions, self._generation) as sessions:
                began = time.perf_counter()
                async with trio.open_nursery() as nursery:
                    for session in sessions:
                        nursery.start_soon(self._report, session.reporter)
                took = time.perf_counter() - began
                # Leaving by cancellation parks the runs; leaving otherwise would wait for their ends.
                scope.cancel(reason="the round is over")
                await trio.lowlevel.checkpoint()
        return self._sessions * self._rounds / took

    async def _report(self, reporter: Reporter) -> None:
        for _ in range(self._rounds):
            await reporter.report(
                Event(
                    Kind.TOOL_RESULT, turn=3, tool="read_file", tool_use_id="call_0123456789", result=_WORDS
                )
            )


def measure_sessions(
    folder: Path, sessions: int, events: int, bare: Callable[[], Callable[[], float]]
) -> Figures:
    """Measure `sessions` sessions beside the bare loop with batches of as many rows."""
    ratio, ours, _ = alternate(Sessions(folder / "sessions", sessions, events), bare())
    return Figures(ratios={f"session_vs_raw_{sessions}": ratio}, figures={f"session_{sessions}_per_s": ours})
