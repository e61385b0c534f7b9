"""Whole sessions over a log that fails every k-th append, either way, taken up again until they are done (S1, S2, S4, S6)."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus
from affidavit.actors.errors import LogError, SessionFailed
from affidavit.actors.events import Event, Kind
from affidavit.actors.evidence import export
from affidavit.actors.fanout import RecordState
from affidavit.actors.goal import GoalKey, Phase
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.projection import project
from affidavit.actors.sealer import open_sealer
from affidavit.actors.session import Session, open_session
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.crypto import Keyring, verify_record
from tests.actors.fakes import BrokenBus, DoublingBus, Fault, FaultLog, SilentBus
from tests.actors.runtimes import RECORD, RUN, SPEC, FakeRuntime, phase
from tests.environment import LIFE_EXAMPLES

SIGNER = EphemeralSigner()
KEYRING = Keyring()
KEYRING.add(SIGNER.kid, SIGNER.public_key)
BUSES = (MemoryBus, SilentBus, DoublingBus, BrokenBus)


class Driver:
    """Drives one run over and over, each time from what is on the log, as our own missions do."""

    def __init__(self, log: FaultLog, truth: MemoryLog, plan: list[int]) -> None:
        self.log, self.truth, self.plan = log, truth, plan
        self.acknowledged: list[Event] = []
        self.seen: list[Event] = []
        self.attempts = 0

    async def remaining(self) -> list[list[Event]]:
        """Return the reports that are still to be made: so many texts in each, numbered through."""
        done = sum(event.kind == Kind.ASSISTANT for event in await history(self.truth, RUN))
        numbers = iter(range(sum(self.plan)))
        reports = [[next(numbers) for _ in range(count)] for count in self.plan]
        return [
            [Event(Kind.ASSISTANT, text=str(number)) for number in report]
            for report in reports
            if report[0] >= done
        ]

    async def attempt(self, bus: Bus) -> bool:
        """Take the run up, and go on until it is done and sealed, or the log fails."""
        self.attempts += 1
        self.log.reopen()
        sessions: list[Session] = []
        done = await self.go_on(bus, sessions)
        # A reader that comes back at its cursor after each break.
        async with sessions[0].subscribe(len(self.seen)) as events:
            self.seen += [event async for event in events]
        return done

    async def go_on(self, bus: Bus, sessions: list[Session]) -> bool:
        """Report what remains; tell whether nothing failed."""
        try:
            async with (
                open_sealer(self.log, SIGNER) as sealer,
                open_session(self.log, bus, id=RUN, sealer=sealer) as session,
            ):
                sessions.append(session)
                await self.begin(session)
                if not session.finished:
                    for report in await self.remaining():
                        self.acknowledged += await session.reporter.report(*report)
                    self.acknowledged += await session.reporter.report(phase(Phase.CONVERGED, "done"))
                assert await session.wait() == "done"
        except (LogError, SessionFailed):
            return False
        return True

    async def begin(self, session: Session) -> None:
        """Submit a new run, or resume the one that stands."""
        if session.projection.objective:
            await session.resume(FakeRuntime(), GoalKey(RUN))
        else:
            await session.submit(FakeRuntime(), SPEC)


@settings(max_examples=LIFE_EXAMPLES)
@given(
    plan=st.lists(st.integers(1, 3), max_size=5),
    every=st.integers(2, 7),
    faults=st.lists(st.sampled_from(list(Fault)), min_size=1, max_size=4),
    bus=st.sampled_from(BUSES),
)
async def test_a_run_taken_up_again_after_every_failed_append_ends_as_if_nothing_had_failed(
    plan: list[int], every: int, faults: list[Fault], bus: Callable[[], Bus]
) -> None:
    """Opened once, every report once and in order, one terminal event, sealed whole and verified; readers saw exactly that."""
    truth = MemoryLog()
    log = FaultLog(truth, every=every)
    driver = Driver(log, truth, plan)
    while not await driver.attempt(bus()):
        log._fault = faults[driver.attempts % len(faults)]
        assert driver.attempts < 60, "no progress is made"
    events = await history(truth, RUN)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    about_the_run = [event for event in events if event.kind not in RECORD]
    texts = [Kind.ASSISTANT] * sum(plan)
    assert [event.kind for event in about_the_run] == [
        Kind.SESSION_STARTED,
        *texts,
        Kind.GOAL_PHASE,
        Kind.CONVERGED,
    ]
    assert [event.text for event in about_the_run[1:-2]] == [str(number) for number in range(sum(plan))]
    assert all(event == events[event.seq - 1] for event in driver.acknowledged)
    assert driver.seen == list(events)
    projection = project(events)
    assert projection.record is RecordState.VERIFIED
    assert projection.sealed_events == projection.events
    file = BytesIO()
    await export(truth, RUN, file)
    assert verify_record(file.getvalue(), KEYRING).complete is True


async def test_each_fault_at_each_append_of_a_run() -> None:
    """A run of three reports, with the fault at append 1, 2, ...: always taken up again, always the same in the end."""
    for fault in Fault:
        for place in range(1, 8):
            truth = MemoryLog()
            driver = Driver(FaultLog(truth, at={place}, fault=fault), truth, [1, 2, 1])
            while not await driver.attempt(MemoryBus()):
                assert driver.attempts < 4
            assert driver.attempts == 2
            events = await history(truth, RUN)
            assert driver.seen == list(events)
            kinds = [event.kind for event in events if event.kind not in RECORD]
            assert kinds == [Kind.SESSION_STARTED, *[Kind.ASSISTANT] * 4, Kind.GOAL_PHASE, Kind.CONVERGED]
