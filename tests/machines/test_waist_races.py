"""Workers and people who race for a run's turns over a slow log: what stands holds in the order in which it stands (G1, G7)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.amounts import Amounts, reserved_by, used_by
from affidavit.actors.approvals import Decision
from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.deciders.approval import ApprovalGate
from affidavit.actors.deciders.brake import Brake
from affidavit.actors.deciders.budgets import TokenBudget
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import ApprovalRefused, WriterFenced
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.session import open_session
from affidavit.actors.session_handle import Session
from affidavit.actors.work import Done, Permit
from tests.actors.fakes import LateLog
from tests.actors.runtimes import RUN, FakeRuntime

MOST_TOKENS: Final = 100
MOMENTS: Final = (0.0, 0.001, 0.01, 0.3)


class SlowLog(LateLog):
    """A log whose appends take a while, so that what comes next waits for its turn."""

    def __init__(self, random: Random) -> None:
        super().__init__(MemoryLog())
        self._random = random

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Append, later."""
        await trio.sleep(self._random.choice(MOMENTS[:3]))
        return await super().append(entries)


class Race:
    """One run, those who act on it, and those who rule on it."""

    def __init__(self, log: SlowLog, random: Random, session: Session, runtime: FakeRuntime) -> None:
        self._log = log
        self._random = random
        self._session = session
        self.ledger = MissionLedger(Conversation(), session.reporter)
        runtime.listener = self.ledger.hear
        deciders = (Brake(), TokenBudget(MOST_TOKENS), ApprovalGate(("pay",), 3600))
        self.waist = Dispatcher(self.ledger, CapabilityGrant(None), deciders)

    async def act(self, worker: int) -> None:
        """Act a few times, and be called off now and then."""
        for number in range(self._random.randint(1, 6)):
            with trio.move_on_after(self._random.choice((0.001, 0.1, 100, 100))):
                await self._govern(f"{worker}-{number}")

    async def _govern(self, tool_use_id: str) -> None:
        most = self._random.randint(1, 40)
        result = Event(Kind.TOOL_RESULT, tool_use_id=tool_use_id)

        async def work(permit: Permit) -> Done[None]:
            stands = await history(self._log, RUN)
            assert any(event.kind == Kind.ACTION_ADMITTED and event.call == permit.call for event in stands)
            await trio.sleep(self._random.choice(MOMENTS))
            return Done(None, events=(result,), used=Amounts(tokens=self._random.randint(0, most)))

        action = Action(
            self._random.choice(("pay", "look")),
            turn=1,
            tool_use_id=tool_use_id,
            args_digest=b"digest",
            reserve=Amounts(tokens=most),
        )
        await self.waist.govern(action, work, refused=lambda _: (result,), stopped=lambda _: (result,))

    async def rule(self) -> None:
        """Decide what waits, pull the brake, let it go."""
        for _ in range(20):
            await trio.sleep(self._random.choice(MOMENTS))
            if self._random.random() < 0.4:
                await self._session.brake(principal="ada", engage=self._random.random() < 0.4)
            for approval in self._session.waiting:
                with suppress(ApprovalRefused):
                    await self._session.decide(Decision(approval.call, approved=True, principal="bob"))


def check(events: Sequence[Event]) -> None:
    """Hold each admission against what stands ahead of it."""
    is_braked, used = False, 0
    held: dict[int, int] = {}
    approved: set[int] = set()
    for event in events:
        match event.kind:
            case Kind.BRAKE_ENGAGED | Kind.BRAKE_RELEASED:
                is_braked = event.kind == Kind.BRAKE_ENGAGED
            case Kind.APPROVAL_DECIDED:
                assert event.call not in approved, f"call {event.call} was decided twice"
                approved.add(event.call)
            case Kind.ACTION_ADMITTED:
                assert not is_braked, f"event {event.seq} admits an action behind the brake"
                assert event.call not in held
                held[event.call] = reserved_by(event.detail).tokens
                assert used + sum(held.values()) <= MOST_TOKENS
                assert event.action == "look" or event.call in approved
            case Kind.ACTION_COMPLETED:
                del held[event.call]
                used += used_by(event.detail).tokens
    assert held == {}


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_comes_first_an_admission_holds_where_it_stands(
    seed: int, autojump_clock: MockClock
) -> None:
    """No action behind the brake, none beyond the budget, none unapproved; each has one end, and the fold ahead is the log's."""
    random, runtime = Random(seed), FakeRuntime()  # chooses what is tried, and guards nothing
    log = SlowLog(random)
    with trio.CancelScope() as scope:
        async with open_session(log, MemoryBus(), id=RUN) as session:
            await session.submit(runtime, GoalSpec("Settle it."))
            race = Race(log, random, session, runtime)
            async with trio.open_nursery() as nursery:
                for worker in range(random.randint(2, 6)):
                    nursery.start_soon(race.act, worker)
                await race.rule()
                # Whoever still waits for an approval is given up.
                await session.brake(principal="ada")
            await race.waist.settled()
            events = await history(log, RUN)
            assert race.ledger.book == fold(events).book
            scope.cancel()
            await trio.lowlevel.checkpoint()
    check(events)
