"""Hold a run to a policy: a tool it is not granted, a payment that a person must approve, a connection that no rule allows.

Run it with `python docs/examples/governed.py`. It needs no network and no key: the model is a script, the person is a function,
and the log is in memory. Everything that was refused or approved is on the record that it leaves.
"""

from __future__ import annotations

from decimal import Decimal

import trio
from pydantic import BaseModel

from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import Host, Run, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.policy.model import Approval, Breakers, Budget, Grant, Policy
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.actors.toolbox.http_fetch import http_fetch
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.typed import TypedTool

SCRIPT = """{"turns": [
    {"text": "I pay, and look it up.", "tool_calls": [
        {"name": "pay", "input": {"to": "ACME", "amount": "120.00"}},
        {"name": "delete_ledger", "input": {"to": "nobody", "amount": "0"}},
        {"name": "http_fetch", "input": {"url": "http://169.254.169.254/"}}
    ]},
    {"text": "ACME was paid."}
]}"""

POLICY = Policy(
    grant=Grant(tools=("pay", "http_fetch")),
    budget=Budget(steps=10, seconds=60),
    approval=(Approval(tools=("pay",), approvers=("ada",), expires_seconds=600),),
    breakers=Breakers(repeated_calls=3),
)


class Payment(BaseModel):
    """Whom to pay, and how much."""

    to: str
    amount: Decimal


async def pay(arguments: Payment) -> str:
    """Pay somebody."""
    await trio.lowlevel.checkpoint()
    return f"{arguments.amount} paid to {arguments.to}"


async def decide(host: Host, run: Run) -> None:
    """Do as a person does: look at what waits, with its exact arguments, and approve it by name."""
    async with run.session.subscribe() as events:
        async for event in events:
            print(event.seq, *told(event))
            if event.kind == Kind.APPROVAL_REQUESTED:
                await host.approve(run.id, event.call, principal="ada", reason="as ordered")
            if event.kind == Kind.CONVERGED:
                return


def told(event: Event) -> tuple[str, ...]:
    """Return what is worth telling of an event."""
    return tuple(
        part for part in (event.kind, event.action, event.fault, event.principal, event.reason) if part
    )


async def main() -> None:
    """Run one goal under the policy."""
    tools = [
        TypedTool("pay", "Pay somebody.", Payment, pay),
        TypedTool("delete_ledger", "Delete everything.", Payment, pay),
        http_fetch(),
    ]
    config = MissionConfig(ScriptModel.from_text(SCRIPT), Toolbox(tools), policy=POLICY)
    async with open_host(MemoryLog(), signer=EphemeralSigner()) as host:
        run = await host.submit(GoalSpec("Pay ACME."), config)
        await decide(host, run)
        print("answer:", await run.session.wait())
        await run.closed()
    status = run.session.projection
    print(
        f"{status.admitted} actions admitted, {status.rejected} refused; {status.egress_blocked} connection blocked"
    )


if __name__ == "__main__":
    trio.run(main)
