"""Bring a loop of your own: a clerk that is no language model, driven, watched, parked, resumed and sealed like any other run.

Run it with `python docs/examples/own_loop.py`. The clerk decides by a few lines of code; what makes it a run is that it reports
what it does, acts through the waist, and knows nothing but what its stream says. So it can stop anywhere and go on elsewhere.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import final

import trio

from affidavit.actors.conversation import Conversation, PendingCall, fold
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.host import Run, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import LogReader
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.nurseries import open_owned_nursery
from affidavit.actors.recovery import closing_events, result_events, turn_completed, unanswered
from affidavit.actors.reporter import Reporter
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.actors.work import Done, Permit
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.record import verify_record


class Office:
    """The world outside: invoices to look up, and payments that are made for good."""

    def __init__(self) -> None:
        self.due = {"A-1": 120, "A-2": 75}
        self.payments: list[str] = []
        self.archive_is_open = trio.Event()

    async def look_up(self, invoice: str) -> str:
        if invoice == "A-2":
            await self.archive_is_open.wait()
        await trio.lowlevel.checkpoint()
        return str(self.due[invoice])

    async def pay(self, invoice: str) -> str:
        await trio.lowlevel.checkpoint()
        self.payments.append(invoice)
        return f"{invoice} is paid"

    async def do(self, call: PendingCall) -> str:
        return await {"look_up": self.look_up, "pay": self.pay}[call.name](json.loads(call.input)["invoice"])


IDEMPOTENT = {"look_up"}  # may be run again when a run is resumed; a payment may not


def next_step(conversation: Conversation) -> tuple[str, str] | None:
    """Decide: the next tool and invoice, or None once everything is paid. This is where a model would be asked."""
    done = {
        (call.name, json.loads(call.input)["invoice"])
        for message in conversation.messages
        for call in message.tool_calls
    }
    steps = [(tool, invoice) for invoice in ("A-1", "A-2") for tool in ("look_up", "pay")]
    return next((step for step in steps if step not in done), None)


@final
class ClerkGoal:
    """One goal, and the task that drives it."""

    def __init__(self, conversation: Conversation, reporter: Reporter) -> None:
        self.ledger = MissionLedger(conversation, reporter)
        self.waist = Dispatcher(self.ledger, CapabilityGrant(frozenset({"look_up", "pay"})))
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.failure: Exception | None = None

    @property
    def status(self) -> GoalStatus:
        c = self.ledger.conversation
        return GoalStatus(c.phase, c.last_text, c.turn, active=not self.ended.is_set())


@final
class ClerkRuntime:
    """Implements the `Runtime` port. `hear` is of its optional part, so that approvals and the brake count here too."""

    def __init__(self, log: LogReader, office: Office, nursery: trio.Nursery) -> None:
        self._log = log
        self._office = office
        self._nursery = nursery
        self._goals: dict[str, ClerkGoal] = {}
        # What is heard of a goal while its stream is being read.
        self._heard: dict[str, list[Event]] = {}

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        return {"model": "clerk/1"}

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        await self._begin(spec.name, reporter)
        return GoalKey(spec.name)

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        await self._begin(key.name, reporter)

    async def status(self, key: GoalKey) -> GoalStatus:
        await trio.lowlevel.checkpoint()
        goal = self._goals[key.name]
        if goal.failure is not None:
            raise goal.failure
        return goal.status

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        goal = self._goals.get(key.name)
        if goal is not None:
            goal.waist.stop_fault = fault
            goal.scope.cancel(reason=f"stopped as {fault}")
            await goal.ended.wait()

    def hear(self, key: GoalKey, events: tuple[Event, ...]) -> None:
        if key.name in self._heard:
            self._heard[key.name].extend(events)
        elif key.name in self._goals:
            self._goals[key.name].ledger.hear(events)

    async def _begin(self, name: str, reporter: Reporter) -> None:
        heard = self._heard[name] = []
        try:
            goal = ClerkGoal(fold(await history(self._log, name)), reporter)
        finally:
            del self._heard[name]
        self._goals[name] = goal
        goal.ledger.hear(heard)
        self._nursery.start_soon(self._drive, goal, name=f"clerk of {name}")

    async def _drive(self, goal: ClerkGoal) -> None:
        try:
            with goal.scope:
                await self._work(goal)
        except Exception as error:
            goal.failure = error  # `status` raises it, and the session that watches tells its caller
        finally:
            goal.ended.set()

    async def _work(self, goal: ClerkGoal) -> None:
        """Do the next thing that the stream lacks, until nothing is left."""
        ledger = goal.ledger
        c = ledger.conversation
        # What an earlier driver had begun when it was killed is closed first.
        closing = closing_events(c)
        if closing or c.phase is Phase.PENDING:
            await ledger.record(*closing, Event(Kind.GOAL_PHASE, detail={"phase": "running"}))
        while True:
            if c.pending:
                await self._act(goal, next(iter(c.pending.values())))
            elif c.turn_open and c.answered:
                await ledger.record(turn_completed(c))
            elif (step := next_step(c)) is not None:
                await ledger.record(*asked(c.turn + 1, *step))
            else:
                await ledger.record(*concluded(c.turn + 1, "All invoices are paid."))
                return

    async def _act(self, goal: ClerkGoal, call: PendingCall) -> None:
        """Run one call through the waist: nothing begins before its admission is durable."""
        c, again = goal.ledger.conversation, call.name in IDEMPOTENT

        async def work(_permit: Permit) -> Done[None]:
            return Done(None, events=results(await self._office.do(call)))

        def results(text: str) -> tuple[Event, ...]:
            result = Event(Kind.TOOL_RESULT, turn=call.turn, tool=call.name, tool_use_id=call.id, result=text)
            return result_events(c, result)

        def stopped(fault: str) -> tuple[Event, ...]:
            if again and fault == FaultClass.INTERRUPTED:
                return ()  # it stays open, and whoever resumes the run does it again
            text = f"{fault}: whether it took effect is unknown"
            return result_events(c, unanswered(call.id, call.name, call.turn, text))

        action = Action(
            call.name,
            turn=call.turn,
            tool_use_id=call.id,
            args_digest=call.args_digest,
            idempotent=again,
        )
        await goal.waist.govern(action, work, refused=lambda denial: results(denial.reason), stopped=stopped)


def asked(turn: int, tool: str, invoice: str) -> tuple[Event, ...]:
    """Return what the clerk says at the beginning of a turn, and the call that it asks for."""
    arguments = json.dumps({"invoice": invoice})
    return (
        Event(Kind.TURN_STARTED, turn=turn),
        Event(Kind.ASSISTANT, turn=turn, text=f"Next: {tool} {invoice}.", stop_reason="tool_use"),
        Event(Kind.TOOL_CALL, turn=turn, tool=tool, tool_use_id=f"t{turn}", input=arguments),
    )


def concluded(turn: int, answer: str) -> tuple[Event, ...]:
    """Return the last turn and the goal's end. The session adds its own terminal event, in the same append."""
    return (
        Event(Kind.TURN_STARTED, turn=turn),
        Event(Kind.ASSISTANT, turn=turn, text=answer, stop_reason="end_turn"),
        Event(Kind.TURN_COMPLETED, turn=turn, stop_reason="end_turn"),
        Event(Kind.GOAL_PHASE, detail={"phase": "converged", "message": answer, "steps": turn}),
    )


