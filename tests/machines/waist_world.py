"""The world of the waist's machine: one run whose goals act concurrently over a log that may fail, and what must hold of it.

The parts are the product's own: the stream, the session's record, rulings and reporter, the mission's ledger, dispatchers. The
test's own is who asks for what and when, the clock, and the faults of the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final, TypeVar

import trio
import trio.testing

from affidavit.actors.amounts import NOTHING, Amounts
from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.conversation import fold
from affidavit.actors.deciders.approval import ApprovalGate
from affidavit.actors.deciders.brake import Brake, FailureBreaker
from affidavit.actors.deciders.budgets import CostBudget, SharedStepBudget, TimeBudget, TokenBudget
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import MODEL_ACTION, Action, Denial
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import LogError
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.recovery import INTERRUPTED_TEXT, closing_events, unanswered
from affidavit.actors.run_state import RunState
from affidavit.actors.session_record import SessionRecord
from affidavit.actors.session_reporter import SessionReporter
from affidavit.actors.session_rulings import SessionRulings
from affidavit.actors.stream import Committed, Stream
from affidavit.actors.work import Done, Permit
from tests.actors.fakes import Fault, LateLog

T = TypeVar("T")

RUN: Final = "run-1"
SECOND: Final = 10**9
EXPIRES: Final = 100
STEPS: Final = 3
MOST: Final = Amounts(tokens=60, cost_micros=40, ms=150_000)
LIMIT_MS: Final = 30_000
# Whether a tool may be run again. What begins with `pay` needs a person.
TOOLS: Final = {"look": True, "send": False, "pay": False, "pay_again": True}
# Each goal, who handed it down, and what it was told that it may use; `""` is the root.
WANTED: Final[dict[str, tuple[str | None, frozenset[str] | None]]] = {
    "": (None, frozenset({"look", "pay", "pay_again"})),
    "c1": ("", frozenset({"look", "send"})),
    "c2": ("", None),
    "c1-1": ("c1", frozenset({"look", "pay"})),
}


def granted(goal: str) -> frozenset[str]:
    """Return what a goal may use, worked out apart from the product: what it and all above it were told."""
    above, wanted = WANTED[goal]
    own = frozenset(TOOLS) if wanted is None else wanted
    return own if above is None else own & granted(above)


class Loop:
    """A trio run in a thread. A synchronous test takes one step after another in it, each until nothing moves any more."""

    def __init__(self) -> None:
        self._ready: SimpleQueue[tuple[trio.lowlevel.TrioToken, trio.Event, trio.Nursery]] = SimpleQueue()
        self._thread = Thread(target=trio.run, args=(self._main,))
        self._thread.start()
        self._token, self._over, self.nursery = self._ready.get()

    async def _main(self) -> None:
        over = trio.Event()
        async with trio.open_nursery() as nursery:
            self._ready.put((trio.lowlevel.current_trio_token(), over, nursery))
            await over.wait()
            nursery.cancel_scope.cancel()

    def do(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run one step, and whatever it sets going, until all of it waits."""

        async def settled() -> T:
            value = await step()
            await trio.testing.wait_all_tasks_blocked()
            return value

        return trio.from_thread.run(settled, trio_token=self._token)

    def close(self) -> None:
        """End the run."""
        trio.from_thread.run_sync(self._over.set, trio_token=self._token)
        self._thread.join()


class StepClock:
    """A clock that stands until the test moves it; who sleeps is woken by that alone."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND
        self._moved = trio.Event()

    def now_ns(self) -> int:
        """Return the time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Wait until it has come so far."""
        end = self.now + round(seconds * SECOND)
        while self.now < end:
            await self._moved.wait()

    def move(self, seconds: int) -> None:
        """Go on."""
        self.now += seconds * SECOND
        self._moved.set()
        self._moved = trio.Event()


@dataclass(frozen=True)
class Asked:
    """A tool call as some goal's model asked for it."""

    goal: str
    id: str
    tool: str
    digest: bytes
    turn: int

    @property
    def key(self) -> tuple[str, str]:
        """What names it."""
        return self.goal, self.id


