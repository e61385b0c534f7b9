"""What the tests of the waist and the mission share: fakes of the real ports, and one way to drive and check a run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO

import trio

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.codec import decode, encode
from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.errors import LogFull, RunParked, Stalled, WriterFenced
from affidavit.actors.events import Event, Kind, Trust
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import Model, ModelReply, ModelRequest, ToolCall, ToolSpec
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.runtime import GoalRuntime, MissionExecutor, open_runtime
from affidavit.actors.sealer import open_sealer
from affidavit.actors.session import Session, open_session
from affidavit.actors.signers.memory import MemorySigner
from affidavit.crypto import Keyring, SigningKey, Tier, VerifiedRecord, verify_record

RUN = "run-1"
SIGNER = MemorySigner(SigningKey.from_seed(bytes(range(32))))
GOAL = GoalSpec("Settle the ledger.")

Work = Callable[[Mapping[str, object]], Awaitable[str]]
OPEN_SCHEMA = '{"properties":{},"type":"object"}'


class WriterOfLists:
    """A reporter that keeps each append as a tuple of events, read back from their stored form.

    Args:
        fail_at: The append, counted from 1, that fails with `LogFull` and leaves nothing.
        hang_at: The append that never returns.
    """

    def __init__(self, *, fail_at: int = 0, hang_at: int = 0) -> None:
        self.appends: list[tuple[Event, ...]] = []
        self.asked = 0
        self._fail_at = fail_at
        self._hang_at = hang_at

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        return tuple(event for append in self.appends for event in append)

    async def report(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append."""
        self.asked += 1
        number = self.asked
        await trio.lowlevel.checkpoint()
        if number == self._hang_at:
            await trio.sleep_forever()
        if number == self._fail_at:
            raise LogFull("no room (chosen by the test)")
        seq = len(self.events)
        recorded = tuple(
            decode(encode(event, stream=RUN, seq=seq + offset, time=0))
            for offset, event in enumerate(events, 1)
        )
        self.appends.append(recorded)
        return recorded


class FakeTool:
    """A tool whose work is given by the test, and which counts how often it ran.

    Args:
        name: Its name.
        work: What it does; by default it repeats its arguments.
        idempotent: Whether it says that running it twice is harmless.
        schema: Its argument schema.
    """

    def __init__(
        self, name: str, work: Work | None = None, *, idempotent: bool = False, schema: str = OPEN_SCHEMA
    ) -> None:
        self._spec = ToolSpec(name, f"The tool {name}.", schema)
        self._idempotent = idempotent
        self._work = work or repeat
        self.runs = 0

    @property
    def spec(self) -> ToolSpec:
        """What a model is told."""
        return self._spec

    @property
    def idempotent(self) -> bool:
        """As the test says."""
        return self._idempotent

    @property
    def trust(self) -> str:
        """Trusted."""
        return Trust.TRUSTED

    async def run(self, arguments: Mapping[str, object]) -> str:
        """Do what the test gave."""
        self.runs += 1
        return await self._work(arguments)


async def repeat(arguments: Mapping[str, object]) -> str:
    """Return the arguments as JSON."""
    await trio.lowlevel.checkpoint()
    return json.dumps(arguments, sort_keys=True)


class WatchedModel:
    """Any model, with every request that it was shown."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        """That of the model underneath."""
        return self._model.name

    @property
    def digest(self) -> bytes:
        """That of the model underneath."""
        return self._model.digest

    @property
    def supports_tools(self) -> bool:
        """That of the model underneath."""
        return self._model.supports_tools

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Keep the request and ask the model underneath."""
        self.requests.append(request)
        return await self._model.generate(request)


class FreeModel:
    """A model that answers whatever the test's function returns, by position in the conversation; it may be malformed."""

    def __init__(self, answer: Callable[[int], Awaitable[ModelReply]], *, digest: bytes = b"free") -> None:
        self._answer = answer
        self.name = "fake:free"
        self.digest = digest
        self.supports_tools = True

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer the next turn."""
        await trio.lowlevel.checkpoint()
        return await self._answer(sum(message.role == "assistant" for message in request.messages))


def replies(*turns: ModelReply) -> FreeModel:
    """Return a model that says these turns."""

    async def answer(position: int) -> ModelReply:
        await trio.lowlevel.checkpoint()
        return turns[position]

    return FreeModel(answer)


def calls(*names: str) -> ModelReply:
    """Return a turn that calls these tools without arguments, with the ids t1, t2, ..."""
    asked = tuple(ToolCall(f"t{number}", name, "{}") for number, name in enumerate(names, 1))
    return ModelReply("", asked, "tool_use")


DONE = ModelReply("All is settled.")


def script(*turns: Mapping[str, object]) -> ScriptModel:
    """Return a scripted model."""
    return ScriptModel.from_text(json.dumps({"turns": list(turns)}))


class KeptLog:
    """`MemoryLog` that keeps the entries of each append, so that a test can cut it at any boundary."""

    def __init__(self) -> None:
        self.inner = MemoryLog()
        self.appends: list[tuple[Entry, ...]] = []
        self.own = self.inner.own
        self.read = self.inner.read
        self.info = self.inner.info
        self.list = self.inner.list
        self.tips = self.inner.tips

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Append and keep."""
        outcome = await self.inner.append(entries)
        self.appends.append(tuple(entries))
        return outcome

    async def write(self, *events: Event) -> None:
        """Append events to the run past every session, as another program might."""
        info = await self.info(RUN)
        tip = info.tip if info else 0
        rows = tuple(encode(event, stream=RUN, seq=seq, time=0) for seq, event in enumerate(events, tip + 1))
        await self.append([Entry(RUN, tip, rows)])

    async def cut(self, count: int) -> KeptLog:
        """Return a log as a crash right after its append number `count` leaves it."""
        kept = KeptLog()
        for entries in self.appends[:count]:
            await kept.append(entries)
        return kept


