"""A run through any number of owners, with all that can happen to it in between (S1, S2, S6, S7, S10, S11, S12).

Reports, requests from elsewhere, failed appends, jumps of the clock and a second owner that tries, in any order, under one owner
after the other: seqs are dense, nothing acknowledged is lost, a reader that comes back at its cursor misses and repeats nothing,
every seal is of what stands, and each request has at most one effect and exactly one answer in the end.
"""

from __future__ import annotations

from collections import Counter
from io import BytesIO

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus, inbox_subject
from affidavit.actors.errors import LogError, RunFinished, RunOwned, SealRefused, SessionFailed
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalKey
from affidavit.actors.history import history
from affidavit.actors.inbox import inbox_of, post, request_event
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.sealer import open_sealer
from affidavit.actors.session import Session, open_session
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.crypto import Keyring, verify_record
from tests.actors.fakes import Fault, FaultLog, JumpingClock, SilentBus
from tests.actors.runtimes import RUN, SPEC, FakeRuntime
from tests.environment import LIFE_EXAMPLES

SIGNER = EphemeralSigner()
KEYRING = Keyring()
KEYRING.add(SIGNER.kid, SIGNER.public_key)
Step = tuple[str, object]
STEPS = st.one_of(
    st.tuples(st.just("report"), st.integers(1, 3)),
    st.tuples(st.just("ask"), st.sampled_from([Kind.REQUEST_SEAL, Kind.REQUEST_SEAL, Kind.REQUEST_CANCEL])),
    st.tuples(st.just("fail"), st.tuples(st.integers(1, 4), st.sampled_from(list(Fault)))),
    st.tuples(st.just("clock"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("intrude"), st.none()),
    st.tuples(st.just("seal"), st.none()),
)
LIVES = st.lists(st.lists(STEPS, max_size=6), min_size=1, max_size=4)


class World:
    """What outlives the owners: the log, the wall clock, and what was acknowledged, asked and seen."""

    def __init__(self, bus: Bus) -> None:
        self.truth = MemoryLog()
        self.log = FaultLog(self.truth)
        self.clock = JumpingClock()
        self.bus = bus
        self.acknowledged: list[Event] = []
        self.asked: list[int] = []
        self.seen: list[Event] = []

    async def life(self, steps: list[Step]) -> None:
        """Own the run for a while: then it is parked, or the log has failed and the owner stops."""
        self.log.reopen()
        self.log._at = frozenset()
        sessions: list[Session] = []
        try:
            with trio.CancelScope() as scope:
                async with (
                    open_sealer(self.log, SIGNER, every=3) as sealer,
                    open_session(self.log, self.bus, id=RUN, clock=self.clock, sealer=sealer) as session,
                ):
                    sessions.append(session)
                    if session.projection.objective:
                        await session.resume(FakeRuntime(), GoalKey(RUN))
                    else:
                        await session.submit(FakeRuntime(), SPEC)
                    for step in steps:
                        await self.take(session, step)
                        await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
        except (LogError, SessionFailed):
            assert self.log.faults
        async with sessions[0].subscribe(len(self.seen)) as events:
            self.seen += [event async for event in events]

    async def take(self, session: Session, step: Step) -> None:
        """Let one thing happen."""
        match step:
            case "report", int(count):
                said = [Event(Kind.ASSISTANT, text=str(number)) for number in range(count)]
                try:
                    self.acknowledged += await session.reporter.report(*said)
                except RunFinished:
                    assert session.finished
            case "ask", str(kind):
                event = request_event(kind, principal="ada", reason="as asked")
                self.asked.append(await post(self.truth, RUN, event, self.clock))
                self.bus.publish(inbox_subject(RUN))
            case "fail", (int(after), Fault() as fault):
                self.log._at, self.log._fault = frozenset({self.log.appends + after}), fault
            case "clock", int(now):
                self.clock.now = now
            case "intrude", _:
                try:
                    async with open_session(self.log, self.bus, id=RUN):
                        raise AssertionError("two owners at once")
                except RunOwned:
                    pass
            case "attend", _:
                await session.attend()
            case "seal", _:
                self.acknowledged.append(await session.seal())


@settings(max_examples=LIFE_EXAMPLES)
@given(lives=LIVES, is_silent=st.booleans())
async def test_whatever_happens_to_its_owners_a_run_stays_whole(
    lives: list[list[Step]], *, is_silent: bool
) -> None:
    """The last owner meets no fault: after it, everything is answered, sealed and seen."""
    world = World(SilentBus() if is_silent else MemoryBus())
    for steps in lives:
        await world.life(steps)
    await world.life([("attend", None)])
    events = await history(world.truth, RUN)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(event == events[event.seq - 1] for event in world.acknowledged)
    assert world.seen == list(events)
    assert sum(event.kind in TERMINAL_KINDS for event in events) <= 1
    effects = Counter(
        event.causation_id
        for event in events
        if event.causation_id and event.kind in {Kind.STALLED, Kind.RECORD_SEALED}
    )
    assert set(effects) <= {f"{RUN}.inbox/{seq}" for seq in world.asked}
    assert set(effects.values()) <= {1}
    answers = Counter(
        event.detail["request"]
        for event in await history(world.truth, inbox_of(RUN))
        if event.kind == Kind.REQUEST_ANSWERED
    )
    assert answers == dict.fromkeys(world.asked, 1)
    file = BytesIO()
    try:
        await export(world.truth, RUN, file)
    except SealRefused:
        raise AssertionError("a run that was parked by a healthy owner is sealed") from None
    verify_record(file.getvalue(), KEYRING)
