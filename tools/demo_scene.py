"""The demo's little world: a ledger, five tools on it, a rule, and the script that stands in for a model.

Only the model, and the person who is asked, are stand-ins. The tools do what they say, and everything around them is the product.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Final, final

import trio
from pydantic import BaseModel, ConfigDict

from affidavit.actors.errors import ToolFailed
from affidavit.actors.goal import GoalSpec
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.policy.model import Approval, Grant, Policy
from affidavit.actors.toolbox.http_fetch import http_fetch
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.typed import TypedTool

OBJECTIVE: Final = "Settle the open invoices in the ledger."
PAYMENT: Final = "pay"
FETCH: Final = "http_fetch"
GRANTED: Final = ("read_ledger", "settle_invoice", PAYMENT, FETCH)
DENIED: Final = "wire_transfer"
PERSON: Final = "ann"
OWED: Final = Decimal("200.50")

_TURNS: Final = [
    {"text": "First I read the ledger.", "tool_calls": [{"name": "read_ledger"}]},
    {
        "text": "Two invoices are open. I settle them, and send the money.",
        "tool_calls": [
            {"name": "settle_invoice", "input": {"invoice": "INV-7", "amount": "120.00"}},
            {"name": "settle_invoice", "input": {"invoice": "INV-9", "amount": "80.50"}},
            {"name": DENIED, "input": {"to": "ACME", "amount": "200.50"}},
            {"name": FETCH, "input": {"url": "http://169.254.169.254/latest/meta-data"}},
            {"name": PAYMENT, "input": {"to": "ACME", "amount": "200.50"}},
            {"name": PAYMENT, "input": {"to": "ACME", "amount": "2005.00"}},
        ],
    },
    {"text": "INV-7 and INV-9 are settled, and 200.50 was paid to ACME."},
]


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Nothing(_Arguments):
    """No arguments."""


class Settlement(_Arguments):
    """Which invoice to settle, and with how much."""

    invoice: str
    amount: Decimal


class Transfer(_Arguments):
    """Whom to pay, and how much."""

    to: str
    amount: Decimal


@final
class Ledger:
    """Open amounts by invoice."""

    def __init__(self) -> None:
        """Open the ledger with two unpaid invoices."""
        self._open = {"INV-7": Decimal("120.00"), "INV-9": Decimal("80.50")}

    def toolbox(self) -> Toolbox:
        """Return the tools that exist. That the run is granted only some of them is up to its goal."""
        return Toolbox(
            [
                TypedTool("read_ledger", "List the open invoices.", Nothing, self._read, idempotent=True),
                TypedTool("settle_invoice", "Settle an invoice in full.", Settlement, self._settle),
                TypedTool(PAYMENT, "Pay somebody from the till.", Transfer, self._pay),
                TypedTool(DENIED, "Send money to somebody.", Transfer, self._wire),
                http_fetch(),
            ]
        )

    async def _read(self, arguments: Nothing) -> str:
        await trio.lowlevel.checkpoint()
        return ", ".join(f"{name} {amount} open" for name, amount in self._open.items()) or "nothing is open"

    async def _settle(self, arguments: Settlement) -> str:
        await trio.lowlevel.checkpoint()
        if self._open.get(arguments.invoice) != arguments.amount:
            raise ToolFailed(f"{arguments.invoice} is not open with {arguments.amount}")
        del self._open[arguments.invoice]
        return f"{arguments.invoice} settled with {arguments.amount}"

    async def _pay(self, arguments: Transfer) -> str:
        await trio.lowlevel.checkpoint()
        return f"{arguments.amount} paid to {arguments.to}"

    async def _wire(self, arguments: Transfer) -> str:
        await trio.lowlevel.checkpoint()
        raise ToolFailed("the demo has no bank")


def model() -> ScriptModel:
    """Return the scripted model."""
    return ScriptModel.from_text(json.dumps({"turns": _TURNS}), name="demo")


def goal() -> GoalSpec:
    """Return the demo's goal, which is granted four of the five tools."""
    return GoalSpec(OBJECTIVE, tools=GRANTED)


def policy() -> Policy:
    """Return what the operator lays down: a payment needs a person, and nothing may be connected to."""
    rule = Approval(tools=(PAYMENT,), approvers=(PERSON,))
    return Policy(grant=Grant(tools=GRANTED), approval=(rule,))


def opinion(arguments: str) -> tuple[bool, str]:
    """Return what the person decides about a payment, having read its exact arguments, and why."""
    if Transfer.model_validate_json(arguments).amount == OWED:
        return True, "that is what we owe"
    return False, f"we owe {OWED}"
