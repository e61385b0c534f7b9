"""A governed action beside two bare appends of the same bytes: what it costs that nothing is done without its admission.

The action does nothing, for a goal of a real session, under a policy that has a rule of every kind. The baseline appends what the
action's admission and end came to be, straight to the log, and waits for each. SQLite syncs every commit; the log in memory shows
what is left of the difference where no disk hides it, for orientation.

Actions follow one another, as those of a run do, and the clock stops when the last of them is durable: the end of each shares its
sync with the admission of the next. An action alone, waited for until its end is durable, is shown besides.

The baseline syncs again and again without a pause, and many a disk takes several times as long over a sync that comes after a
pause of some hundred microseconds. So the same appends are measured a second time at the pace of an action alone: with its time
in memory spent before them, and not counted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, final

import trio

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.conversation import Conversation
from affidavit.actors.deciders.port import Action
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.events import Event
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.policy.model import Approval, Breakers, Budget, Grant, Policy, Prices
from affidavit.actors.reporter import Reporter
from affidavit.actors.rules import rules_of
from affidavit.actors.session import open_session
from affidavit.actors.work import Done, Permit
from affidavit.tools.bench.endless_goal import EndlessGoal
from affidavit.tools.bench.figures import Figures, scratch
from affidavit.tools.bench.rotation import ratio

ACTIONS: Final = 1_000
RUN: Final = "run"
_BLOCK: Final = 50
_TOOL: Final = "do_nothing"
_PER_ACTION: Final = 2
_POLICY: Final = Policy(
    grant=Grant(tools=(_TOOL,)),
    budget=Budget(steps=10**6, tokens=10**9, cost=Decimal(10**6), seconds=10**6),
    prices=Prices(input=Decimal(1), output=Decimal(5)),
    approval=(Approval(tools=("pay_*",)),),
    breakers=Breakers(repeated_calls=3, failures=5, of=10),
)

OpenLog = Callable[[], AbstractAsyncContextManager[Log]]


@final
class _Goal(EndlessGoal):
    """A goal for which the bench itself acts, through a ledger on the session's reporter."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger: MissionLedger | None = None

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        self.ledger = MissionLedger(Conversation(), reporter)
        return await super().submit(spec, reporter)

    def hear(self, key: GoalKey, events: tuple[Event, ...]) -> None:
        if self.ledger is not None:
            self.ledger.hear(events)


async def _nothing(_permit: Permit) -> Done[None]:
    return Done(None)


@final
class _Governed:
    """Ours: one action after another, all for one goal."""

    def __init__(self, log: Log, dispatcher: Dispatcher, tip: int) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._tip = tip
        self._done = 0

    async def act(self, *, alone: bool = False) -> float:
        """Govern so many actions until they are durable, each by itself if `alone`, and return seconds per action."""
        actions = [
            Action(_TOOL, turn=1, tool_use_id=f"call_{number}", args_digest=bytes(32), limit_ms=60_000)
            for number in range(self._done, self._done + _BLOCK)
        ]
        self._done += _BLOCK
        began = time.perf_counter()
        for action in actions:
            await self._dispatcher.govern(action, _nothing)
            if alone:
                await self._dispatcher.settled()
        await self._dispatcher.settled()
        return (time.perf_counter() - began) / _BLOCK

    async def rows(self) -> list[bytes]:
        """Return what that came to be on the log, one row an append."""
        stored = await self._log.read(RUN, self._tip, _BLOCK * _PER_ACTION)
        self._tip = stored[-1].seq
        return [row.data for row in stored]


@asynccontextmanager
async def _governed(log: Log) -> AsyncIterator[_Governed]:
    goal, spec = _Goal(), GoalSpec("do nothing, often")
    rules = rules_of(spec, _POLICY)
    with trio.CancelScope() as scope:
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(goal, spec)
            if goal.ledger is None:
                raise AssertionError("the goal was submitted")
            yield _Governed(
                log, Dispatcher(goal.ledger, rules.grant, rules.deciders), session.projection.events
            )
            # Leaving by cancellation parks the run; leaving otherwise would wait for its end.
            scope.cancel(reason="the measurement is over")
            await trio.lowlevel.checkpoint()


@final
class _Appended:
    """The baseline: rows appended one after another."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tip = 0

    async def append(self, rows: Sequence[bytes], *, pause: float = 0) -> float:
        """Append each by itself after a busy pause in seconds, and return seconds per pair, pauses left out."""
        spent = 0.0
        for row in rows:
            began = time.perf_counter() + pause
            while time.perf_counter() < began:
                pass
            await self._log.append([Entry(RUN, self._tip, (row,))])
            spent += time.perf_counter() - began
            self._tip += 1
        return spent / (len(rows) / _PER_ACTION)


class _Measured(NamedTuple):
    """Seconds per block's unit, block by block.

    Attributes:
        governed: Per governed action, one after another.
        alone: Per governed action, each waited for until it is durable.
        appended: Per pair of appends.
        paced: Per pair of appends at the pace of an action alone.
    """

    governed: list[float]
    alone: list[float]
    appended: list[float]
    paced: list[float]


async def _measure(ours: OpenLog, bare: OpenLog, actions: int, *, pause: float = 0) -> _Measured:
    """Alternate blocks of a few actions, since a disk's speed changes within a second."""
    measured = _Measured([], [], [], [])
    async with ours() as log, bare() as other, _governed(log) as goal:
        baseline = _Appended(other)
        # Once beforehand, to warm up, and so that there is something to append.
        await goal.act()
        rows = await goal.rows()
        await baseline.append(rows)
        for number in range(max(actions // _BLOCK, 1)):
            if number % 2:
                measured.governed.append(await goal.act())
                measured.appended.append(await baseline.append(rows))
            else:
                measured.appended.append(await baseline.append(rows))
                measured.governed.append(await goal.act())
            rows = await goal.rows()
            measured.paced.append(await baseline.append(rows, pause=pause))
            measured.alone.append(await goal.act(alone=True))
            rows = await goal.rows()
    return measured


@asynccontextmanager
async def _in_memory() -> AsyncIterator[MemoryLog]:
    await trio.lowlevel.checkpoint()
    yield MemoryLog()


def _store(path: Path) -> AbstractAsyncContextManager[Log]:
    return open_sqlite_log(path)


def run(events: int | None = None) -> Figures:
    """Measure a governed action that does nothing.

    Args:
        events: How many actions are governed in all.
    """
    actions = events or ACTIONS
    in_memory = trio.run(_measure, _in_memory, _in_memory, actions)
    pause = statistics.median(in_memory.governed) / _PER_ACTION
    with scratch() as folder:
        stores = (partial(_store, folder / "governed.db"), partial(_store, folder / "appended.db"))
        on_disk = trio.run(partial(_measure, *stores, actions, pause=pause))
    return Figures(
        ratios={"vs_two_appends": ratio(on_disk.governed, on_disk.appended)},
        figures={
            "governed_us": _us(on_disk.governed),
            "two_appends_us": _us(on_disk.appended),
            "alone_us": _us(on_disk.alone),
            "alone_vs_two_appends": ratio(on_disk.alone, on_disk.appended),
            "two_appends_at_its_pace_us": _us(on_disk.paced),
            "alone_vs_two_appends_at_its_pace": ratio(on_disk.alone, on_disk.paced),
            "governed_in_memory_us": _us(in_memory.governed),
            "two_appends_in_memory_us": _us(in_memory.appended),
        },
    )


def _us(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e6
