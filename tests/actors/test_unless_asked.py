"""No admission follows a request that it was not judged by: the append itself says that nobody has asked for anything (G7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.approvals import Decision
from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.codec import decode
from affidavit.actors.conversation import Conversation
from affidavit.actors.deciders.approval import ApprovalGate
from affidavit.actors.deciders.brake import Brake
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action, Denial, Standing
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import GuardLost, LogLocked, Stalled, WriterFenced
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import brake_event, post, request_event
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.reporter import AttentiveReporter, UnhurriedReporter
from affidavit.actors.session import open_session
from affidavit.actors.session_handle import Session
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.work import Done, Permit
from tests.actors.fakes import Fault, FaultLog, HeldLog, JumpingClock
from tests.actors.mission_kit import DONE, GOAL, RUN, SIGNER, FakeTool, calls, replies, verified
from tests.actors.runtimes import FakeRuntime


class RacedLog(FaultLog):
    """A log on which somebody pulls the brake in the very moment in which the admission of a tool comes to be appended."""

    def __init__(self, tool: str) -> None:
        self.inner = MemoryLog()
        super().__init__(self.inner)
        self.is_raced = False
        self._tool = tool

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Append, after a request of somebody else if it is that admission."""
        if not self.is_raced and any(map(self._admits, entries)):
            self.is_raced = True
            await post(
                self.inner, RUN, brake_event(engage=True, principal="ada", reason="stop it"), SystemClock()
            )
        return await super().append(entries)

    def _admits(self, entry: Entry) -> bool:
        events = [decode(row) for row in entry.rows]
        return any(event.kind == Kind.ACTION_ADMITTED and event.action == self._tool for event in events)


def of(events: Sequence[Event], kind: str, action: str) -> list[Event]:
    """The events of a kind about an action."""
    return [event for event in events if event.kind == kind and event.action == action]


async def test_g7_a_brake_that_comes_between_the_judgement_and_the_append_stops_the_action(
    autojump_clock: MockClock,
) -> None:
    """The admission does not reach the record, nothing runs, and the refusal names the brake that came first."""
    log, tool = RacedLog("pay"), FakeTool("pay")
    config = MissionConfig(replies(calls("pay"), DONE), Toolbox([tool]))
    async with open_host(log, signer=SIGNER) as host:
        run = await host.submit(GOAL, config, id=RUN)
        with pytest.raises(Stalled):
            await run.session.wait()
        await run.closed()
    events = await history(log, RUN)
    assert log.is_raced
    assert tool.runs == 0
    assert of(events, Kind.ACTION_ADMITTED, "pay") == []
    (refused,) = of(events, Kind.ACTION_REJECTED, "pay")
    assert refused.error_code == "brake"
    (braked,) = [event for event in events if event.kind == Kind.BRAKE_ENGAGED]
    assert braked.seq < refused.seq
    await verified(log.inner)


@asynccontextmanager
async def going(
    log: Log, runtime: FakeRuntime | None = None, clock: Clock | None = None
) -> AsyncIterator[tuple[Session, AttentiveReporter]]:
    """A session that drives a goal, and its reporter; it is parked at the end."""
    with trio.CancelScope() as scope:
        async with open_session(log, MemoryBus(), id=RUN, clock=clock) as session:
            await session.submit(runtime or FakeRuntime(), GOAL)
            # What it looks at by itself once it begins is done by now.
            await trio.testing.wait_all_tasks_blocked()
            assert isinstance(session.reporter, AttentiveReporter)
            yield session, session.reporter
            scope.cancel()
            await trio.lowlevel.checkpoint()


async def test_a_request_that_was_read_and_not_answered_keeps_an_admission_off() -> None:
    """What was read of the inbox counts only once it is seen to; then the same is recorded."""
    inner = MemoryLog()
    log = FaultLog(inner)
    admission = Event(Kind.ACTION_ADMITTED, action="pay", call=1)
    async with going(log) as (session, reporter):
        await post(inner, RUN, request_event(Kind.REQUEST_SEAL, principal="ada", reason=""), SystemClock())
        with pytest.raises(GuardLost):
            await reporter.report_unless_asked(admission)
        # Refused, since there is no sealer; and the answer cannot be written.
        log.fail_next(Fault.LOCKED)
        with pytest.raises(LogLocked):
            await session.attend()
        before = log.appends
        with pytest.raises(GuardLost):
            await reporter.report_unless_asked(admission)
        assert log.appends == before
        await reporter.attend()
        # The answer is the owner's own, and is read like everything else.
        await reporter.attend()
        (recorded,) = await reporter.report_unless_asked(admission)
    assert [event.seq for event in await history(log, RUN) if event.kind == Kind.ACTION_ADMITTED] == [
        recorded.seq
    ]


