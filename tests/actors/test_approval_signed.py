"""An approver's own signature: asked for by the policy, checked before the decision is recorded, and kept on the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from trio.testing import MockClock

from affidavit.actors.approvals import Approval, Decision
from affidavit.actors.errors import ApprovalRefused
from affidavit.actors.events import Kind
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.secrets import Secrets
from affidavit.crypto import Keyring
from affidavit.crypto.approval import verify_approval
from tests.actors.approval_kit import ADA, EVE, paying, policy, statement, waiting_run
from tests.actors.mission_kit import RUN, FakeTool, verified

SIGNED = Decision(1, True, "ada", "as agreed")


async def test_a_signed_approval_is_taken_and_kept(autojump_clock: MockClock) -> None:
    """The request says whose keys count; the decision carries the statement, and the statement says what was approved."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool, rules=policy(signed=True, approvers=["ada"]))) as (host, run):
        (asked,) = run.session.waiting
        assert (asked.signed, asked.keys) == (True, {"ada": ADA.public.raw})
        decision = replace(SIGNED, call=asked.call)
        await host.approve(
            RUN,
            asked.call,
            principal="ada",
            reason="as agreed",
            statement=statement(asked, decision),
        )
        await run.session.wait()
    assert tool.runs == 1
    decided = next(e for e in await history(log, RUN) if e.kind == Kind.APPROVAL_DECIDED)
    kept = decided.detail["statement"]
    assert isinstance(kept, bytes)
    said = verify_approval(kept, Keyring()).statement
    assert (said.run, said.call, said.args, said.principal) == (RUN, asked.call, asked.args, "ada")
    await verified(log)


async def test_a_signed_decision_that_holds_a_secret_of_the_run_is_not_taken(
    autojump_clock: MockClock,
) -> None:
    """The secret would be taken out of the event and stand in the statement, and the record would contradict itself."""
    log, tool = MemoryLog(), FakeTool("pay")
    config = replace(
        paying(tool, rules=policy(signed=True, approvers=["ada"])),
        secrets=Secrets(frozenset({"hunter2hunter2"})),
    )
    async with waiting_run(log, config) as (host, run):
        (asked,) = run.session.waiting
        told = Decision(asked.call, True, "ada", "the password is hunter2hunter2")
        with pytest.raises(ApprovalRefused, match="holds a secret") as caught:
            await host.decide(RUN, replace(told, statement=statement(asked, told)))
        assert caught.value.code == "holds_secret"
        assert run.session.waiting == (asked,)
        again = replace(SIGNED, call=asked.call)
        await host.decide(RUN, replace(again, statement=statement(asked, again)))
        await run.session.wait()
    assert tool.runs == 1
    await verified(log)


def turned(data: bytes) -> bytes:
    """The same with its last bit turned, whatever it was."""
    return data[:-1] + bytes([data[-1] ^ 1])


FORGED: dict[str, Callable[[Approval, Decision], bytes]] = {
    "the key of another": lambda asked, decision: statement(asked, decision, EVE),
    "another run": lambda asked, decision: statement(asked, decision, run_id="run-2"),
    "other arguments": lambda asked, decision: statement(replace(asked, args=bytes(32)), decision),
    "another call": lambda asked, decision: statement(replace(asked, call=7), decision),
    "another request": lambda asked, decision: statement(replace(asked, requested=7), decision),
    "another time": lambda asked, decision: statement(replace(asked, expires=7), decision),
    "the opposite": lambda asked, decision: statement(asked, replace(decision, approved=False)),
    "another reason": lambda asked, decision: statement(asked, replace(decision, reason="")),
    "another person": lambda asked, decision: statement(asked, replace(decision, principal="bob")),
    "a bit turned": lambda asked, decision: turned(statement(asked, decision)),
    "no statement at all": lambda asked, decision: b"\xf6",
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_a_statement_that_does_not_hold_decides_nothing(
    forge: Callable[[Approval, Decision], bytes], autojump_clock: MockClock
) -> None:
    """Whatever is wrong with it: refused with its code, nothing recorded, the call goes on waiting."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool, rules=policy(signed=True, approvers=["ada"]))) as (_, run):
        (asked,) = run.session.waiting
        decision = replace(SIGNED, call=asked.call)
        with pytest.raises(ApprovalRefused) as caught:
            await run.session.decide(replace(decision, statement=forge(asked, decision)))
        assert caught.value.code == "signature_invalid"
        assert run.session.waiting == (asked,)
    assert tool.runs == 0


async def test_where_a_signature_is_asked_for_nobody_decides_without_one(autojump_clock: MockClock) -> None:
    """Neither to approve nor to refuse, and nobody whose key the policy does not hold."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool, rules=policy(signed=True))) as (_, run):
        (asked,) = run.session.waiting
        for approved in (True, False):
            with pytest.raises(ApprovalRefused) as caught:
                await run.session.decide(Decision(asked.call, approved, "ada"))
            assert caught.value.code == "signature_needed"
        eve = Decision(asked.call, True, "eve")
        with pytest.raises(ApprovalRefused, match="no key of eve") as caught:
            await run.session.decide(replace(eve, statement=statement(asked, eve, EVE)))
        assert caught.value.code == "signature_invalid"
    assert tool.runs == 0


async def test_a_signature_that_nobody_asked_for_must_hold_all_the_same(autojump_clock: MockClock) -> None:
    """Under the key that it names itself; a false one is worse than none."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (_, run):
        (asked,) = run.session.waiting
        eve = Decision(asked.call, True, "eve")
        with pytest.raises(ApprovalRefused):
            await run.session.decide(
                replace(eve, statement=statement(asked, replace(eve, principal="ada"), EVE))
            )
        await run.session.decide(replace(eve, statement=statement(asked, eve, EVE)))
        await run.session.wait()
    assert tool.runs == 1
