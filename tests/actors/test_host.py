"""The host: many sessions over one log, none of which can harm another, closed inside-out (E1, E2, S7, S11)."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.errors import (
    HostFailed,
    LogFull,
    ResumeRefused,
    RunOwned,
    RunParked,
    SessionFailed,
    UnknownRun,
)
from affidavit.actors.events import Kind
from affidavit.actors.evidence import export
from affidavit.actors.fanout import RecordState
from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import Host, Run, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ModelRequest
from affidavit.actors.nurseries import TasksFailed
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.crypto import Keyring, verify_record
from tests.actors.fakes import Fault, FaultLog
from tests.actors.runtimes import SPEC, kinds

SIGNER = EphemeralSigner()
KEYRING = Keyring()
KEYRING.add(SIGNER.kid, SIGNER.public_key)
SEALED = [Kind.RECORD_SEALED, Kind.RECORD_VERIFIED]


class HeldModel:
    """A model that answers once it is let go.

    Attributes:
        go: Set it, and every call answers.
        asked: Set once the first call waits.
    """

    name = "held"
    supports_tools = False

    def __init__(self, digest: bytes = b"held", *, held: bool = True) -> None:
        self.digest = digest
        self.go = trio.Event()
        self.asked = trio.Event()
        if not held:
            self.go.set()

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer, when let go."""
        self.asked.set()
        await self.go.wait()
        return ModelReply("all settled")


def quick() -> MissionConfig:
    """Return a mission that answers at once."""
    return MissionConfig(HeldModel(held=False))


def tasks() -> int:
    """Return how many tasks there are in the whole program."""
    return trio.lowlevel.current_statistics().tasks_living


async def complete(log: MemoryLog | FaultLog, run_id: str) -> bool | None:
    """Return whether the run's exported record, which verifies, reaches the end of the run."""
    file = BytesIO()
    await export(log, run_id, file)
    return verify_record(file.getvalue(), KEYRING).complete


async def test_runs_go_side_by_side_and_each_ends_sealed(autojump_clock: MockClock) -> None:
    """Submitted, answered, sealed and verified; still readable until the host closes; nothing is left behind."""
    log, before = MemoryLog(), tasks()
    async with open_host(log, signer=SIGNER) as host:
        runs = [await host.submit(SPEC, quick(), id=f"run-{number}") for number in range(5)]
        for run in runs:
            assert await run.session.wait() == "all settled"
            await run.closed()
            assert run.session.projection.record is RecordState.VERIFIED
            assert host.run(run.id) is run
        assert host.run("other") is None
    for run in runs:
        assert await complete(log, run.id) is True
    assert tasks() == before


async def test_leaving_the_host_parks_what_still_runs(autojump_clock: MockClock) -> None:
    """By its end, an exception or cancellation: each run is closed as interrupted, sealed as incomplete, and can be resumed."""

    async def by_end(_scope: trio.CancelScope) -> None:
        await trio.lowlevel.checkpoint()

    async def by_exception(_scope: trio.CancelScope) -> None:
        raise ZeroDivisionError

    async def by_cancellation(scope: trio.CancelScope) -> None:
        scope.cancel()
        await trio.lowlevel.checkpoint()

    leaves: tuple[Callable[[trio.CancelScope], object], ...] = (by_end, by_exception, by_cancellation)
    for leave in leaves:
        log, before, model = MemoryLog(), tasks(), HeldModel()
        waited: list[object] = []
        runs: list[Run] = []
        with trio.CancelScope() as scope:
            try:
                async with open_host(log, signer=SIGNER) as host:
                    runs.append(await host.submit(SPEC, MissionConfig(model), id="run-1"))
                    await model.asked.wait()
                    await leave(scope)  # type: ignore[misc]  # each of them is async
            except ZeroDivisionError as error:
                waited.append(error)
        assert scope.cancelled_caught == (leave is by_cancellation)
        assert len(waited) == (leave is by_exception)
        with pytest.raises(RunParked):
            await runs[0].session.wait()
        await runs[0].closed()
        assert tasks() == before
        assert (await kinds(log, "run-1"))[-3:] == [Kind.ACTION_COMPLETED, *SEALED]
        assert await complete(log, "run-1") is False
        async with open_host(log, signer=SIGNER) as host:
            again = await host.resume("run-1", MissionConfig(HeldModel(held=False)))
            assert await again.session.wait() == "all settled"
            await again.closed()
        assert await complete(log, "run-1") is True


async def test_closing_the_host_takes_no_longer_than_one_grace(autojump_clock: MockClock) -> None:
    """However many runs there are, they park side by side."""
    models = [HeldModel() for _ in range(20)]
    async with open_host(MemoryLog(), signer=SIGNER) as host:
        for model in models:
            await host.submit(SPEC, MissionConfig(model))
            await model.asked.wait()
        started = trio.current_time()
    assert trio.current_time() - started <= 5


async def test_a_failing_session_takes_no_other_down_and_the_host_hears_of_it(
    autojump_clock: MockClock,
) -> None:
    """E2: its log fails in the middle; the others end converged; `on_failure` gets the run's id and the error."""
    log, heard = FaultLog(MemoryLog()), list[tuple[str, Exception]]()
    failing, healthy = HeldModel(), HeldModel()
    async with open_host(
        log, signer=SIGNER, on_failure=lambda run_id, error: heard.append((run_id, error))
    ) as host:
        good = await host.submit(SPEC, MissionConfig(healthy), id="good")
        bad = await host.submit(SPEC, MissionConfig(failing), id="bad")
        await healthy.asked.wait()
        await failing.asked.wait()
        log.fail_next(Fault.FULL)
        failing.go.set()
        await bad.closed()
        with pytest.raises(SessionFailed):
            await bad.session.wait()
        healthy.go.set()
        assert await good.session.wait() == "all settled"
        await good.closed()
        later = await host.submit(SPEC, quick(), id="later")
        assert await later.session.wait() == "all settled"
        await later.closed()
        again = await host.resume("bad", MissionConfig(HeldModel(held=False)))
        assert await again.session.wait() == "all settled"
    ((run_id, error),) = heard
    assert (run_id, type(error)) == ("bad", SessionFailed)
    assert isinstance(error.__cause__, LogFull)


