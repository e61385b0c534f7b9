"""A governed run whose log fails at the very append that counts: G1 and G4, through a whole session under a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import trio.testing

from affidavit.actors.clock import SystemClock
from affidavit.actors.deciders.port import MODEL_ACTION
from affidavit.actors.errors import LogError, SessionFailed, WriterFenced
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.inbox import post, request_event
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Log, Told
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.model import Breakers, Budget, Grant, Policy
from affidavit.actors.recovery import INTERRUPTED_TEXT
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.crypto.event import decode_event
from tests.actors.fakes import Fault, FaultLog
from tests.actors.mission_kit import DONE, RUN, Ended, FakeTool, WatchedModel, calls, replies, run_to_end

SPEC = GoalSpec("Settle the ledger.")
POLICY = Policy(
    grant=Grant(tools=("pay",)),
    budget=Budget(steps=9, tokens=10**6, seconds=3600),
    breakers=Breakers(failures=3, repeated_calls=3),
)


class Acts:
    """A run that pays once: its model, its tool, and how often each was really at work."""

    def __init__(self) -> None:
        self.model = WatchedModel(replies(calls("pay"), DONE))
        self.tool = FakeTool("pay")

    async def run(self, log: Log, *, resume: bool = False) -> Ended:
        """Drive it to its end."""
        config = MissionConfig(self.model, Toolbox([self.tool]), policy=POLICY)
        return await run_to_end(log, config, SPEC, resume=resume)


class NotedLog(FaultLog):
    """A log that notes of each append which types of events it brought."""

    def __init__(self) -> None:
        super().__init__(MemoryLog())
        self.brought: list[tuple[tuple[str, str], ...]] = []

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Note it, and append."""
        self._note(entries)
        return await super().append(entries)

    def submit(self, entry: Entry, told: Told) -> None:
        """Note it, and submit."""
        self._note((entry,))
        super().submit(entry, told)

    def _note(self, entries: Sequence[Entry]) -> None:
        events = [decode_event(row) for entry in entries for row in entry.rows]
        self.brought.append(tuple((event.type, str(event.payload.get("action", ""))) for event in events))


async def append_of(stored_type: str, action: str) -> int:
    """The number of the append that brings an event of an action, in an undisturbed run."""
    log = NotedLog()
    await Acts().run(log)
    return next(n for n, brought in enumerate(log.brought, 1) if (stored_type, action) in brought)


async def failed_at(number: int, fault: Fault) -> tuple[Acts, FaultLog, tuple[Event, ...]]:
    """A run whose log failed at one append, opened again, and what stands on it."""
    acts, log = Acts(), FaultLog(MemoryLog(), at={number}, fault=fault)
    with pytest.raises((SessionFailed, LogError)):
        await acts.run(log)
    assert log.faults == 1
    log.reopen()
    return acts, log, await history(log, RUN)


@pytest.mark.parametrize("fault", Fault)
async def test_g1_a_tool_whose_admission_cannot_be_recorded_does_not_run(
    fault: Fault, autojump_clock: trio.testing.MockClock
) -> None:
    """Not even where it was written and only the word of it was lost: then it counts as interrupted, and is not run either."""
    acts, log, stood = await failed_at(await append_of("dispatch.start", "pay"), fault)
    assert acts.tool.runs == 0
    admitted = [event for event in stood if event.kind == Kind.ACTION_ADMITTED and event.action == "pay"]
    assert len(admitted) == (1 if fault is Fault.WRITTEN else 0)
    resumed = await acts.run(log, resume=True)
    assert resumed.answer == DONE.text
    assert acts.tool.runs == (0 if fault is Fault.WRITTEN else 1)
    assert (resumed.results == [INTERRUPTED_TEXT]) is (fault is Fault.WRITTEN)


@pytest.mark.parametrize("fault", Fault)
async def test_g1_a_model_whose_admission_cannot_be_recorded_is_not_asked(
    fault: Fault, autojump_clock: trio.testing.MockClock
) -> None:
    """The turn is neither announced twice nor paid for unseen: what was written of it is closed and spent, then it is asked."""
    acts, log, stood = await failed_at(await append_of("dispatch.start", MODEL_ACTION), fault)
    assert acts.model.requests == []
    announced = [event for event in stood if event.kind == Kind.TURN_STARTED]
    assert len(announced) == (1 if fault is Fault.WRITTEN else 0)
    resumed = await acts.run(log, resume=True)
    assert resumed.answer == DONE.text
    assert len(acts.model.requests) == 2
    assert [event.turn for event in resumed.of(Kind.TURN_STARTED)] == [1, 2]
    faults = [event.error_class for event in resumed.of(Kind.ACTION_COMPLETED) if event.error_class]
    assert faults == ([FaultClass.INTERRUPTED] if fault is Fault.WRITTEN else [])


@pytest.mark.parametrize("fault", Fault)
async def test_g4_what_was_done_is_not_done_again(
    fault: Fault, autojump_clock: trio.testing.MockClock
) -> None:
    """The payment ran and its end could not be recorded: if it stands, so does its result; if not, the model is told so."""
    acts, log, _ = await failed_at(await append_of("dispatch.end", "pay"), fault)
    assert acts.tool.runs == 1
    resumed = await acts.run(log, resume=True)
    assert resumed.answer == DONE.text
    assert acts.tool.runs == 1
    told = "{}" if fault is Fault.WRITTEN else INTERRUPTED_TEXT
    assert resumed.results == [told]
    shown = [message for message in acts.model.requests[-1].messages if message.role == "tool"]
    assert [(message.text, message.is_error) for message in shown] == [(told, told == INTERRUPTED_TEXT)]
    (end,) = [event for event in resumed.of(Kind.ACTION_COMPLETED) if event.action == "pay"]
    assert end.error_class == ("" if fault is Fault.WRITTEN else FaultClass.INTERRUPTED)


async def test_a_cancellation_found_on_the_way_to_an_action_ends_the_run(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Asked for by another process while a tool works: the next action looks first and is not begun, and the run is cancelled."""
    log = MemoryLog()

    async def ask(arguments: Mapping[str, object]) -> str:
        request = request_event(Kind.REQUEST_CANCEL, principal="ann", reason="enough")
        # Past the bus, so that only the look before the next admission can find it.
        await post(log, RUN, request, SystemClock())
        return "asked"

    pay = FakeTool("pay")
    config = MissionConfig(replies(calls("ask", "pay"), DONE), Toolbox([FakeTool("ask", ask), pay]))
    run = await run_to_end(log, config, SPEC)
    assert (run.error_class, pay.runs) == (FaultClass.CANCELLED, 0)
    (stalled,) = run.of(Kind.STALLED)
    assert (stalled.principal, stalled.err) == ("ann", "enough")
