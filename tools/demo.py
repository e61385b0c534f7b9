"""`affidavit demo`: the whole arc on one screen, offline, with a throw-away key. Each line is printed after it was done."""

from __future__ import annotations

import io
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import trio

from affidavit.actors.approvals import Decision
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.evidence import export, prove
from affidavit.actors.history import history
from affidavit.actors.host import Host, Run, open_host
from affidavit.actors.logs.port import LogReader
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.crypto.event_proof import verify_event_proof
from affidavit.crypto.failures import AffidavitError
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.record import VerifiedRecord, verify_record
from affidavit.tools.demo_attacks import attacks
from affidavit.tools.demo_scene import DENIED, PERSON, Ledger, goal, model, opinion, policy
from affidavit.tools.demo_words import egress, payments, words
from affidavit.tools.painter import Painter
from affidavit.tools.store_place import store_file

DROP_AFTER: Final = 17


@dataclass(frozen=True, slots=True)
class _Files:
    """What the demo leaves behind."""

    record: Path
    proof: Path


@final
class Demo:
    """One showing. `run_demo` makes it and plays the scenes in order."""

    def __init__(self, directory: Path, painter: Painter) -> None:
        """Prepare a showing that leaves its files in `directory`."""
        self._directory = directory
        self._say = painter
        self._signer = EphemeralSigner()
        self._keyring = Keyring()
        self._keyring.add(self._signer.kid, self._signer.public_key)
        self._inputs: dict[str, str] = {}

    async def play(self) -> None:
        """Play every scene.

        Raises:
            AffidavitError: Something did not come out as the demo says; it stops there.
            OSError: The files could not be written.
        """
        self._say.title("affidavit demo: an AI agent's session that is signed evidence as well")
        self._say.line("When an agent acts for you, this keeps every step in a record that cannot be")
        self._say.line("changed unnoticed, and that anyone can check without having to trust you.")
        self._say.line("Here a script stands in for the model and for Ann; all else is the product.")
        async with open_sqlite_log(store_file(self._directory / "store")) as log:
            async with open_host(log, signer=self._signer) as host:
                run = await self._stream(host)
                await run.closed()
            events = await history(log, run.id)
            self._refusals(events)
            files = await self._seal(log, run.id, events)
            await self._attack(log, run.id)
            await self._prove(log, run.id, events, files)
        self._limits()
        self._next(run.id, files)

    async def _stream(self, host: Host) -> Run:
        self._say.scene(1, "Somebody asks an agent to settle a small ledger. Each step becomes an")
        self._say.line("   event, on disk before it is shown. (The number is its place in the run.)")
        config = MissionConfig(model=model(), toolbox=Ledger().toolbox(), policy=policy())
        run = await host.submit(goal(), config)
        seen: list[int] = []
        await self._watch(run, seen, 0, upto=DROP_AFTER)
        dropped_at = seen[-1]
        await self._decide(host, run)
        await run.session.wait()
        self._say.line(f"   ...the viewer's connection drops after event {dropped_at}; the run goes on...")
        await self._watch(run, seen, dropped_at, upto=run.session.projection.events)
        if seen != list(range(1, len(seen) + 1)):
            raise AffidavitError(f"the viewer saw {seen}")
        self._say.scene(2, f"It came back asking for what follows event {dropped_at}, and in all it saw")
        self._say.line(f"   {len(seen)} of {len(seen)} events, each exactly once.")
        return run

    async def _watch(self, run: Run, seen: list[int], after: int, *, upto: int) -> None:
        async with run.session.subscribe(after) as events:
            async for event in events:
                seen.append(event.seq)
                if event.kind == Kind.TOOL_CALL:
                    self._inputs[event.tool_use_id] = event.input
                line = words(event, self._inputs)
                if line:
                    self._say.event(event.seq, *line)
                if event.seq >= upto:
                    return

    async def _decide(self, host: Host, run: Run) -> None:
        """Do as the person does who is asked: read the exact arguments, and decide about them."""
        calls: dict[str, Event] = {}
        async with run.session.subscribe() as events:
            async for event in events:
                if event.kind in TERMINAL_KINDS:
                    return
                if event.kind == Kind.TOOL_CALL:
                    calls[event.tool_use_id] = event
                elif event.kind == Kind.APPROVAL_REQUESTED:
                    shown = calls[event.tool_use_id]
                    approved, why = opinion(shown.input)
                    await host.decide(run.id, Decision(event.call, approved, PERSON, why, shown.args_digest))

    def _refusals(self, events: tuple[Event, ...]) -> None:
        refused = next(event for event in events if event.kind == Kind.ACTION_REJECTED)
        self._say.scene(3, f"The agent was never granted {DENIED!r}: the call was refused before")
        self._say.line(f"   anything ran, and that is on the record: event {refused.seq}, {refused.fault}.")
        blocked = egress(events)
        self._say.line("   Then it tried the address where clouds hand out credentials: blocked")
        self._say.line(f"   before any connection was made, and recorded: event {blocked.seq}.")
        paid, asked_anew = payments(events)
        self._say.line(
            f"   A payment needs a person: {PERSON.title()} approved the exact arguments (event {paid.seq})."
        )
        self._say.line("   With another amount that approval is worth nothing: asked about it anew,")
        self._say.line(f"   {PERSON.title()} refused (event {asked_anew.seq}, {asked_anew.error_class}).")

    async def _seal(self, log: LogReader, run_id: str, events: tuple[Event, ...]) -> _Files:
        buffer = io.BytesIO()
        sealed = await export(log, run_id, buffer)
        record = buffer.getvalue()
        files = _Files(self._directory / f"{run_id}.provetrail", self._directory / f"{run_id}.proof")
        await trio.Path(files.record).write_bytes(record)
        verified = verify_record(record, self._keyring)
        self._say.scene(4, f"The run ended and was sealed: one signature over all {sealed.size} events.")
        self._say.line(f"   root {sealed.root.hex()}")
        self._say.line(f"   key  {self._signer.public_key.did_key}")
        self._tiers(verified)
        return files

    def _tiers(self, verified: VerifiedRecord) -> None:
        rules = verified.governance
        if rules is None or not verified.complete:
            raise AffidavitError("the demo's own record is not complete")
        self._say.good("L1", "every event is in the one exact form, in order, of one run")
        self._say.good("L2", "the signature holds, and the events rebuild the signed root")
        self._say.good(
            "L4",
            f"{rules.admitted} actions admitted before they ran, {rules.refused} refused, "
            f"{rules.outcomes_claimed} successes claimed",
        )

    async def _attack(self, log: LogReader, run_id: str) -> None:
        record = await self._record(log, run_id)
        self._say.scene(5, "Now the record is attacked. Each copy is refused, with a code saying why:")
        for attack in await attacks(
            record.events, await self._checkpoint(log, run_id), self._signer, self._keyring
        ):
            await trio.Path(self._directory / attack.file).write_bytes(attack.record)
            self._say.bad(attack.code, attack.title)
        self._say.line("   (The signature of the last one holds. The rules, tier L4, caught it.)")

    async def _record(self, log: LogReader, run_id: str) -> VerifiedRecord:
        buffer = io.BytesIO()
        await export(log, run_id, buffer)
        return verify_record(buffer.getvalue(), self._keyring)

    async def _checkpoint(self, log: LogReader, run_id: str) -> bytes:
        seals = [event for event in await history(log, run_id) if event.kind == Kind.RECORD_SEALED]
        checkpoint = seals[-1].detail["checkpoint"]
        if not isinstance(checkpoint, bytes):
            raise AffidavitError("the seal holds no checkpoint")
        return checkpoint

    async def _prove(self, log: LogReader, run_id: str, events: tuple[Event, ...], files: _Files) -> None:
        refused = next(event for event in events if event.kind == Kind.ACTION_REJECTED)
        proof = await prove(log, run_id, refused.seq)
        await trio.Path(files.proof).write_bytes(proof)
        shown = verify_event_proof(proof, self._keyring)
        self._say.scene(6, f"One event can be handed over alone: event {refused.seq} with its proof is")
        self._say.line(
            f"   {len(proof)} bytes, and verifies (L3) as number {shown.index + 1} of {shown.size} under the same root."
        )

    def _limits(self) -> None:
        self._say.scene(7, "What all this does not prove:")
        self._say.line("   - that the tools told the truth about the world: only that this was recorded;")
        self._say.line("   - who the key belongs to: you must get it from its owner yourself;")
        self._say.line("   - that nothing happened after the seal, or in a run that was never shown.")

    def _next(self, run_id: str, files: _Files) -> None:
        key = self._signer.public_key
        self._say.scene(8, "Left in the folder below: the record, its proof, tampered copies, the store.")
        self._say.line("   Next: a real model (see README); this record checked; checked by another")
        self._say.line("   project's tool (pip install provetrail):")
        self._say.command('affidavit run "Summarise this project" --model local --workspace .')
        self._say.command(f"affidavit verify {shlex.quote(str(files.record))} --key {key.did_key}={key.hex}")
        self._say.command(f"python -m provetrail {shlex.quote(str(files.record))} {key.hex}")


async def run_demo(directory: Path) -> int:
    """Play the demo and leave its files in a folder, which is made if it is not there.

    Args:
        directory: Where the files go.

    Returns:
        The exit code: 0.

    Raises:
        AffidavitError: Something did not come out as it should.
        OSError: The folder or a file could not be written.
    """
    await trio.Path(directory).mkdir(parents=True, exist_ok=True)
    await Demo(directory, Painter()).play()
    return 0