@dataclass(eq=False)
class Working:
    """Work that has begun, and waits for the test to say how it ends."""

    action: Action
    permit: Permit
    go: trio.Event = field(default_factory=trio.Event)
    used: Amounts = NOTHING
    fails: str = ""


class Crash(Exception):
    """What work of the test's raises where it is to crash."""


class Life:
    """One owner of the run, from taking it up until it parks, crashes or loses its log."""

    def __init__(self, log: LateLog, clock: StepClock, events: tuple[Event, ...]) -> None:
        self.state = RunState()
        for event in events:
            self.state.apply(event)
        self.conversation = fold(events)
        stream = Stream(log, MemoryBus(), RUN, clock, tip=len(events))
        stream.observe(self._hear)
        self.record = SessionRecord(log, stream, self.state)
        self.ledger = MissionLedger(self.conversation, SessionReporter(self.record, trio.lowlevel.checkpoint))
        self.rulings = SessionRulings(self.record, clock)
        self.scopes: list[trio.CancelScope] = []
        deciders = (
            Brake(),
            FailureBreaker(4, 8),
            SharedStepBudget(STEPS),
            TokenBudget(MOST.tokens),
            CostBudget(MOST.cost_micros, "EUR"),
            TimeBudget(MOST.ms),
            ApprovalGate(("pay*",), EXPIRES),
        )
        root = WANTED[""][1]
        self.dispatchers = {"": Dispatcher(self.ledger, CapabilityGrant(root), deciders, clock=clock)}
        for goal, (above, wanted) in WANTED.items():
            if above is not None:
                self.dispatchers[goal] = self.dispatchers[above].narrowed(wanted)

    def _hear(self, committed: Committed) -> None:
        for event in committed.events:
            self.state.apply(event)
        self.ledger.hear(committed.events)


