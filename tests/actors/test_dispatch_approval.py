"""The waist while a person is asked: waiting, deciding, expiring, stopping, and what a failing log leaves of it (G3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from affidavit.actors.amounts import Amounts
from affidavit.actors.approvals import EXPIRED
from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.deciders.approval import ApprovalGate
from affidavit.actors.deciders.brake import Brake
from affidavit.actors.deciders.budgets import TokenBudget
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import MODEL_ACTION, Action, Decider, Denial
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import LogFull
from affidavit.actors.events import ActorType, Event, FaultClass, Kind
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.work import Done, Permit
from affidavit.crypto.approval import APPROVED, REFUSED
from tests.actors.mission_kit import WriterOfLists

EXPIRES = 60
PAY = Action("pay", turn=1, tool_use_id="t1", args_digest=b"exact", reserve=Amounts(tokens=10))
RULES: tuple[Decider, ...] = (Brake(), TokenBudget(100), ApprovalGate(("pay*",), EXPIRES))


class LoopClock:
    """Tells trio's own time, so that a test's clock moves it."""

    def now_ns(self) -> int:
        """Return it in nanoseconds."""
        return round(trio.current_time() * 10**9)

    async def sleep(self, seconds: float) -> None:
        """Wait on trio's clock."""
        await trio.sleep(seconds)


class Till:
    """One run whose payments need a person: its writer, its ledger, its dispatcher, and what came of each payment."""

    def __init__(
        self, writer: WriterOfLists, past: tuple[Event, ...] = (), rules: tuple[Decider, ...] = RULES
    ) -> None:
        self.writer = writer
        self.ledger = MissionLedger(fold(past) if past else Conversation(), writer)
        self.dispatcher = Dispatcher(self.ledger, CapabilityGrant(None), rules, clock=LoopClock())
        self.paid: list[tuple[str, int]] = []
        self.outcomes: dict[str, object] = {}

    async def pay(self, action: Action = PAY) -> None:
        """Pay, once that is approved."""

        async def work(permit: Permit) -> Done[None]:
            await trio.lowlevel.checkpoint()
            self.paid.append((action.tool_use_id, permit.call))
            return Done(None, (result(action, "paid"),))

        self.outcomes[action.tool_use_id] = await self.dispatcher.govern(
            action, work, refused=lambda denial: (result(action, denial.reason),)
        )

    async def decide(self, call: int, decision: str = APPROVED) -> None:
        """Record a person's decision, as the session does."""
        asked = self.ledger.book.approvals[call]
        detail: dict[str, object] = {"args": asked.args, "decision": decision, "request": asked.requested}
        await self.ledger.record(Event(Kind.APPROVAL_DECIDED, call=call, principal="ann", detail=detail))

    async def brake(self) -> None:
        """Pull the brake."""
        await self.ledger.record(Event(Kind.BRAKE_ENGAGED, principal="ann", reason="stop"))

    @property
    def said(self) -> list[list[str]]:
        """The kinds of each append."""
        return [[event.kind for event in append] for append in self.writer.appends]

    def denial(self, tool_use_id: str = "t1") -> str:
        """The code that a payment was refused with."""
        outcome = self.outcomes[tool_use_id]
        assert isinstance(outcome, Denial)
        return outcome.error_code


def result(action: Action, text: str) -> Event:
    """What a payment is answered with."""
    return Event(Kind.TOOL_RESULT, tool_use_id=action.tool_use_id, result=text)


@asynccontextmanager
async def waiting(till: Till, *actions: Action) -> AsyncIterator[trio.Nursery]:
    """Begin payments, and let them come to where they wait."""
    async with trio.open_nursery() as nursery:
        for action in actions or (PAY,):
            nursery.start_soon(till.pay, action)
            await trio.testing.wait_all_tasks_blocked()
        yield nursery
        await trio.testing.wait_all_tasks_blocked()