@asynccontextmanager
async def session_and_runtime(
    log: Log, config: MissionConfig, *, accept_changes: bool = False, run_id: str = RUN
) -> AsyncIterator[tuple[Session, GoalRuntime]]:
    """Open what a host opens for one run."""
    async with (
        open_sealer(log, SIGNER) as sealer,
        open_session(log, MemoryBus(), id=run_id, sealer=sealer) as session,
        open_runtime(MissionExecutor(config), log, accept_changes=accept_changes) as runtime,
    ):
        yield session, runtime


@dataclass(frozen=True)
class Ended:
    """How a run ended, and all that is on its record.

    Attributes:
        answer: The answer, or the reason of the stall.
        error_class: The fault class of the stall, empty for a converged run.
        events: Everything recorded.
        record: The sealed record, verified at L4.
    """

    answer: str
    error_class: str
    events: tuple[Event, ...]
    record: VerifiedRecord
    conversation: Conversation = field(compare=False, default_factory=Conversation)

    def of(self, *kinds: str) -> list[Event]:
        """Return the events of these kinds."""
        return [event for event in self.events if event.kind in kinds]

    @property
    def results(self) -> list[str]:
        """The texts of all tool results, in order."""
        return [event.result for event in self.of(Kind.TOOL_RESULT)]


async def run_to_end(
    log: Log,
    config: MissionConfig,
    spec: GoalSpec = GOAL,
    *,
    resume: bool = False,
    accept_changes: bool = False,
) -> Ended:
    """Submit a goal, or resume the run, wait for its end, seal it, and verify the record."""
    error_class = ""
    async with session_and_runtime(log, config, accept_changes=accept_changes) as (session, runtime):
        if resume:
            await session.resume(runtime, GoalKey(RUN))
        else:
            await session.submit(runtime, spec)
        try:
            answer = await session.wait()
        except Stalled as stall:
            answer, error_class = stall.reason, stall.error_class
        await session.seal()
    return await ended(log, answer, error_class)


async def park_when(log: Log, config: MissionConfig, ready: trio.Event, spec: GoalSpec = GOAL) -> Ended:
    """Submit a goal and leave its session, by an exception, as soon as `ready` is set."""
    try:
        async with session_and_runtime(log, config) as (session, runtime):
            await session.submit(runtime, spec)
            await ready.wait()
            raise RunParked("the test leaves the block")
    except RunParked as parked:
        return await ended(log, str(parked), "")


async def ended(log: Log, answer: str, error_class: str) -> Ended:
    """Read a run back, verify its sealed record, and check what holds of every record of ours."""
    events = await history(log, RUN)
    record = await verified(log)
    conversation = fold(events)
    check_record(events)
    return Ended(answer, error_class, events, record, conversation)


async def verified(log: Log) -> VerifiedRecord:
    """Export the run and verify it at L4 with its signer's key."""
    file = BytesIO()
    await export(log, RUN, file)
    keyring = Keyring()
    keyring.add(SIGNER.kid, SIGNER.public_key)
    record = verify_record(file.getvalue(), keyring)
    assert record.tier == Tier.L4
    return record


def check_record(events: Sequence[Event]) -> None:
    """Check what holds of every record of ours, however the run went.

    Seqs are dense; within each goal every turn is announced once, in order, and completed at most once, no two calls share an id,
    each result answers an earlier call, once, and each action belongs to the turn announced last; each admission has a number of
    its own in the run and ends at most once. In a run that has ended, every call is answered and every child has folded back.
    """
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    asked: list[tuple[str, str]] = []
    answered: list[tuple[str, str]] = []
    admitted: list[int] = []
    closed: list[int] = []
    announced: dict[str, int] = {}
    completed: dict[str, int] = {}
    for event in events:
        place = (event.goal, event.tool_use_id)
        if event.kind == Kind.TURN_STARTED:
            assert event.turn == announced.get(event.goal, 0) + 1
            announced[event.goal] = event.turn
        elif event.kind == Kind.TURN_COMPLETED:
            assert completed.get(event.goal, 0) < event.turn == announced[event.goal]
            completed[event.goal] = event.turn
        elif event.kind == Kind.TOOL_CALL:
            asked.append(place)
        elif event.kind == Kind.TOOL_RESULT:
            assert place in asked
            answered.append(place)
        elif event.kind == Kind.ACTION_ADMITTED:
            admitted.append(event.call)
            assert event.turn == announced.get(event.goal, 0)
        elif event.kind == Kind.ACTION_COMPLETED:
            assert event.call in admitted
            closed.append(event.call)
        elif event.kind == Kind.ACTION_REJECTED:
            assert event.call not in admitted
            admitted.append(event.call)
    assert len(asked) == len(set(asked))
    assert len(answered) == len(set(answered))
    assert admitted == sorted(set(admitted))
    assert len(closed) == len(set(closed))
    spawned = [event.child for event in events if event.kind == Kind.CHILD_SPAWNED]
    folded = [event.child for event in events if event.kind == Kind.CHILD_COMPLETED]
    assert len(spawned) == len(set(spawned))
    assert len(folded) == len(set(folded))
    assert set(folded) <= set(spawned)
    if any(event.kind in {Kind.CONVERGED, Kind.STALLED} for event in events):
        assert set(asked) == set(answered)
        assert set(folded) == set(spawned)
        assert set(closed) <= set(admitted)
