"""Talk to a run after its end, and begin another from a point of it; both are records that verify.

Run it with `python docs/examples/conversation.py`. It needs no network and no key: the model is a script, the log is in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import trio

from affidavit.actors.events import Kind
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.crypto import Keyring, VerifiedRecord, verify_record

SCRIPT = """{"turns": [
    {"text": "The ledger is settled: 120.00 are owed to ACME."},
    {"text": "Because the invoice of May was paid twice."}
]}"""


async def main() -> None:
    """Run a goal, ask about its answer, and take another way from the same point."""
    log, signer = MemoryLog(), EphemeralSigner()
    keyring = Keyring()
    keyring.add(signer.kid, signer.public_key)
    config = MissionConfig(ScriptModel.from_text(SCRIPT))

    async with open_host(log, signer=signer) as host:
        run = await host.submit(GoalSpec("Settle the ledger."), config, id="ledger")
        print("ada:    Settle the ledger.")
        print("agent: ", await run.session.wait())
        await run.closed()
        end = len(await history(log, "ledger"))

        run = await host.say("ledger", config, "Why so much?", principal="ada")
        print("ada:    Why so much?")
        print("agent: ", await run.session.wait())
        await run.closed()

        # The fork knows what was said up to the first answer, and nothing of what came after.
        fork = await host.fork("ledger", end, config, "And how did that come?", id="ledger-2")
        print("fork:  ", await fork.session.wait())
        await fork.closed()

    whole = await verified(log, "ledger", keyring)
    print(f"ledger:   {len(whole.events)} events, complete: {whole.complete}")
    other = await verified(log, "ledger-2", keyring)
    started = (await history(log, "ledger-2"))[0]
    origin = started.detail["fork"]
    if started.kind == Kind.SESSION_STARTED and isinstance(origin, Mapping):
        print(f"ledger-2: {len(other.events)} events, forked from {origin['run']} at {origin['n']}")


async def verified(log: MemoryLog, run_id: str, keyring: Keyring) -> VerifiedRecord:
    """Export a run as an auditor would get it, and verify it with nothing but the public key."""
    file = BytesIO()
    await export(log, run_id, file)
    return verify_record(file.getvalue(), keyring)


if __name__ == "__main__":
    trio.run(main)