@pytest.mark.parametrize("engage", [True, False])
async def test_g7_a_brake_pulled_in_this_process_while_an_admission_waits_for_its_turn_keeps_it_off(
    engage: bool,
) -> None:
    """It leaves nothing in the inbox, and comes first on the record: the action is judged again, and does not begin."""
    log, runtime, judged, begun = HeldLog(MemoryLog()), FakeRuntime(), 0, 0

    class Counting:
        def decide(self, action: Action, standing: Standing) -> None:
            nonlocal judged
            judged += 1

    async def work(_permit: Permit) -> Done[None]:
        nonlocal begun
        begun += 1
        await trio.lowlevel.checkpoint()
        return Done(None)

    async with going(log, runtime) as (session, reporter):
        ledger = MissionLedger(Conversation(), session.reporter)
        runtime.listener = ledger.hear
        waist = Dispatcher(ledger, CapabilityGrant(None), (Counting(), Brake()))
        # Its end is under way as well when the brake is pulled.
        log.hold()
        assert isinstance(reporter, UnhurriedReporter)
        assert reporter.report_behind(Event(Kind.ASSISTANT, text="done so far"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(session.brake, principal="ada", engage=engage))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(waist.govern, Action("pay"), work)
            await trio.testing.wait_all_tasks_blocked()
            assert judged == 1
            log.go_on()
    assert (judged, begun) == (2, 0 if engage else 1)
    kinds = [event.kind for event in await history(log, RUN)][1:]
    ends = [Kind.ACTION_REJECTED] if engage else [Kind.ACTION_ADMITTED, Kind.ACTION_COMPLETED]
    assert kinds == [
        Kind.ASSISTANT,
        Kind.BRAKE_ENGAGED if engage else Kind.BRAKE_RELEASED,
        *ends,
    ]


async def test_nobody_but_the_session_reports_its_own_kinds_this_way_either() -> None:
    """What a driver may not report it may not report by this door."""
    async with going(MemoryLog()) as (_, reporter):
        with pytest.raises(ValueError, match="written by the session alone"):
            await reporter.report_unless_asked(Event(Kind.BRAKE_RELEASED, principal="ada"))


async def test_who_approves_in_the_moment_in_which_the_time_is_up_is_the_only_one_to_have_decided(
    autojump_clock: MockClock,
) -> None:
    """Their decision comes first on the record: the call is too late all the same, and nothing says that nobody decided."""
    log, runtime, clock = HeldLog(MemoryLog()), FakeRuntime(), JumpingClock()
    outcomes: list[object] = []

    async def work(_permit: Permit) -> Done[None]:
        raise AssertionError("it is too late")

    async with going(log, runtime, clock) as (session, _):
        ledger = MissionLedger(Conversation(), session.reporter)
        runtime.listener = ledger.hear
        waist = Dispatcher(ledger, CapabilityGrant(None), (ApprovalGate(("pay",), 10),), clock=clock)

        async def act() -> None:
            outcomes.append(await waist.govern(Action("pay", tool_use_id="t1"), work))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(act)
            await trio.testing.wait_all_tasks_blocked()
            log.hold()
            nursery.start_soon(session.decide, Decision(1, approved=True, principal="ada"))
            await trio.testing.wait_all_tasks_blocked()
            clock.now += 10 * 10**9
            await trio.sleep(10)
            await trio.testing.wait_all_tasks_blocked()
            log.go_on()
    assert [type(each) for each in outcomes] == [Denial]
    events = [event for event in await history(log, RUN) if event.kind.startswith(("approval", "action"))]
    assert [(event.kind, event.principal) for event in events] == [
        (Kind.APPROVAL_REQUESTED, ""),
        (Kind.APPROVAL_DECIDED, "ada"),
        (Kind.ACTION_REJECTED, ""),
    ]
