"""An action's end is recorded behind its caller's back: what that saves, what never happens before it, what a loss leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.conversation import Conversation
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import LogClosed, LogError, RunFinished, RunParked, SessionFailed
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.reporter import UnhurriedReporter
from affidavit.actors.runtime import MissionExecutor, open_runtime
from affidavit.actors.sealer import Sealer, open_sealer
from affidavit.actors.session import open_session
from affidavit.actors.session_handle import Session
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.work import Done, Permit, Work
from tests.actors.fakes import Fault, HeldLog, LateLog
from tests.actors.logs.faulty import Plan, plan
from tests.actors.mission_kit import DONE, GOAL, SIGNER, FakeTool, KeptLog, calls, repeat, replies
from tests.actors.runtimes import RUN, FakeRuntime, phase

__all__ = ["plan"]

RESULT = Event(Kind.TOOL_RESULT, tool_use_id="t1", result="paid")
ACTION = Action("pay", turn=1, tool_use_id="t1", args_digest=b"digest")


async def paid(_permit: Permit) -> Done[str]:
    """Work that ends well, and at once."""
    await trio.lowlevel.checkpoint()
    return Done("ok", events=(RESULT,))


def held(log: HeldLog) -> Work[str]:
    """Work that ends well, and whose end does not become durable before the test lets it."""

    async def work(permit: Permit) -> Done[str]:
        log.hold()
        return await paid(permit)

    return work


async def never(_permit: Permit) -> Done[str]:
    """Work that must not begin."""
    raise AssertionError("the work began")


class Going:
    """A session whose actions the test governs."""

    def __init__(self, session: Session, runtime: FakeRuntime) -> None:
        self.session = session
        self.ledger = MissionLedger(Conversation(), session.reporter)
        runtime.listener = self.ledger.hear
        self.dispatcher = Dispatcher(self.ledger, CapabilityGrant(None))
        assert isinstance(session.reporter, UnhurriedReporter)
        self.reporter: UnhurriedReporter = session.reporter


@asynccontextmanager
async def going(log: Log, sealer: Sealer | None = None) -> AsyncIterator[Going]:
    """A session that drives a goal; it is parked at the end of the block."""
    with trio.CancelScope() as scope:
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            runtime = FakeRuntime()
            await session.submit(runtime, GOAL)
            await trio.testing.wait_all_tasks_blocked()
            yield Going(session, runtime)
            scope.cancel()
            await trio.lowlevel.checkpoint()


async def kinds(log: Log) -> list[str]:
    """What stands on the record, after its beginning."""
    return [event.kind for event in await history(log, RUN)][1:]


WHOLE = [Kind.ACTION_ADMITTED, Kind.ACTION_COMPLETED, Kind.TOOL_RESULT]


async def test_one_action_after_another_costs_one_sync_each(tmp_path: Path, plan: Plan) -> None:
    """The end of one becomes durable together with the admission of the next: three actions take four commits, not six."""
    async with open_sqlite_log(tmp_path / "store") as log, going(log) as g:
        before = plan.commits
        for _ in range(3):
            await g.dispatcher.govern(ACTION, paid)
        await g.dispatcher.settled()
        assert plan.commits - before == 4
        assert await kinds(log) == WHOLE * 3


async def test_nobody_sees_an_end_that_is_not_durable() -> None:
    """The caller has the value; the record, its status and its readers have the end once it cannot be lost any more."""
    log = LateLog(MemoryLog())
    async with going(log) as g, g.session.subscribe(0) as events:
        done = await g.dispatcher.govern(ACTION, paid)
        assert isinstance(done, Done)
        assert done.value == "ok"
        assert g.session.projection.completed == 0
        await g.dispatcher.settled()
        assert g.session.projection.completed == 1
        seen = [(await anext(events)).kind for _ in range(4)]
    assert seen == [Kind.SESSION_STARTED, *WHOLE]


async def test_what_it_freed_counts_at_once() -> None:
    """The next action is judged over what stands ahead of it on the record, durable or not."""
    log = LateLog(MemoryLog())
    async with going(log) as g:
        await g.dispatcher.govern(ACTION, paid)
        assert g.ledger.book.open_actions == {}
        assert g.ledger.book.last_call == 1
        await g.dispatcher.govern(ACTION, paid)
        assert g.ledger.book.last_call == 2


@pytest.mark.parametrize("fault", Fault)
async def test_g1_behind_an_end_that_was_lost_nothing_begins(fault: Fault, autojump_clock: MockClock) -> None:
    """Written or not: the session stops, the next action is not admitted, and what stands is whole (G1, S6)."""
    inner = MemoryLog()
    log = LateLog(inner, at={3}, fault=fault)  # session.started, the admission, its end

    async def act_twice() -> None:
        async with going(log) as g:
            await g.dispatcher.govern(ACTION, paid)
            with pytest.raises(LogError):
                await g.dispatcher.govern(ACTION, never)
            with pytest.raises(LogError):
                await g.dispatcher.settled()
            await trio.sleep_forever()

    with pytest.raises(SessionFailed):
        await act_twice()
    assert log.faults == 1
    assert await kinds(inner) == (WHOLE if fault is Fault.WRITTEN else WHOLE[:1])


async def test_a_caller_that_does_nothing_more_hears_of_a_loss(autojump_clock: MockClock) -> None:
    """An end that is lost stops the session at once, and not only when somebody records again."""
    log = LateLog(MemoryLog(), at={3})

    async def act_once() -> None:
        async with going(log) as g:
            await g.dispatcher.govern(ACTION, paid)
            await trio.sleep_forever()

    with pytest.raises(SessionFailed):
        await act_once()


async def test_a_log_that_takes_nothing_any_more_stops_the_session(autojump_clock: MockClock) -> None:
    """One that has closed itself refuses an end at once: the caller hears of it, and so does the host."""
    log = LateLog(MemoryLog())

    async def act_once() -> None:
        async with going(log) as g:

            async def close_the_log(_permit: Permit) -> Done[str]:
                await trio.lowlevel.checkpoint()
                log.closed = True
                return Done("ok")

            with pytest.raises(LogClosed):
                await g.dispatcher.govern(ACTION, close_the_log)
            await trio.sleep_forever()

    with pytest.raises(SessionFailed):
        await act_once()
    log.reopen()
    assert await kinds(log) == WHOLE[:1]


@pytest.mark.parametrize("is_end", [True, False])
async def test_leaving_the_session_waits_for_it(is_end: bool) -> None:
    """A run that is parked right after an action has that action's end on its record."""
    log, is_done, is_left = HeldLog(MemoryLog()), trio.Event(), False

    async def live() -> None:
        nonlocal is_left
        async with going(log) as g:
            if is_end:
                await g.dispatcher.govern(ACTION, held(log))
            else:
                log.hold()
                assert g.reporter.report_behind(RESULT)
            is_done.set()
        is_left = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(live)
        await is_done.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert not is_left
        log.go_on()
    assert await kinds(log) == (WHOLE if is_end else [Kind.TOOL_RESULT])