REQUESTED = [Kind.APPROVAL_REQUESTED]
DECIDED = [Kind.APPROVAL_DECIDED]
RAN = [[Kind.ACTION_ADMITTED], [Kind.ACTION_COMPLETED, Kind.TOOL_RESULT]]
DENIED = [Kind.ACTION_REJECTED, Kind.TOOL_RESULT]


async def test_an_approved_call_runs_once_under_the_number_it_was_asked_for(
    mock_clock: trio.testing.MockClock,
) -> None:
    """Asked with the exact arguments, admitted under the same number, the admission naming the very decision."""
    till = Till(WriterOfLists())
    async with waiting(till):
        assert till.said == [REQUESTED]
        asked = till.writer.events[0]
        assert (asked.action, asked.call, asked.tool_use_id) == ("pay", 1, "t1")
        assert asked.detail["args"] == b"exact"
        assert asked.detail["expires"] == EXPIRES * 10**9
        await till.decide(1)
    assert till.said == [REQUESTED, DECIDED, *RAN]
    assert till.paid == [("t1", 1)]
    assert till.writer.events[2].detail["approval"] == 2
    assert till.ledger.book.approvals.undecided == ()


async def test_waiting_does_nothing_until_something_happens(mock_clock: trio.testing.MockClock) -> None:
    """While nobody decides nothing is recorded, however long it takes; the run's other actions go on meanwhile."""
    till = Till(WriterOfLists())
    async with waiting(till) as nursery:
        mock_clock.jump(EXPIRES - 1)
        await trio.testing.wait_all_tasks_blocked()
        assert till.said == [REQUESTED]

        async def look(permit: Permit) -> Done[None]:
            await trio.lowlevel.checkpoint()
            return Done(None)

        assert isinstance(await till.dispatcher.govern(Action("look", tool_use_id="t9"), look), Done)
        nursery.cancel_scope.cancel()


async def test_a_refusal_is_final_and_names_the_person(mock_clock: trio.testing.MockClock) -> None:
    """The refused call is rejected under its number; asking again is a new call."""
    till = Till(WriterOfLists())
    async with waiting(till):
        await till.decide(1, REFUSED)
    assert till.said == [REQUESTED, DECIDED, DENIED]
    assert (till.denial(), till.paid) == ("refused", [])
    rejected = till.writer.events[2]
    assert (rejected.call, rejected.error_class) == (1, FaultClass.NEEDS_APPROVAL)
    assert "ann refused it" in rejected.reason


async def test_what_nobody_decides_expires_on_the_record(mock_clock: trio.testing.MockClock) -> None:
    """At its time, in one append: that it expired, that it is refused, and what the model is told."""
    till = Till(WriterOfLists())
    async with waiting(till):
        mock_clock.jump(EXPIRES)
    assert till.said == [REQUESTED, [Kind.APPROVAL_DECIDED, *DENIED]]
    assert (till.denial(), till.paid) == ("expired", [])
    expired = till.writer.events[1]
    assert (expired.detail["decision"], expired.principal, expired.actor) == (EXPIRED, "", ActorType.SYSTEM)


async def test_an_approval_that_comes_too_late_is_not_used(mock_clock: trio.testing.MockClock) -> None:
    """Approved in time, but looked at after it has expired: refused, and no second decision is made up."""
    past = Till(WriterOfLists())
    async with waiting(past) as nursery:
        nursery.cancel_scope.cancel()
    await past.decide(1)
    mock_clock.jump(EXPIRES)
    till = Till(past.writer, past.writer.events)
    await till.pay()
    assert till.said == [REQUESTED, DECIDED, DENIED]
    assert (till.denial(), till.paid) == ("expired", [])


async def test_the_brake_ends_the_waiting(mock_clock: trio.testing.MockClock) -> None:
    """Pulled while a call waits for a person, it refuses that call at once, and an approval can no longer help it (G7)."""
    till = Till(WriterOfLists())
    async with waiting(till):
        await till.brake()
    assert till.said == [REQUESTED, [Kind.BRAKE_ENGAGED], DENIED]
    assert (till.denial(), till.paid) == ("brake", [])
    with pytest.raises(KeyError):
        till.ledger.book.approvals[1]