class World:
    """The run, its owners one after another, and everything that was really done.

    Attributes:
        truth: The log without faults: what is on it is on the record.
        log: The same, as the run meets it.
        began: The work that really began: what, and the call it was admitted under.
        working: What is at work now, by call.
        asked: Every tool call, by goal and id.
        faults: What went wrong that never may, as the tasks met it.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.truth = MemoryLog()
        self.log = LateLog(self.truth)
        self.clock = StepClock()
        self.began: list[tuple[Action, int]] = []
        self.working: dict[int, Working] = {}
        self.asked: dict[tuple[str, str], Asked] = {}
        self.faults: list[BaseException] = []
        self.life = Life(self.log, self.clock, ())
        self._numbers = 0

    async def open(self) -> None:
        """Record what opens the run."""
        await self.life.record.record((Event(Kind.SESSION_STARTED, text=RUN, detail={"spec": _spec()}),))

    async def events(self) -> tuple[Event, ...]:
        """Return what is on the record."""
        return await history(self.truth, RUN)

    async def ask(self, goal: str, tool: str) -> None:
        """Have a goal's model ask for a tool, and the goal see to it."""
        self._numbers += 1
        id_, life = f"t{self._numbers}", self.life
        call = Event(Kind.TOOL_CALL, goal=goal, tool=tool, tool_use_id=id_, input=f'{{"n":{self._numbers}}}')
        try:
            (recorded,) = await life.ledger.record(call)
        except LogError:
            return
        asked = Asked(goal, id_, tool, recorded.args_digest, recorded.turn)
        self.asked[asked.key] = asked
        self.pursue(asked)

    def pursue(self, asked: Asked, *, altered: bool = False) -> None:
        """Have a goal run a call that it asked for, with the arguments it asked with or, against the rules, with others."""
        action = Action(
            asked.tool,
            goal=asked.goal,
            turn=asked.turn,
            tool_use_id=asked.id,
            args_digest=b"altered" if altered else asked.digest,
            idempotent=TOOLS.get(asked.tool, False),
            limit_ms=LIMIT_MS,
            known=asked.tool in TOOLS,
        )
        answer = partial(_result, asked)
        self._loop.nursery.start_soon(self._act, self.life, action, (), answer)

    def ask_model(self, goal: str, reserve: Amounts, *, again: bool) -> None:
        """Have a goal ask its model, for a turn of its own or once more for one that was announced."""
        self._numbers += 1
        opening = () if again else (Event(Kind.TURN_STARTED, goal=goal, turn=self._numbers),)
        action = Action(
            MODEL_ACTION,
            goal=goal,
            turn=self._numbers,
            idempotent=True,
            reserve=reserve,
            limit_ms=LIMIT_MS,
            opens_turn=not again,
        )
        self._loop.nursery.start_soon(self._act, self.life, action, opening, lambda text: ())

    async def _act(
        self,
        life: Life,
        action: Action,
        opening: tuple[Event, ...],
        answer: Callable[[str], tuple[Event, ...]],
    ) -> None:
        async def work(permit: Permit) -> Done[None]:
            self.began.append((action, permit.call))
            mine = self.working[permit.call] = Working(action, permit)
            try:
                await mine.go.wait()
            finally:
                self.working.pop(permit.call, None)
            if mine.fails == "crash":
                raise Crash
            fault = FaultClass.TERMINAL if mine.fails else ""
            return Done(None, answer(mine.fails or "done"), fault, used=mine.used)

        def stopped(fault: str) -> tuple[Event, ...]:
            return () if action.idempotent and fault == FaultClass.INTERRUPTED else answer(INTERRUPTED_TEXT)

        def refused(denial: Denial) -> tuple[Event, ...]:
            return answer(denial.reason)

        try:
            with trio.CancelScope() as scope:
                life.scopes.append(scope)
                dispatcher = life.dispatchers[action.goal]
                await dispatcher.govern(action, work, opening=opening, refused=refused, stopped=stopped)
        except (LogError, Crash):
            return
        except BaseException as error:  # noqa: ASYNC103  # the machine looks at it
            self.faults.append(error)

    def finish(self, call: int, *, used: Amounts, fails: str) -> None:
        """Let work end, with or without success, having used as much."""
        working = self.working[call]
        working.used, working.fails = used, fails
        working.go.set()

    def fail(self, ahead: int, fault: Fault) -> None:
        """Have one of the next appends fail."""
        self.log._at, self.log._fault = frozenset({self.log.appends + ahead}), fault

    async def stop(self, *, crash: bool) -> None:
        """End this owner: at once and without a word, or by parking."""
        if crash:
            self.log.closed = True
        for scope in self.life.scopes:
            scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        self.life.record.close()

    async def open_idle(self) -> None:
        """Begin as a new owner, and do nothing yet."""
        await self.stop(crash=True)
        self.log.reopen()
        self.life = Life(self.log, self.clock, await self.events())

    async def take_up(self, *, alter: bool = False) -> None:
        """Begin as a new owner: close what was open, answer what must not be repeated, and go on with the rest."""
        await self.open_idle()
        life = self.life
        try:
            closing = closing_events(life.conversation)
            if closing:
                await life.ledger.record(*closing)
            for asked in await self._unanswered():
                if TOOLS.get(asked.tool, False) or not await self._has_begun(asked):
                    self.pursue(asked, altered=alter)
                    continue
                result = unanswered(asked.id, asked.tool, asked.turn, INTERRUPTED_TEXT)
                await life.ledger.record(replace(result, goal=asked.goal))
        except LogError:
            return

    async def _unanswered(self) -> list[Asked]:
        events = await self.events()
        answered = {(event.goal, event.tool_use_id) for event in events if event.kind == Kind.TOOL_RESULT}
        return [asked for asked in self.asked.values() if asked.key not in answered]

    async def _has_begun(self, asked: Asked) -> bool:
        events = await self.events()
        return any(
            event.kind == Kind.ACTION_ADMITTED and (event.goal, event.tool_use_id) == asked.key
            for event in events
        )


def _spec() -> dict[str, object]:
    return GoalSpec("Settle the ledger.").as_detail()


def _result(asked: Asked, text: str) -> tuple[Event, ...]:
    return (
        Event(
            Kind.TOOL_RESULT,
            goal=asked.goal,
            tool=asked.tool,
            tool_use_id=asked.id,
            turn=asked.turn,
            result=text,
        ),
    )
