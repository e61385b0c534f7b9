"""A call that needs a person waits for one: at no cost, over restarts, for these very arguments, once, not for ever (G3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.approvals import Decision
from affidavit.actors.clock import SystemClock
from affidavit.actors.codec import decode, encode
from affidavit.actors.errors import ApprovalRefused
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import InboxReader, decision_event, post
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Row, StreamInfo
from tests.actors.approval_kit import paying, policy, waiting_run
from tests.actors.fakes import JumpingClock
from tests.actors.mission_kit import RUN, FakeTool, check_record, verified

HOUR = 3600 * 10**9


async def events_of(log: MemoryLog, *kinds: str) -> list[Event]:
    """Return the run's events, or those of some kinds."""
    events = await history(log, RUN)
    check_record(events)
    return [event for event in events if not kinds or event.kind in kinds]


async def test_g3_an_approval_names_the_person_and_lets_the_call_run_once(autojump_clock: MockClock) -> None:
    """The decision is bound to the exact arguments; the admission names the decision; the record passes L4."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (host, run):
        (asked,) = run.session.waiting
        assert tool.runs == 0
        decided = await host.approve(RUN, asked.call, principal="ada", reason="as agreed", args=asked.args)
        assert await run.session.wait() == "All is settled."
        assert run.session.waiting == ()
    assert tool.runs == 1
    (call,) = await events_of(log, Kind.TOOL_CALL)
    assert (decided.actor, decided.principal, decided.reason) == ("human", "ada", "as agreed")
    assert decided.detail["args"] == call.args_digest
    admitted = next(e for e in await events_of(log, Kind.ACTION_ADMITTED) if e.tool_use_id)
    assert (admitted.call, admitted.detail["approval"], admitted.detail["args"]) == (
        asked.call,
        decided.seq,
        call.args_digest,
    )
    assert (await verified(log)).governance is not None


async def test_g3_a_refusal_is_final_for_the_call_and_shown_to_the_model(autojump_clock: MockClock) -> None:
    """The work does not run; the rejection has its class; who refused and why reach the model."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (host, run):
        (asked,) = run.session.waiting
        await host.refuse(RUN, asked.call, principal="ada", reason="too much")
        await run.session.wait()
    assert tool.runs == 0
    (rejected,) = await events_of(log, Kind.ACTION_REJECTED)
    assert (rejected.error_class, rejected.error_code, rejected.call) == (
        "needs_approval",
        "refused",
        asked.call,
    )
    (result,) = await events_of(log, Kind.TOOL_RESULT)
    assert result.result == "refused: ada refused it: too much"


async def test_g3_an_approval_is_waited_for_over_restarts_and_asked_for_once(
    autojump_clock: MockClock,
) -> None:
    """Parked twice, decided while nobody drove it, resumed: one request, one admission, one run of the tool."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (_, run):
        (asked,) = run.session.waiting
    async with waiting_run(log, paying(tool)) as (_, run):
        assert run.session.waiting == (asked,)
    async with waiting_run(log, paying(tool)) as (host, run):
        await host.approve(RUN, asked.call, principal="ada")
        await run.session.wait()
    assert tool.runs == 1
    assert len(await events_of(log, Kind.APPROVAL_REQUESTED)) == 1
    (call,) = await events_of(log, Kind.TOOL_CALL)
    assert len([e for e in await events_of(log, Kind.ACTION_ADMITTED) if e.tool_use_id]) == 1
    assert call.tool_use_id


async def test_g3_a_decision_can_be_made_while_nobody_drives_the_run(autojump_clock: MockClock) -> None:
    """By whoever takes the run for the purpose; it is not made twice, and resuming goes on by it."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (_, run):
        (asked,) = run.session.waiting
    async with open_host(log) as host:
        await host.approve(RUN, asked.call, principal="ada")
        with pytest.raises(ApprovalRefused, match="approved already, by ada") as caught:
            await host.refuse(RUN, asked.call, principal="bob")
        assert caught.value.code == "decided"
        with pytest.raises(ApprovalRefused) as caught:
            await host.approve(RUN, asked.call + 1, principal="ada")
        assert caught.value.code == "not_asked"
        run = await host.resume(RUN, paying(tool))
        assert await run.session.wait() == "All is settled."
    assert tool.runs == 1