async def test_a_seal_that_is_asked_for_covers_it() -> None:
    """Whoever governed an action and has the run sealed has that action sealed."""
    log = HeldLog(MemoryLog())
    seals: list[Event] = []
    async with open_sealer(log, SIGNER) as sealer, going(log, sealer) as g:

        async def seal() -> None:
            seals.append(await g.session.seal())

        await g.dispatcher.govern(ACTION, held(log))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(seal)
            await trio.testing.wait_all_tasks_blocked()
            log.go_on()
        assert [event.detail["size"] for event in seals] == [1 + len(WHOLE)]


async def test_over_a_log_that_cannot_do_that_it_is_waited_for() -> None:
    """Then an action returns once its end is durable, and what stands is the same."""
    log = KeptLog()
    async with going(log) as g:
        await g.dispatcher.govern(ACTION, paid)
        assert await kinds(log) == WHOLE
        await g.dispatcher.settled()


async def test_only_what_decides_nothing_is_taken_behind() -> None:
    """What opens, ends or hands on something is waited for; what a driver may not report it may not report by this door."""
    log = LateLog(MemoryLog())
    async with going(log) as g:
        assert g.reporter.report_behind(RESULT, phase(Phase.CONVERGED)) is None
        assert g.reporter.report_behind(Event(Kind.ACTION_ADMITTED, action="pay", call=1)) is None
        assert g.reporter.report_behind(Event(Kind.TURN_STARTED, turn=1)) is None
        with pytest.raises(ValueError, match="written by the session alone"):
            g.reporter.report_behind(Event(Kind.BRAKE_RELEASED, principal="ada"))
    assert await kinds(log) == []


