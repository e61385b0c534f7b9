"""Who asks is a name that can be read, and why is short: from Python, by way of the inbox, whatever is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.approvals import Decision
from affidavit.actors.asker import MAX_PRINCIPAL, MAX_REASON, checked_asker
from affidavit.actors.clock import SystemClock
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import Host
from affidavit.actors.inbox import Answer, InboxReader, brake_event, post
from affidavit.actors.logs.memory import MemoryLog
from tests.actors.approval_kit import paying, waiting_run
from tests.actors.mission_kit import RUN, FakeTool, verified

BAD = {
    "nobody": ("", ""),
    "blank": ("  ", ""),
    "an escape sequence": ("a\x1b[2Jda", ""),
    "two lines": ("ada\nREFUSED", ""),
    "letters that cannot be seen": ("ada\u200b", ""),
    "a lone surrogate": ("ada\ud800", ""),
    "a long name": ("a" * (MAX_PRINCIPAL + 1), ""),
    "a long reason": ("ada", "r" * (MAX_REASON + 1)),
}
ASKED: dict[str, Callable[[Host, str, str], Awaitable[object]]] = {
    "approve": lambda host, who, why: host.approve(RUN, 2, principal=who, reason=why),
    "refuse": lambda host, who, why: host.refuse(RUN, 2, principal=who, reason=why),
    "brake": lambda host, who, why: host.brake(RUN, principal=who, reason=why),
    "brake all": lambda host, who, why: host.brake_all(principal=who, reason=why),
    "cancel": lambda host, who, why: host.cancel(RUN, principal=who, reason=why),
}


@pytest.mark.parametrize(("principal", "reason"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
async def test_what_cannot_be_recorded_is_not_asked_for(
    ask: Callable[[Host, str, str], Awaitable[object]],
    principal: str,
    reason: str,
    autojump_clock: MockClock,
) -> None:
    """Refused at once, nothing recorded, and the call goes on waiting."""
    log = MemoryLog()
    async with waiting_run(log, paying(FakeTool("pay"))) as (host, run):
        before = await history(log, RUN)
        with pytest.raises(ValueError, match=r"name|by somebody|by whom|reason"):
            await ask(host, principal, reason)
        assert await history(log, RUN) == before
        assert len(run.session.waiting) == 1


def test_a_name_and_a_reason_of_the_most_characters_are_taken() -> None:
    """In any script; and the bounds are those that are said."""
    assert checked_asker("\u5c0f" * MAX_PRINCIPAL, "\u7531" * MAX_REASON) == "\u5c0f" * MAX_PRINCIPAL


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_in_the_inbox_that_no_name_can_be_read_from_is_malformed(
    approved: bool, autojump_clock: MockClock
) -> None:
    """Answered with its code, and no effect; the run is not disturbed."""
    log = MemoryLog()
    async with waiting_run(log, paying(FakeTool("pay"))) as (_, run):
        detail: dict[str, object] = {"decision": "approved" if approved else "refused"}
        forged = Event(Kind.REQUEST_DECIDE, call=2, principal="x" * 10**6, detail=detail)
        inbox = InboxReader(log, RUN)
        inbox.expect(await post(log, RUN, forged, SystemClock()))
        while not inbox.answers:
            await trio.sleep(1)
            await inbox.catch_up()
        (answer,) = inbox.answers.values()
        assert (answer.outcome, answer.code) == ("refused", "malformed")
        assert len(run.session.waiting) == 1


@pytest.mark.parametrize("release", [False, True])
async def test_the_longest_reason_still_stands_beside_what_is_refused_for_it(
    release: bool, autojump_clock: MockClock
) -> None:
    """G7: the rejection repeats why the brake was pulled, or the call refused, whole, and the record verifies."""
    log, why = MemoryLog(), "\U0001f6d1" * MAX_REASON
    async with waiting_run(log, paying(FakeTool("pay"))) as (host, run):
        if release:
            await host.decide(RUN, Decision(2, False, "ada", why))
        else:
            inbox = InboxReader(log, RUN)
            inbox.expect(
                await post(log, RUN, brake_event(engage=True, principal="ada", reason=why), SystemClock())
            )
            while not inbox.answers:
                await trio.sleep(1)
                await inbox.catch_up()
            assert isinstance(next(iter(inbox.answers.values())), Answer)
        await run.closed()
    rejected = next(event for event in await history(log, RUN) if event.kind == Kind.ACTION_REJECTED)
    assert rejected.reason.endswith(why)
    await verified(log)