async def test_g3_an_approval_is_good_for_the_arguments_that_were_shown_alone(
    autojump_clock: MockClock,
) -> None:
    """Whoever was shown other arguments than those on the record decides nothing."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (host, run):
        (asked,) = run.session.waiting
        with pytest.raises(ApprovalRefused) as caught:
            await host.approve(RUN, asked.call, principal="ada", args=bytes(32))
        assert caught.value.code == "args_changed"
        assert run.session.waiting == (asked,)
    assert tool.runs == 0


async def test_g3_a_decision_over_other_arguments_admits_nothing(autojump_clock: MockClock) -> None:
    """A decision that stands on the record for other arguments, however it got there, is none; the call goes on waiting."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (_, run):
        (asked,) = run.session.waiting
        forged = Event(
            Kind.APPROVAL_DECIDED,
            action="pay",
            call=asked.call,
            tool_use_id=asked.tool_use_id,
            principal="ada",
            detail={"args": bytes(32), "decision": "approved", "request": asked.requested},
        )
        with pytest.raises(ValueError, match="written by the session alone"):
            await run.session.reporter.report(forged)
    tip = len(await history(log, RUN))
    await log.append([Entry(RUN, tip, (encode(forged, stream=RUN, seq=tip + 1, time=0),))])
    async with waiting_run(log, paying(tool)) as (_, run):
        assert run.session.waiting == (asked,)
    assert tool.runs == 0


async def test_nobody_decides_in_nobodys_name(autojump_clock: MockClock) -> None:
    """A decision, and the brake, name who it was; an event without a name would be the system's own."""
    log = MemoryLog()
    async with waiting_run(log, paying(FakeTool("pay"))) as (host, _):
        with pytest.raises(ValueError, match="who decides"):
            await host.approve(RUN, 2, principal="")
        with pytest.raises(ValueError, match="by somebody"):
            await host.brake(RUN, principal="")


async def test_g3_a_request_that_nobody_decides_expires_on_the_record(autojump_clock: MockClock) -> None:
    """After its time the expiry and the rejection stand in one append, in nobody's name, and the run goes on."""
    log, tool, clock = MemoryLog(), FakeTool("pay"), JumpingClock()
    async with waiting_run(log, paying(tool, clock), clock) as (host, run):
        (asked,) = run.session.waiting
        assert asked.expires == clock.now + HOUR
        clock.now += HOUR
        with pytest.raises(ApprovalRefused) as caught:
            await host.approve(RUN, asked.call, principal="ada")
        assert caught.value.code == "expired"
        await run.session.wait()
    assert tool.runs == 0
    decided, rejected = await events_of(log, Kind.APPROVAL_DECIDED, Kind.ACTION_REJECTED)
    assert (decided.actor, decided.principal, decided.detail["decision"]) == ("system", "", "expired")
    assert (rejected.error_code, rejected.seq) == ("expired", decided.seq + 1)


async def test_g3_an_approval_holds_no_more_after_its_time(autojump_clock: MockClock) -> None:
    """Approved in time and resumed too late: refused."""
    log, tool, clock = MemoryLog(), FakeTool("pay"), JumpingClock()
    async with waiting_run(log, paying(tool, clock), clock) as (_, run):
        (asked,) = run.session.waiting
    async with open_host(log, clock=clock) as host:
        await host.approve(RUN, asked.call, principal="ada")
        clock.now += HOUR
        run = await host.resume(RUN, paying(tool, clock))
        await run.session.wait()
    assert tool.runs == 0
    (rejected,) = await events_of(log, Kind.ACTION_REJECTED)
    assert rejected.error_code == "expired"