@asynccontextmanager
async def open_clerk(log: LogReader, office: Office) -> AsyncIterator[ClerkRuntime]:
    """Open the runtime. Its goals make progress while the block lasts, and none outlives it."""
    async with open_owned_nursery() as nursery:
        yield ClerkRuntime(log, office, nursery)


async def until(run: Run, tool: str, invoice: str) -> None:
    """Print the run as it goes, until the work of this very call has begun."""
    asked_for = ""
    async with run.session.subscribe() as events:
        async for event in events:
            print(event.seq, event.kind, event.text or event.result or event.action)
            if event.kind == Kind.TOOL_CALL and event.tool == tool and invoice in event.input:
                asked_for = event.tool_use_id
            if event.kind == Kind.ACTION_ADMITTED and event.tool_use_id == asked_for:
                return


async def main() -> None:
    """Drive a run half-way, leave it, go on with it elsewhere, and verify its record."""
    log, signer, office = MemoryLog(), EphemeralSigner(), Office()
    clerk = partial(open_clerk, log, office)

    async with open_host(log, signer=signer) as host:
        run = await host.submit(GoalSpec("Pay what is due."), clerk)
        await until(run, "look_up", "A-2")
    # Leaving the host has parked the run in the middle of a look-up: sealed as it stands, plainly incomplete.
    print("parked:", "sealed", f"{run.session.projection.sealed_events}/{run.session.projection.events}")

    office.archive_is_open.set()
    async with open_host(log, signer=signer) as host:
        run = await host.resume(run.id, clerk)
        print("answer:", await run.session.wait())
        await run.closed()
    print("paid:", ", ".join(office.payments))

    record = io.BytesIO()
    await export(log, run.id, record)
    verified = verify_record(record.getvalue(), Keyring({signer.kid: signer.public_key}))
    print(f"{len(verified.events)} events verified at {verified.tier}; complete: {verified.complete}")


if __name__ == "__main__":
    trio.run(main)
