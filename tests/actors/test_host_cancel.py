"""The host ends runs, its own and those that nobody drives, and does not remember all of them for ever (S7, S11)."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors import host_runs as module
from affidavit.actors.clock import SystemClock
from affidavit.actors.errors import RunCancelled, RunOwned, RunParked, UnknownRun
from affidavit.actors.events import Kind
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import InboxReader, post, request_event
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from tests.actors.mission_kit import DONE, GOAL, SIGNER, FreeModel, replies


def held() -> MissionConfig:
    """Return a mission whose model never answers."""

    async def wait(position: int) -> None:
        await trio.sleep_forever()

    return MissionConfig(FreeModel(wait))  # type: ignore[arg-type]  # it never returns at all


async def test_a_host_cancels_a_run_that_it_drives(autojump_clock: MockClock) -> None:
    """Whoever waits is told who asked; the record is sealed, and asking again changes nothing."""
    log = MemoryLog()
    async with open_host(log, signer=SIGNER) as host:
        run = await host.submit(GOAL, held(), id="run-1")
        terminal = await host.cancel("run-1", principal="ada", reason="enough")
        with pytest.raises(RunCancelled, match="enough") as caught:
            await run.session.wait()
        assert caught.value.principal == terminal.principal == "ada"
        await run.closed()
        assert await host.cancel("run-1", principal="bob", reason="too late") == terminal
        with pytest.raises(UnknownRun):
            await host.cancel("run-2", principal="ada", reason="enough")
    assert [event.kind for event in await history(log, "run-1")][-2:] == [
        Kind.RECORD_SEALED,
        Kind.RECORD_VERIFIED,
    ]


async def test_a_host_cancels_a_run_that_nobody_drives_after_those_who_asked_before(
    autojump_clock: MockClock,
) -> None:
    """What stands in the inbox is carried out first, and answered; a run of another owner is left alone."""
    log = MemoryLog()
    async with open_host(log) as host, open_host(log) as other:
        await host.submit(GOAL, held(), id="run-1")
        with pytest.raises(RunOwned):
            await other.cancel("run-1", principal="eve", reason="mine")
    seq = await post(
        log, "run-1", request_event(Kind.REQUEST_CANCEL, principal="ada", reason="first"), SystemClock()
    )
    async with open_host(log) as host:
        terminal = await host.cancel("run-1", principal="bob", reason="second")
    assert (terminal.principal, terminal.err, terminal.causation_id) == (
        "ada",
        "first",
        f"run-1.inbox/{seq}",
    )
    inbox = InboxReader(log, "run-1")
    inbox.expect(seq)
    await inbox.catch_up()
    assert inbox.answers[seq].outcome == "done"


async def test_a_host_remembers_the_last_runs_that_have_ended_and_all_that_go_on(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E3: a host that lives for months does not grow with every run it ever drove."""
    monkeypatch.setattr(module, "KEPT_RUNS", 3)
    async with open_host(MemoryLog()) as host:
        going = await host.submit(GOAL, held(), id="going")
        for number in range(6):
            run = await host.submit(GOAL, MissionConfig(replies(DONE)), id=f"run-{number}")
            await run.closed()
        kept = [number for number in range(6) if host.run(f"run-{number}") is not None]
        assert kept[-1] == 5
        assert 3 <= len(kept) <= 4
        assert host.run("going") is going
    with pytest.raises(RunParked):
        await going.session.wait()