async def test_a_run_that_cannot_begin_raises_to_who_asked_and_to_nobody_else(
    autojump_clock: MockClock,
) -> None:
    """Bad id, taken id, unknown run, run owned elsewhere, changed model: each by its own error, and the host goes on."""
    log, heard = MemoryLog(), list[object]()
    async with open_host(log, on_failure=lambda *told: heard.append(told)) as host:
        model = HeldModel()
        run = await host.submit(SPEC, MissionConfig(model), id="run-1")
        with pytest.raises(ValueError, match="a run id is"):
            await host.submit(SPEC, quick(), id="a b")
        with pytest.raises(RunOwned):
            await host.submit(SPEC, quick(), id="run-1")
        with pytest.raises(RunOwned):
            await host.resume("run-1", quick())
        with pytest.raises(UnknownRun):
            await host.resume("other", quick())
        with pytest.raises(UnknownRun):
            await host.seal("other")
        model.go.set()
        await run.closed()
        with pytest.raises(RuntimeError, match="opened already"):
            await host.submit(SPEC, quick(), id="run-1")
        with pytest.raises(RuntimeError, match="without a sealer"):
            await host.seal("run-1")
        held = HeldModel()
        await host.submit(SPEC, MissionConfig(held), id="run-2")
        await held.asked.wait()
    async with open_host(log, on_failure=lambda *told: heard.append(told)) as host:
        before = await kinds(log, "run-2")
        with pytest.raises(ResumeRefused, match="another model"):
            await host.resume("run-2", MissionConfig(HeldModel(b"other", held=False)))
        assert await kinds(log, "run-2") == before
        run = await host.resume("run-2", MissionConfig(HeldModel(b"other", held=False)), accept_changes=True)
        assert await run.session.wait() == "all settled"
    assert heard == []


async def test_submitting_is_cancelled_with_its_caller_and_the_host_goes_on(
    autojump_clock: MockClock,
) -> None:
    """A caller that gives up before the run has begun leaves no run that goes on behind its back."""
    log = MemoryLog()
    async with open_host(log) as host:
        with trio.CancelScope() as scope:
            scope.cancel()
            await host.submit(SPEC, quick(), id="run-1")
        assert scope.cancelled_caught
        assert host.run("run-1") is None
        run = await host.submit(SPEC, quick(), id="run-2")
        assert await run.session.wait() == "all settled"
    assert [info.stream for info in await log.list()] == ["run-2"]


async def test_a_finished_run_is_only_sealed_on_resume(autojump_clock: MockClock) -> None:
    """A host with a signer seals what one without left unsealed, and writes nothing else; a second time, nothing at all."""
    log = MemoryLog()
    async with open_host(log) as host:
        await (await host.submit(SPEC, quick(), id="run-1")).closed()
    before = await kinds(log, "run-1")
    for _ in range(2):
        async with open_host(log, signer=SIGNER) as host:
            run = await host.resume("run-1", quick())
            await run.closed()
        assert await kinds(log, "run-1") == [*before, *SEALED]


async def test_the_host_seals_a_run_that_nobody_drives(autojump_clock: MockClock) -> None:
    """What its last driver had begun is closed first, as interrupted; V3: the record says incomplete."""
    log, model = MemoryLog(), HeldModel()
    async with open_host(log) as host:
        await host.submit(SPEC, MissionConfig(model), id="run-1")
        await model.asked.wait()
        crashed = MemoryLog()
        rows = await log.read("run-1")
        await crashed.append([Entry("run-1", 0, tuple(row.data for row in rows))])
    async with open_host(crashed, signer=SIGNER) as host:
        seal = await host.seal("run-1")
        assert seal.kind == Kind.RECORD_SEALED
    assert (await kinds(crashed, "run-1"))[len(rows) :] == [Kind.ACTION_COMPLETED, *SEALED]
    assert await complete(crashed, "run-1") is False


async def test_the_callers_own_exception_leaves_the_host_as_itself(autojump_clock: MockClock) -> None:
    """In no group, and a group of the caller's own as the very group; runs that go on change nothing about it."""
    for error in (ValueError("mine"), KeyboardInterrupt(), TasksFailed("mine", [ValueError()])):
        with pytest.raises(type(error)) as caught:
            async with open_host(MemoryLog(), signer=SIGNER) as host:
                await host.submit(SPEC, MissionConfig(HeldModel()))
                raise error
        assert caught.value is error


async def test_a_callback_that_raises_is_the_hosts_own_failure(autojump_clock: MockClock) -> None:
    """`on_failure` must not raise; if it does, the host fails by name, with the group as its cause."""

    def broken(_run_id: str, _error: Exception) -> None:
        raise OSError("the pager is down")

    async def fail(host: Host, log: FaultLog) -> None:
        model = HeldModel()
        await host.submit(GoalSpec("x"), MissionConfig(model))
        await model.asked.wait()
        log.fail_next(Fault.FULL)
        model.go.set()
        await trio.sleep_forever()

    log = FaultLog(MemoryLog())
    with pytest.raises(HostFailed) as caught:
        async with open_host(log, on_failure=broken) as host:
            await fail(host, log)
    assert "the pager is down" in repr(caught.value.__cause__)
