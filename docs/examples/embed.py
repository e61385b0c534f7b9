"""Embed a session in a trio program: run a goal, follow it live, and end with a record that anyone can verify.

Run it with `python docs/examples/embed.py`. It needs no network and no key: the model is a script, the log is in memory.
"""

from __future__ import annotations

import io

import trio
from pydantic import BaseModel

from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import Run, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.typed import TypedTool
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.record import verify_record

SCRIPT = """{"turns": [
    {"text": "I look at the thermometer.", "tool_calls": [{"name": "temperature", "input": {"room": "lab"}}]},
    {"text": "The lab is at 21 degrees."}
]}"""


class Room(BaseModel):
    """Which room to look at."""

    room: str


async def temperature(arguments: Room) -> str:
    """Return a room's temperature, as a tool would."""
    await trio.lowlevel.checkpoint()
    return f"{arguments.room}: 21 degrees"


async def follow(run: Run) -> None:
    """Print each event as it becomes durable, until the run has ended."""
    async with run.session.subscribe() as events:
        async for event in events:
            print(event.seq, event.kind, event.text or event.result)
            if event.seq == run.session.projection.events and run.session.finished:
                return


async def main() -> None:
    """Run one goal and verify its record."""
    log, signer = MemoryLog(), EphemeralSigner()
    tools = Toolbox(
        [TypedTool("temperature", "Measure a room's temperature.", Room, temperature, idempotent=True)]
    )
    config = MissionConfig(model=ScriptModel.from_text(SCRIPT), toolbox=tools)

    async with open_host(log, signer=signer) as host:
        run = await host.submit(GoalSpec("How warm is the lab?"), config)
        await follow(run)
        print("answer:", await run.session.wait())
        await run.closed()  # by now its record is sealed

    record = io.BytesIO()
    await export(log, run.id, record)
    verified = verify_record(record.getvalue(), Keyring({signer.kid: signer.public_key}))
    print(f"{len(verified.events)} events verified at {verified.tier}; complete: {verified.complete}")


if __name__ == "__main__":
    trio.run(main)