async def test_nothing_at_all_is_reported_at_once() -> None:
    """As by `report`; and nobody waits for it afterwards."""
    log = LateLog(MemoryLog())
    async with going(log) as g:
        assert g.reporter.report_behind() == ()
        await g.reporter.settled()
        await g.session.brake(principal="ada")
    assert await kinds(log) == [Kind.BRAKE_ENGAGED]


async def test_the_end_of_the_run_stands_behind_it_and_nothing_behind_that() -> None:
    """A terminal phase is judged by all that stands ahead of it; afterwards nothing is taken."""
    log = LateLog(MemoryLog())
    async with open_session(log, MemoryBus(), id=RUN) as session:
        runtime = FakeRuntime()
        await session.submit(runtime, GOAL)
        g = Going(session, runtime)
        await g.dispatcher.govern(ACTION, paid)
        await session.reporter.report(phase(Phase.CONVERGED, "done"))
        with pytest.raises(RunFinished):
            g.reporter.report_behind(RESULT)
    assert await kinds(log) == [*WHOLE, Kind.GOAL_PHASE, Kind.CONVERGED]


async def test_the_end_of_the_run_closes_nothing_whose_end_is_under_way() -> None:
    """What is still open at the end is closed for the driver, and an action has one end."""
    log, runtime = HeldLog(MemoryLog()), FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN) as session:
        await session.submit(runtime, GOAL)
        g = Going(session, runtime)
        await g.dispatcher.govern(ACTION, held(log))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.reporter.report, phase(Phase.CONVERGED, "done"))
            await trio.testing.wait_all_tasks_blocked()
            log.go_on()
    assert await kinds(log) == [*WHOLE, Kind.GOAL_PHASE, Kind.CONVERGED]


async def test_a_session_that_has_failed_takes_nothing(autojump_clock: MockClock) -> None:
    """Whatever it failed of: a later event without the one that was lost would falsify the record."""
    log = LateLog(MemoryLog())

    async def act() -> None:
        async with going(log) as g:
            log.fail_next(Fault.FULL)
            with pytest.raises(LogError):
                await g.session.brake(principal="ada")
            with pytest.raises(LogClosed, match="has stopped"):
                g.reporter.report_behind(RESULT)
            await trio.sleep_forever()

    with pytest.raises(SessionFailed):
        await act()
    assert await kinds(log) == []


async def test_a_session_that_was_left_takes_nothing() -> None:
    """Whoever still reports is told so."""
    log = LateLog(MemoryLog())
    async with going(log) as g:
        pass
    with pytest.raises(LogClosed):
        g.reporter.report_behind(RESULT)
    assert await kinds(log) == []


async def test_a_run_that_is_taken_up_again_in_its_session_goes_on_from_ends_that_were_under_way(
    autojump_clock: MockClock,
) -> None:
    """Its runtime let go of it right behind an action: that action has one end, its call one result, and it is not done again."""
    log, is_done = HeldLog(MemoryLog()), trio.Event()

    async def pay(arguments: Mapping[str, object]) -> str:
        log.hold()
        is_done.set()
        return await repeat(arguments)

    tool = FakeTool("pay", pay)
    config = MissionConfig(replies(calls("pay"), DONE), Toolbox([tool]))
    async with (
        open_session(log, MemoryBus(), id=RUN) as session,
        open_runtime(MissionExecutor(config), log) as runtime,
    ):
        key = await session.submit(runtime, GOAL)
        await is_done.wait()
        await trio.testing.wait_all_tasks_blocked()
        await runtime.stop(key, fault=FaultClass.INTERRUPTED)
        with pytest.raises(RunParked):
            await session.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.resume, runtime, key)
            await trio.testing.wait_all_tasks_blocked()
            log.go_on()
        assert await session.wait() == "All is settled."
    events = await history(log, RUN)
    ends = [event.call for event in events if event.kind == Kind.ACTION_COMPLETED]
    assert sorted(ends) == sorted(set(ends))
    assert [event.result for event in events if event.kind == Kind.TOOL_RESULT] == ["{}"]
    assert tool.runs == 1