async def test_only_those_whom_the_policy_names_may_decide(autojump_clock: MockClock) -> None:
    """Anybody else is told who may."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool, rules=policy(approvers=["ada", "bob"]))) as (host, run):
        (asked,) = run.session.waiting
        with pytest.raises(ApprovalRefused, match="ada, bob may") as caught:
            await host.approve(RUN, asked.call, principal="eve")
        assert caught.value.code == "not_an_approver"
        await host.approve(RUN, asked.call, principal="bob")
        await run.session.wait()
    assert tool.runs == 1


class CountingLog:
    """A log that counts how often it is asked for anything."""

    def __init__(self) -> None:
        self.asked = 0
        self._log = MemoryLog()
        self.append, self.own, self.list = self._log.append, self._log.own, self._log.list

    async def read(self, stream: str, after_seq: int = 0, limit: int = 256) -> tuple[Row, ...]:
        """Count, and read."""
        self.asked += 1
        return await self._log.read(stream, after_seq, limit)

    async def info(self, stream: str) -> StreamInfo | None:
        """Count, and tell."""
        self.asked += 1
        return await self._log.info(stream)

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        """Count, and tell."""
        self.asked += 1
        return await self._log.tips(streams)


async def test_g3_waiting_costs_nothing(autojump_clock: MockClock) -> None:
    """While an approval is waited for nothing is written, no task is started, and the log is asked for new requests alone."""
    log, tool = CountingLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)):
        before = (await history(log, RUN))[-1].seq
        asked, tasks = log.asked, trio.lowlevel.current_statistics().tasks_living
        await trio.sleep(60)
        assert (await history(log, RUN))[-1].seq == before
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert (
            log.asked - asked <= 60 / 0.25 + 3
        )  # one query for each look of the floor, and those of this test


async def test_g3_another_process_decides_by_way_of_the_inbox(autojump_clock: MockClock) -> None:
    """Found without a wake, carried out once in the asker's name, answered; a second and a bad one are refused with a code."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (_, run):
        (asked,) = run.session.waiting
        wrong = await post(
            log, RUN, decision_event(Decision(asked.call, True, "ada", args=bytes(32))), SystemClock()
        )
        right = await post(
            log, RUN, decision_event(Decision(asked.call, True, "ada", "fine", asked.args)), SystemClock()
        )
        late = await post(log, RUN, decision_event(Decision(asked.call, False, "bob")), SystemClock())
        empty = await post(log, RUN, Event(Kind.REQUEST_DECIDE, principal="eve"), SystemClock())
        await run.session.wait()
        inbox = InboxReader(log, RUN)
        for seq in (wrong, right, late, empty):
            inbox.expect(seq)
        while inbox.pending or not inbox.seen:
            await trio.sleep(1)
            await inbox.catch_up()
    (decided,) = await events_of(log, Kind.APPROVAL_DECIDED)
    assert (decided.principal, decided.reason, decided.causation_id) == (
        "ada",
        "fine",
        f"{RUN}.inbox/{right}",
    )
    assert inbox.answers[right].seq == decided.seq
    codes = [inbox.answers[seq].code for seq in (wrong, late, empty)]
    assert codes == ["args_changed", "decided", "malformed"]
    assert tool.runs == 1


async def changed(log: MemoryLog, arguments: str) -> MemoryLog:
    """Return the run as somebody leaves it who changes the arguments of its tool call in the store."""
    rows = []
    for row in await log.read(RUN, 0, 1000):
        event = decode(row.data)
        if event.kind == Kind.TOOL_CALL:
            again = replace(event, input=arguments)
            rows.append(encode(again, stream=RUN, seq=event.seq, time=event.time))
        else:
            rows.append(row.data)
    other = MemoryLog()
    await other.append([Entry(RUN, 0, tuple(rows))])
    return other


async def test_g3_arguments_changed_after_approval_are_refused(autojump_clock: MockClock) -> None:
    """Even by who can write the store: the call is refused on the record with its code, and the work does not run."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (_, run):
        (asked,) = run.session.waiting
    async with open_host(log) as host:
        await host.approve(RUN, asked.call, principal="ada", args=asked.args)
    log = await changed(log, '{"amount": 42000}')
    async with open_host(log) as host:
        run = await host.resume(RUN, paying(tool))
        await run.session.wait()
    assert tool.runs == 0
    (rejected,) = await events_of(log, Kind.ACTION_REJECTED)
    assert (rejected.error_class, rejected.error_code) == ("needs_approval", "args_changed")