async def test_cancelled_while_it_waits_the_request_stands(mock_clock: trio.testing.MockClock) -> None:
    """Nothing is recorded of the cancellation; the next owner goes on waiting for the same request, and asks nobody again."""
    till = Till(WriterOfLists())
    async with waiting(till) as nursery:
        nursery.cancel_scope.cancel()
    assert till.said == [REQUESTED]
    again = Till(till.writer, till.writer.events)
    mock_clock.jump(EXPIRES - 1)
    async with waiting(again):
        assert again.said == [REQUESTED]
        await again.decide(1)
    assert again.said == [REQUESTED, DECIDED, *RAN]
    assert again.paid == [("t1", 1)]


async def test_two_that_wait_are_decided_apart(mock_clock: trio.testing.MockClock) -> None:
    """Each has its number; deciding one leaves the other waiting."""
    till = Till(WriterOfLists())
    other = Action("pay_rent", turn=1, tool_use_id="t2", args_digest=b"other")
    async with waiting(till, PAY, other):
        assert till.said == [REQUESTED, REQUESTED]
        await till.decide(2, REFUSED)
        await trio.testing.wait_all_tasks_blocked()
        assert till.denial("t2") == "refused"
        assert "t1" not in till.outcomes
        await till.decide(1)
    assert till.paid == [("t1", 1)]


async def test_other_arguments_than_those_approved_are_refused(mock_clock: trio.testing.MockClock) -> None:
    """The call comes back with other arguments after it was approved: refused, nothing runs, the approval is used up."""
    past = Till(WriterOfLists())
    async with waiting(past) as nursery:
        nursery.cancel_scope.cancel()
    await past.decide(1)
    till = Till(past.writer, past.writer.events)
    await till.pay(Action("pay", turn=1, tool_use_id="t1", args_digest=b"other"))
    assert till.said == [REQUESTED, DECIDED, DENIED]
    assert (till.denial(), till.paid) == ("args_changed", [])
    with pytest.raises(KeyError):
        till.ledger.book.approvals[1]


async def test_a_decision_about_other_arguments_decides_nothing(mock_clock: trio.testing.MockClock) -> None:
    """Whatever else stands on the log, only a decision over the arguments that were asked with is one."""
    till = Till(WriterOfLists())
    async with waiting(till) as nursery:
        detail: dict[str, object] = {"args": b"other", "decision": APPROVED, "request": 1}
        await till.ledger.record(Event(Kind.APPROVAL_DECIDED, call=1, principal="ann", detail=detail))
        await trio.testing.wait_all_tasks_blocked()
        assert till.outcomes == {}
        nursery.cancel_scope.cancel()
    assert till.paid == []


async def test_a_budget_that_is_gone_meanwhile_refuses_what_was_approved(
    mock_clock: trio.testing.MockClock,
) -> None:
    """Waiting holds nothing back: what others spend in the time is gone, and an approval is no budget."""
    till = Till(WriterOfLists())

    async def think(permit: Permit) -> Done[None]:
        await trio.lowlevel.checkpoint()
        return Done(None, used=Amounts(tokens=95))

    async with waiting(till):
        await till.dispatcher.govern(Action(MODEL_ACTION, reserve=Amounts(tokens=95)), think)
        await till.decide(1)
    assert (till.denial(), till.paid) == ("tokens", [])
    assert till.said[-1] == DENIED


async def test_nobody_is_asked_about_what_is_refused_anyway(mock_clock: trio.testing.MockClock) -> None:
    """A call that the grant or a budget refuses leaves no request behind."""
    till = Till(WriterOfLists())
    await till.pay(Action("pay", tool_use_id="t1", args_digest=b"exact", reserve=Amounts(tokens=101)))
    assert till.said == [DENIED]


