"""A run resumed under a changed policy: what was asked for or given under the old one counts if the new one asks for no more."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trio.testing
from trio.testing import MockClock

from affidavit.actors.approvals import Decision
from affidavit.actors.events import Kind
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.policy.model import Policy
from tests.actors.approval_kit import ADA, EVE, paying, policy, statement, waiting_run
from tests.actors.mission_kit import RUN, SIGNER, FakeTool, verified

ANYONE = policy()
ADA_OR_BOB = policy(approvers=["ada", "bob"])
ADA_ALONE = policy(approvers=["ada"])
ADA_SIGNS = policy(approvers=["ada"], signed=True)
OTHER_KEY = ADA_SIGNS.model_copy(update={"approver_keys": {"ada": EVE.public.hex}})
NOBODY_NEEDED = Policy.model_validate({"grant": {"tools": ["pay"]}})


@pytest.mark.parametrize(
    ("before", "who", "after", "runs"),
    [
        (ANYONE, "bob", ADA_ALONE, 0),
        (ANYONE, "ada", ADA_ALONE, 1),
        (ADA_OR_BOB, "bob", ADA_ALONE, 0),
        (ADA_OR_BOB, "ada", ADA_ALONE, 1),
        (ADA_ALONE, "ada", ADA_OR_BOB, 1),
        (ADA_ALONE, "ada", ADA_SIGNS, 0),
        (ADA_SIGNS, "ada", ADA_ALONE, 1),
        (ADA_SIGNS, "ada", OTHER_KEY, 0),
        (ADA_SIGNS, "ada", NOBODY_NEEDED, 1),
    ],
)
async def test_an_approval_counts_under_the_rules_that_hold_when_it_is_used(
    before: Policy, who: str, after: Policy, runs: int, autojump_clock: MockClock
) -> None:
    """One that the new rules would not have taken admits nothing: the call is refused, and the model may ask anew."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool, rules=before)) as (_, run):
        (asked,) = run.session.waiting
    given = Decision(asked.call, True, who)
    if asked.signed:
        given = replace(given, statement=statement(asked, given, ADA))
    async with open_host(log) as host:
        await host.decide(RUN, given)
    async with open_host(log, signer=SIGNER) as host:
        run = await host.resume(RUN, paying(tool, rules=after), accept_changes=True)
        await run.session.wait()
    assert tool.runs == runs
    assert await refusals(log) == ([] if runs else ["rules_changed"])
    await verified(log)


@pytest.mark.parametrize("after", [ADA_ALONE, ADA_SIGNS, OTHER_KEY])
async def test_nobody_is_asked_any_more_for_an_approval_that_would_not_count(
    after: Policy, autojump_clock: MockClock
) -> None:
    """A request that stands, and asks for less than the new rules do, is refused before anybody decides about it."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool, rules=ADA_OR_BOB)):
        pass
    async with open_host(log, signer=SIGNER) as host:
        run = await host.resume(RUN, paying(tool, rules=after), accept_changes=True)
        await run.session.wait()
    assert (tool.runs, await refusals(log)) == (0, ["rules_changed"])
    await verified(log)


async def test_a_request_that_asks_for_more_than_the_new_rules_stands(autojump_clock: MockClock) -> None:
    """It is waited for as it was asked, and not asked anew."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool, rules=ADA_ALONE)) as (_, run):
        asked = run.session.waiting
    async with open_host(log, signer=SIGNER) as host:
        run = await host.resume(RUN, paying(tool, rules=ADA_OR_BOB), accept_changes=True)
        await trio.testing.wait_all_tasks_blocked()
        assert run.session.waiting == asked
        await host.approve(RUN, asked[0].call, principal="ada")
        await run.session.wait()
    assert tool.runs == 1


async def refusals(log: MemoryLog) -> list[str]:
    """Return the codes of what was refused."""
    return [event.error_code for event in await history(log, RUN) if event.kind == Kind.ACTION_REJECTED]
