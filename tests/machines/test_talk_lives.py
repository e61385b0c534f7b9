"""A conversation through any number of owners that stop, fail or are replaced at any append (G4, S9, S11).

Whatever happens, each message stands on the record at most once however often it was asked for under its id, each round ends in
exactly one terminal event, what a resumed owner knows is what its record says, and the whole verifies as complete in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.errors import LogError, RunParked, SessionFailed, Stalled, WriterFenced
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Told
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.projection import Projection, project, reduce
from affidavit.actors.runtime import GoalRuntime, MissionExecutor, open_runtime
from affidavit.actors.sealer import open_sealer
from affidavit.actors.session import Session, open_session
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.fakes import Fault, LateLog
from tests.actors.mission_kit import RUN, SIGNER, FakeTool, FreeModel, calls, check_record, verified
from tests.environment import LIFE_EXAMPLES

OPENING = {Kind.SESSION_STARTED, Kind.USER_MESSAGE}
SPEC = GoalSpec("Pay.", max_steps=4)


@dataclass(frozen=True)
class Life:
    """One owner.

    Attributes:
        says: How many messages it wants answered, each after the last was.
        fails: After how many appends of its life the log fails; 0 for never.
        fault: How.
        leaves: After how many appends it is left by a cancellation; 0 for never.
    """

    says: int
    fails: int
    fault: Fault
    leaves: int


LIVES = st.lists(
    st.builds(Life, st.integers(0, 3), st.integers(0, 25), st.sampled_from(list(Fault)), st.integers(0, 25)),
    max_size=5,
)


class LeavingLog(LateLog):
    """A log that has its owner cancelled right before one append."""

    leaves_at = 0
    scope: trio.CancelScope | None = None

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Cancel, if it is time to, and append."""
        self._leave_in_time()
        return await super().append(entries)

    def submit(self, entry: Entry, told: Told) -> None:
        """Cancel, if it is time to, and submit."""
        self._leave_in_time()
        super().submit(entry, told)

    def _leave_in_time(self) -> None:
        if self.leaves_at and self.appends + 1 >= self.leaves_at and self.scope is not None:
            self.scope.cancel()


class World:
    """What outlives the owners: the log, what was paid, and how many messages are on the record for certain."""

    def __init__(self) -> None:
        self.truth = MemoryLog()
        self.log = LeavingLog(self.truth)
        self.paid: list[str] = []
        self.answered = 0
        pay = FakeTool("pay", self._pay)
        # Each round asks for a payment and then answers; a turn of the conversation is known by its place in it.
        self.config = MissionConfig(FreeModel(self._answer), Toolbox([pay]), backoff_seconds=0)

    async def _pay(self, _arguments: object) -> str:
        await trio.lowlevel.checkpoint()
        self.paid.append("paid")
        return "paid"

    async def _answer(self, position: int) -> ModelReply:
        await trio.lowlevel.checkpoint()
        return ModelReply(f"answer {position // 2}") if position % 2 else calls("pay")

    async def life(self, life: Life) -> None:
        """Own the run for a while: to the end of what it wants to say, or until it fails or is left."""
        self.log.reopen()
        self.log._at = frozenset({self.log.appends + life.fails} if life.fails else ())
        self.log._fault = life.fault
        with suppress(LogError, SessionFailed, RunParked, trio.Cancelled), trio.CancelScope() as scope:
            self.log.scope = scope
            self.log.leaves_at = self.log.appends + life.leaves if life.leaves else 0
            async with (
                open_sealer(self.log, SIGNER) as sealer,
                open_session(self.log, MemoryBus(), id=RUN, sealer=sealer) as session,
                open_runtime(MissionExecutor(self.config), self.log) as runtime,
            ):
                await self._live(session, runtime, life.says)
        self.log.leaves_at = 0

    async def _live(self, session: Session, runtime: GoalRuntime, says: int) -> None:
        if session.projection.objective:
            await session.resume(runtime, GoalKey(RUN))
        else:
            await session.submit(runtime, SPEC)
        await ended(session)
        for _ in range(says):
            # Whoever cannot know whether it was said asks again under the same id.
            cause = f"web/{self.answered}"
            at = await session.say(f"message {self.answered}", principal="ada", causation_id=cause)
            again = await session.say("something else", principal="eve", causation_id=cause)
            assert at == again
            await ended(session)
            self.answered += 1


async def ended(session: Session) -> None:
    """Wait for the end of the round; that it stalled is an end too."""
    with suppress(Stalled):
        await session.wait()


def rounds(events: tuple[Event, ...]) -> list[str]:
    """The events that open and end rounds, in order."""
    return [event.kind for event in events if event.kind in OPENING or event.kind in TERMINAL_KINDS]


def check(events: tuple[Event, ...]) -> None:
    """Check what holds after any life."""
    told = rounds(events)
    ends = [event.seq for event in events if event.kind in TERMINAL_KINDS]
    # What the round that is going has asked for need not be answered yet.
    check_record(events[: ends[-1]] if ends else events)
    opened = [kind in OPENING for kind in told]
    assert opened == [index % 2 == 0 for index in range(len(told))]
    said = [event.text for event in events if event.kind == Kind.USER_MESSAGE]
    assert said == [f"message {number}" for number in range(len(said))]
    grown, status = Conversation(), Projection()
    for event in events:
        grown.apply(event)
        status = reduce(status, event)
    assert grown == fold(events)
    assert status == project(events)
    assert status.terminal is (bool(told) and len(told) % 2 == 0)


@settings(max_examples=LIFE_EXAMPLES)
@given(lives=LIVES)
async def test_a_conversation_survives_whatever_happens_to_its_owners(lives: list[Life]) -> None:
    """A healthy owner then finishes what stands and says one thing more: every round is answered, once, in one record."""
    world = World()
    for life in lives:
        before = await history(world.truth, RUN)
        await world.life(life)
        events = await history(world.truth, RUN)
        assert events[: len(before)] == before
        check(events)
    await world.life(Life(1, 0, Fault.FULL, 0))
    events = await history(world.truth, RUN)
    check(events)
    told = rounds(events)
    assert told[-1] in TERMINAL_KINDS
    assert len(told) == 2 * (1 + world.answered)
    # No payment is made twice for one call, and none is made that no call asked for.
    assert len(world.paid) <= sum(event.kind == Kind.TOOL_CALL for event in events)
    assert (await verified(world.truth)).complete is True
