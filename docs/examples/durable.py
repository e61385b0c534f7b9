"""Keep runs in a store on disk: a payment waits for a person, who signs for it, while one program stops and another goes on.

Run it with `python docs/examples/durable.py`. It needs no network, and removes what it made. The folder is a store like that of
the commands: of a program that keeps its store, `affidavit sessions`, `watch`, `approve`, `brake`, `export` and the others
work from any terminal, with `--store FOLDER`, while it runs and after it has stopped.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from pydantic import BaseModel

from affidavit.actors.approval_signing import signed_decision
from affidavit.actors.approvals import Decision
from affidavit.actors.checks import Check, CheckResult
from affidavit.actors.events import Kind
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import Host, open_host
from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.policy.load import load_policy
from affidavit.actors.signers.keyfile import create_key_file, load_key_file
from affidavit.actors.signers.port import Signer
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.typed import TypedTool
from affidavit.crypto import Keyring, verify_record

SCRIPT = """{"turns": [
    {"text": "I pay it.", "tool_calls": [{"name": "pay", "input": {"to": "ACME", "amount": "120.00"}}]},
    {"text": "Invoice 7 is paid."}
]}"""

POLICY = """
[grant]
tools = ["pay"]
[[approval]]
tools = ["pay"]
approvers = ["ada"]
signed = true
[approver_keys]
ada = "{ada}"
[[check]]
name = "ledger"
command = ["test", "-s", "ledger.txt"]
idempotent = true
"""


class Payment(BaseModel):
    """Whom to pay, and how much."""

    to: str
    amount: str


def config_for(folder: Path) -> MissionConfig:
    """Return what the run is driven with; whoever resumes it makes the same again."""
    ledger = folder / "ledger.txt"

    async def pay(arguments: Payment) -> str:
        await trio.Path(ledger).write_text(f"{arguments.amount} to {arguments.to}\n")
        return f"{arguments.amount} paid to {arguments.to}"

    async def paid_once() -> CheckResult:
        lines = (await trio.Path(ledger).read_text()).splitlines()
        return CheckResult(len(lines) == 1, f"{len(lines)} payments in the ledger")

    return MissionConfig(
        ScriptModel.from_text(SCRIPT),
        Toolbox([TypedTool("pay", "Pay somebody.", Payment, pay)]),
        policy=load_policy(folder / "policy.toml"),
        checks=(Check("paid once", paid_once, seconds=5, idempotent=True),),
        place=str(folder),  # where the policy's checks run
    )


def signer_of(store: Path, passphrase: bytes) -> Signer:
    """Return the store's signing key, made where there is none. A program that serves is given its passphrase as a secret."""
    key = store / "keys" / "default"
    return load_key_file(key, passphrase) if key.exists() else create_key_file(key, passphrase)


@asynccontextmanager
async def opened(store: Path, signer: Signer) -> AsyncIterator[tuple[SqliteLog, Host]]:
    """Open a store and a host over it; the host closes first, and parks what it still drives."""
    async with (
        open_sqlite_log(store / "runs.sqlite") as log,
        open_host(log, signer=signer) as host,
    ):
        yield log, host


async def main(folder: Path) -> None:
    """Be three programs, one after another."""
    store = folder / "store"
    signer = signer_of(store, b"a passphrase")
    ada = signer_of(folder / "ada", b"a passphrase of her own")  # hers; the policy knows the public half
    (folder / "policy.toml").write_text(POLICY.format(ada=ada.public_key.hex))

    async with opened(store, signer) as (_, host):  # the first, which is stopped while a person is waited for
        run = await host.submit(GoalSpec("Pay invoice 7."), config_for(folder), id="invoice-7")
        async with run.session.subscribe() as events:
            async for event in events:
                if event.kind == Kind.APPROVAL_REQUESTED:
                    break
        asked = run.session.waiting[0]
    print(f"call {asked.call} ({asked.action}) waits for {', '.join(asked.approvers)}")

    async with opened(store, signer) as (_, host):  # the second decides; `affidavit approve` does the same
        decision = Decision(asked.call, True, "ada", "as ordered", asked.args)
        decided = await host.decide("invoice-7", await signed_decision(ada, "invoice-7", asked, decision))
    print(f"{decided.principal} approved it at event {decided.seq}")

    async with opened(store, signer) as (log, host):  # the third goes on where the record stands
        run = await host.resume("invoice-7", config_for(folder))
        print("answer:", await run.session.wait())
        await run.closed()  # by now its record is sealed
        record = io.BytesIO()
        await export(log, run.id, record)

    trusted = Keyring({each.kid: each.public_key for each in (signer, ada)})
    verified = verify_record(record.getvalue(), trusted)
    claimed = verified.governance.outcomes_claimed if verified.governance else 0
    print(f"{len(verified.events)} events verified at {verified.tier}; {claimed} success claimed")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="durable-example-") as place:
        trio.run(main, Path(place))
