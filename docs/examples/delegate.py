"""Hand parts of a goal to an agent of another kind, see that no part has more than it was given, and print the tree.

Run it with `python docs/examples/delegate.py`. It needs no network and no key: both models are scripts, and the log is in memory.
One part was handed over without the tool that pays. Its agent tries to pay all the same, and is refused, on the record.
"""

from __future__ import annotations

import io

import trio
from pydantic import BaseModel

from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.policy.agents import spawn_tool
from affidavit.actors.policy.model import Agent, Budget, Delegation, Grant, Policy
from affidavit.actors.projection import Projection
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.actors.toolbox.port import Tool
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.typed import TypedTool
from affidavit.crypto import Keyring, verify_record

MANAGER = """{"turns": [
    {"text": "Two clerks can do that at once.", "tool_calls": [
        {"name": "spawn", "input": {"agent": "clerk", "objective": "What is open in March?", "tools": ["open_invoices"]}},
        {"name": "spawn", "input": {"agent": "clerk", "objective": "Settle April."}}
    ]},
    {"text": "March was looked at, April is settled."}
]}"""
CLERK = """{"turns": [
    {"text": "I look, and pay.", "tool_calls": [
        {"name": "open_invoices", "input": {"of": "ACME"}},
        {"name": "pay", "input": {"of": "ACME"}}
    ]},
    {"text": "That is all that I could do."}
]}"""

POLICY = Policy(
    grant=Grant(tools=("spawn", "open_invoices", "pay")),
    budget=Budget(steps=10),  # for all goals of the run together
    delegation=Delegation(depth=1, children=4),
    agent=(
        Agent(
            name="clerk",
            description="Looks invoices up, and pays them.",
            system="You are a clerk. Do only what you are asked to.",
            tools=("open_invoices", "pay"),
            model="script:clerk",
            max_steps=4,
        ),
    ),
)


class Account(BaseModel):
    """Whose invoices."""

    of: str


async def open_invoices(arguments: Account) -> str:
    """Look them up."""
    await trio.lowlevel.checkpoint()
    return f"{arguments.of}: 120.00 open"


async def pay(arguments: Account) -> str:
    """Pay them."""
    await trio.lowlevel.checkpoint()
    return f"120.00 paid to {arguments.of}"


def print_tree(status: Projection) -> None:
    """Print the goals that work was handed to, as the run's status has them."""
    for child in status.fanout:
        print(f"  {child.id} of {child.parent}: {child.objective}")
        print(f"    {child.state} after {child.turns} turns, {child.blocked} refused: {child.result}")
        print(f"    its own events are {child.seal}")


async def main() -> None:
    """Run one goal that hands its work on, and verify its record."""
    log, signer = MemoryLog(), EphemeralSigner()
    tools: list[Tool] = [
        TypedTool("open_invoices", "Look open invoices up.", Account, open_invoices, idempotent=True),
        TypedTool("pay", "Pay all open invoices.", Account, pay),
        # Whoever opens the models says which text of the policy names which.
        spawn_tool(POLICY, {"script:clerk": ScriptModel.from_text(CLERK, name="clerk")}),
    ]
    config = MissionConfig(ScriptModel.from_text(MANAGER), Toolbox(tools), policy=POLICY)

    async with open_host(log, signer=signer) as host:
        run = await host.submit(GoalSpec("Settle the quarter."), config, id="quarter")
        print("answer:", await run.session.wait())
        await run.closed()  # by now its record is sealed
    print_tree(run.session.projection)

    record = io.BytesIO()
    await export(log, run.id, record)
    verified = verify_record(record.getvalue(), Keyring({signer.kid: signer.public_key}))
    print(f"{len(verified.events)} events verified at {verified.tier}; complete: {verified.complete}")


if __name__ == "__main__":
    trio.run(main)
