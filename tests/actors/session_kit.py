"""What the tests of sessions share: runs to take up, and a count of tasks."""

from __future__ import annotations

import trio

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalStatus, Phase
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.session import open_session
from tests.actors.fakes import FaultLog
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime

ENDED = [Kind.SESSION_STARTED, Kind.GOAL_PHASE, Kind.CONVERGED]


async def leave_unfinished(log: MemoryLog | FaultLog) -> None:
    """Record a run that was opened and parked."""
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        await session.reporter.report(SPEAK)
        runtime.current = GoalStatus(Phase.RUNNING, active=False)


async def finish(log: MemoryLog | FaultLog) -> None:
    """Record a run that converged."""
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        runtime.converge()


def tasks() -> int:
    """Return how many tasks there are in the whole program."""
    return trio.lowlevel.current_statistics().tasks_living
