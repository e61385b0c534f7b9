"""When a run is sealed, and what the seal covers (V1-V4)."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import RunParked
from affidavit.actors.events import Event, Kind
from affidavit.actors.fanout import RecordState
from affidavit.actors.goal import GoalKey, Phase
from affidavit.actors.history import history, rows
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mailbox import MAILBOX_SIZE
from affidavit.actors.sealer import Sealer
from affidavit.actors.session import Session, open_session
from affidavit.crypto import (
    Tree,
    encode_consistency_proof,
    leaf_hash,
    verify_consistency,
)
from tests.actors.fakes import FailingSigner
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, kinds, new_stream, phase
from tests.actors.sealing_kit import KEYRING, SEALED, badge, finished, parked, record


async def test_a_terminal_event_is_sealed_and_verified_while_the_session_goes_on(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """Not only on leaving: the badge moves as soon as the run has ended, and n/n is sealed."""
    runtime = FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        assert badge(session) is RecordState.RECORDING
        runtime.converge()
        async with session.subscribe() as events:
            async for event in events:
                if event.kind == Kind.RECORD_VERIFIED:
                    break
        assert badge(session) is RecordState.VERIFIED
        assert session.projection.sealed_events == session.projection.events == 3
    verified = await record(log)
    assert verified.complete is True
    assert [event.kind for event in (await history(log, RUN))[3:]] == SEALED


async def test_a_parked_run_is_sealed_and_says_incomplete(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """V3: the record verifies and is plainly marked as not reaching the end of its run."""
    await parked(log, sealer)
    verified = await record(log)
    assert verified.complete is False
    assert len(verified.events) == 2


async def test_a_seal_on_demand_covers_everything_so_far_and_a_second_one_adds_nothing(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, signer: FailingSigner
) -> None:
    """Nothing new, no new seal: record.* alone never causes one, also in the sessions that follow."""
    runtime = FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        first = await session.seal()
        assert first.kind == Kind.RECORD_SEALED
        assert first.detail["size"] == 1
        assert await session.seal() == first
        await session.reporter.report(SPEAK)
        second = await session.seal()
        assert (second.detail["size"], second.detail["previous"]) == (4, 1)
        runtime.converge()
    assert signer.signatures == 3
    before = await kinds(log)
    for _ in range(2):
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.resume(FakeRuntime(), GoalKey(RUN))
            await session.seal()
    assert await kinds(log) == before
    assert signer.signatures == 3


async def test_a_later_seal_provably_extends_the_earlier(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """V4: the consistency path between any two seals verifies, over leaves that are all events from seq 1."""
    runtime = FakeRuntime()
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        for _ in range(4):
            await session.seal()
            await session.reporter.report(SPEAK, SPEAK)
        runtime.converge()
    tree = Tree()
    for row in await rows(log, RUN):
        tree.append(leaf_hash(row.data))
    seals = [event.detail for event in await history(log, RUN) if event.kind == Kind.RECORD_SEALED]
    assert len(seals) == 5
    for number, old in enumerate(seals):
        for new in seals[number + 1 :]:
            path = tree.consistency(old["size"], new["size"])  # type: ignore[arg-type]  # sizes, as recorded
            proof = encode_consistency_proof(new["checkpoint"], path, old["checkpoint"])  # type: ignore[arg-type]  # bytes
            verified = verify_consistency(proof, KEYRING)
            assert verified.before.checkpoint.root == old["root"]
            assert verified.after.checkpoint.root == new["root"]


async def test_seals_do_not_depend_on_the_feed(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages lost on the way to the sealer are read from the log: the record verifies all the same."""
    lost: list[object] = []
    monkeypatch.setattr(sealer, "feed", lost.append)
    await parked(log, sealer)
    assert len(lost) >= 2
    assert (await record(log)).complete is False


async def test_commits_that_find_the_sealers_mailbox_full_are_sealed_all_the_same(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, signer: FailingSigner
) -> None:
    """The feed is bounded and loses what does not fit, in the middle too: the tree has no gap, since the log fills it."""
    runtime = FakeRuntime()
    signer.hold = trio.Event()
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.submit(runtime, SPEC)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.seal)
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(3 * MAILBOX_SIZE):
                await session.reporter.report(SPEAK)
            signer.hold.set()
        await session.reporter.report(SPEAK)
        await trio.testing.wait_all_tasks_blocked()
        seal = await session.seal()
        assert seal.detail["size"] == 3 * MAILBOX_SIZE + 4
        assert badge(session) is RecordState.VERIFIED
        runtime.converge()
    assert (await record(log)).complete is True


async def test_a_finished_run_that_was_left_unsealed_is_sealed_by_whoever_resumes_it(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """The crash between terminal event and seal: resuming adds the seal and nothing else."""
    await finished(log, None)
    before = await kinds(log)
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.resume(FakeRuntime(), GoalKey(RUN))
        assert await session.wait() == "all settled"
    assert await kinds(log) == [*before, *SEALED]


async def test_a_run_whose_terminal_event_came_by_resume_is_sealed(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """The repair of a missing terminal event is followed by the seal that belongs to it."""
    stream = await new_stream(log)
    await stream.append(Event(Kind.SESSION_STARTED, text="x"), phase(Phase.CONVERGED))
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.resume(FakeRuntime(), GoalKey(RUN))
    assert (await kinds(log))[2:] == [Kind.CONVERGED, *SEALED]


async def test_a_submit_that_fails_is_sealed(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """A stall at the very start is evidence too."""
    runtime = FakeRuntime()
    runtime.refusal = LookupError("no such model")
    with pytest.raises(LookupError):
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.submit(runtime, SPEC)
    assert (await record(log)).complete is True


async def test_sealing_a_parked_run_again_needs_nobody_to_drive_it(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer
) -> None:
    """A run that died unsealed is sealed by whoever opens it and asks, as incomplete."""
    await parked(log, None)
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        await session.seal()
        with pytest.raises(RuntimeError):
            await session.wait()
    assert (await record(log)).complete is False


async def test_two_seals_at_once_find_the_work_done(
    autojump_clock: MockClock, log: MemoryLog, sealer: Sealer, signer: FailingSigner
) -> None:
    """Ten askers, one signature, one answer."""
    answers: list[Event] = []

    async def ask(session: Session) -> None:
        answers.append(await session.seal())

    with pytest.raises(RunParked):
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.submit(FakeRuntime(), SPEC)
            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(ask, session)
            raise RunParked("enough")
    assert {answer.seq for answer in answers} == {2}
    assert signer.signatures == 1