@pytest.mark.parametrize(("decision", "ran"), [(APPROVED, True), (REFUSED, False), ("", True)])
async def test_under_rules_that_no_longer_ask_a_refusal_still_stands(
    mock_clock: trio.testing.MockClock, decision: str, ran: bool
) -> None:
    """Resumed under a policy without the rule: what was refused stays so, and no admission claims an approval nobody gave."""
    past = Till(WriterOfLists())
    async with waiting(past) as nursery:
        nursery.cancel_scope.cancel()
    if decision:
        await past.decide(1, decision)
    till = Till(past.writer, past.writer.events, RULES[:-1])
    await till.pay()
    assert bool(till.paid) is ran
    claims = [
        "approval" in event.detail for event in till.writer.events if event.kind == Kind.ACTION_ADMITTED
    ]
    assert claims == ([decision == APPROVED] if ran else [])


async def test_a_decision_made_while_the_request_is_being_recorded_is_not_missed(
    mock_clock: trio.testing.MockClock,
) -> None:
    """The wake is taken before the request is written, so one who answers at once cannot be too early."""
    writer = WriterOfLists()
    till = Till(writer)
    plain = writer.report

    async def report(*events: Event) -> tuple[Event, ...]:
        recorded = await plain(*events)
        till.ledger.hear(recorded)
        if events[0].kind == Kind.APPROVAL_REQUESTED:
            await till.decide(1)
        return recorded

    writer.report = report  # type: ignore[method-assign]
    await till.pay()
    assert till.paid == [("t1", 1)]


async def approve_all(till: Till) -> None:
    """Approve whatever waits."""
    for approval in till.ledger.book.approvals.undecided:
        await till.decide(approval.call)


async def refuse_all(till: Till) -> None:
    """Refuse whatever waits."""
    for approval in till.ledger.book.approvals.undecided:
        await till.decide(approval.call, REFUSED)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
@pytest.mark.parametrize("decide", [approve_all, refuse_all])
async def test_a_log_that_fails_at_any_append_neither_loses_nor_repeats_anything(
    mock_clock: trio.testing.MockClock,
    decide: Callable[[Till], Awaitable[None]],
    place: int,
    written: bool,
) -> None:
    """Request, decision, admission, end: the failed one stood or not, the next owner asks and pays once at most."""
    writer = FlakyWriter(place, written=written)
    first = Till(writer)
    try:
        async with waiting(first):
            await decide(first)
    except* LogFull:
        pass
    begun = {event.tool_use_id for event in writer.events if event.kind == Kind.ACTION_ADMITTED}
    ended = {event.tool_use_id for event in writer.events if event.kind == Kind.TOOL_RESULT}
    again = Till(writer, writer.events)
    if not begun | ended:
        async with waiting(again):
            await decide(again)
    kinds = [event.kind for event in writer.events]
    assert kinds.count(Kind.APPROVAL_REQUESTED) == kinds.count(Kind.APPROVAL_DECIDED) == 1
    assert len(first.paid) + len(again.paid) <= 1
    # Paid only with its admission on the record; an admission that was written although it failed is not acted upon.
    assert kinds.count(Kind.ACTION_ADMITTED) == (1 if decide is approve_all else 0)
    assert kinds.count(Kind.ACTION_REJECTED) == (0 if decide is approve_all else 1)
    assert bool(first.paid or again.paid) is (decide is approve_all and not (place == 3 and written))


class FlakyWriter(WriterOfLists):
    """Fails one append, which was written or not; from then on it writes well, as a log that was opened again."""

    def __init__(self, place: int, *, written: bool) -> None:
        super().__init__(fail_at=0 if written else place)
        self._place = place
        self._written = written

    async def report(self, *events: Event) -> tuple[Event, ...]:
        """Record, and fail at the place."""
        recorded = await super().report(*events)
        if self._written and self.asked == self._place:
            raise LogFull("it is not known whether it was written (chosen by the test)")
        return recorded
