"""The brake: pulled in the program or from another process, it stops every further action within one, on the record (G7)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from affidavit.actors.clock import SystemClock
from affidavit.actors.codec import encode
from affidavit.actors.errors import RunFinished, Stalled, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import brake_event, post
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.approval_kit import paying, waiting_run
from tests.actors.mission_kit import (
    DONE,
    GOAL,
    RUN,
    SIGNER,
    FakeTool,
    FreeModel,
    check_record,
    replies,
    script,
    verified,
)


async def test_g7_a_run_that_cannot_be_read_keeps_no_other_from_being_braked(
    autojump_clock: MockClock,
) -> None:
    """It is named with what is wrong with it, and those that come after it are braked all the same."""
    log = MemoryLog()
    for name, row in (("a", b"no event"), ("b", b""), ("c", b"no event")):
        started = encode(Event(Kind.SESSION_STARTED, text="Go."), stream=name, seq=1, time=0)
        await log.append([Entry(name, 0, (row or started,))])
    async with open_host(log) as host:
        braked = {each.run_id: each for each in await host.brake_all(principal="ada")}
    assert braked.keys() == {"a", "b", "c"}
    assert braked["a"].trouble
    assert braked["c"].trouble
    assert (braked["a"].event, braked["b"].trouble) == (None, "")
    assert (await history(log, "b"))[-1].kind == Kind.BRAKE_ENGAGED


TURNS: tuple[dict[str, object], ...] = (
    {"tool_calls": [{"name": "slow", "input": {}}, {"name": "pay", "input": {}}]},
    {"tool_calls": [{"name": "pay", "input": {}}]},
    {"text": "All is settled."},
)


class Slow:
    """A tool that says that it has begun, and then waits for the test."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.go_on = trio.Event()
        self.tool = FakeTool("slow", self._work)

    async def _work(self, arguments: Mapping[str, object]) -> str:
        self.begun.set()
        await self.go_on.wait()
        return "done slowly"


def check_braked(events: tuple[Event, ...]) -> None:
    """Check that nothing was admitted after the brake, and that each call after it is refused with its code."""
    check_record(events)
    pulled = next(event.seq for event in events if event.kind == Kind.BRAKE_ENGAGED)
    after = [event for event in events if event.seq > pulled]
    assert not [event for event in after if event.kind == Kind.ACTION_ADMITTED]
    refused = [event for event in after if event.kind == Kind.ACTION_REJECTED]
    assert refused
    assert {(event.error_class, event.error_code) for event in refused} == {("forbidden", "brake")}
    assert all("ada: stop it" in event.reason for event in refused)


@pytest.mark.parametrize("where", ["in process", "inbox"])
async def test_g7_the_action_under_way_ends_and_everything_after_it_is_refused(
    where: str, autojump_clock: MockClock
) -> None:
    """Pulled while a tool works: the tool's end is recorded, the next call and the next turn are refused with code brake."""
    log, slow, pay = MemoryLog(), Slow(), FakeTool("pay")
    config = MissionConfig(script(*TURNS), Toolbox([slow.tool, pay]))
    async with open_host(log, signer=SIGNER) as host:
        run = await host.submit(GOAL, config, id=RUN)
        await slow.begun.wait()
        if where == "inbox":
            # Without a wake, and the action ends before the floor looks: the next admission looks first.
            await post(log, RUN, brake_event(engage=True, principal="ada", reason="stop it"), SystemClock())
        else:
            await host.brake(RUN, principal="ada", reason="stop it")
        slow.go_on.set()
        with pytest.raises(Stalled):
            await run.session.wait()
        await run.closed()
    assert (slow.tool.runs, pay.runs) == (1, 0)
    events = await history(log, RUN)
    check_braked(events)
    ended = [event for event in events if event.kind == Kind.ACTION_COMPLETED and event.action == "slow"]
    assert [event.fault for event in ended] == [""]
    await verified(log)


async def test_g7_a_call_that_waits_for_a_person_is_refused_at_once(autojump_clock: MockClock) -> None:
    """Nobody needs to decide first, and an approval that comes later changes nothing."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)) as (host, run):
        await host.brake(RUN, principal="ada", reason="stop it")
        with pytest.raises(Stalled):
            await run.session.wait()
    assert tool.runs == 0
    check_braked(await history(log, RUN))


async def test_the_brake_of_a_run_that_nobody_drives_holds_when_it_is_resumed(
    autojump_clock: MockClock,
) -> None:
    """And once it was let go, the run goes on; both are on the record in their persons' names."""
    log, tool = MemoryLog(), FakeTool("pay")
    async with waiting_run(log, paying(tool)):
        pass
    async with open_host(log, signer=SIGNER) as host:
        pulled = await host.brake(RUN, principal="ada", reason="stop it")
        freed = await host.brake(RUN, principal="bob", engage=False)
        await host.approve(RUN, 2, principal="ada")
        assert (pulled.actor, pulled.principal, freed.principal) == ("human", "ada", "bob")
        run = await host.resume(RUN, paying(tool))
        assert await run.session.wait() == "All is settled."
        await run.closed()
        with pytest.raises(RunFinished):
            await host.brake(RUN, principal="ada")
        with pytest.raises(UnknownRun):
            await host.brake("run-2", principal="ada")
    assert tool.runs == 1


async def test_g7_brake_all_reaches_every_run_that_has_not_ended(autojump_clock: MockClock) -> None:
    """Those driven here, those of another owner by way of their inboxes, and those that nobody drives; no ended one."""
    log = MemoryLog()

    def config(*turns: dict[str, object]) -> MissionConfig:
        return MissionConfig(script(*turns), Toolbox([FakeTool("pay"), slow.tool]))

    slow = Slow()
    async with open_host(log) as host, open_host(log) as other:
        ended = await host.submit(GOAL, MissionConfig(replies(DONE)), id="ended")
        await ended.closed()
        for owner, name in ((host, "mine"), (other, "theirs")):
            await owner.submit(GOAL, config(*TURNS), id=name)
        await slow.begun.wait()
        await trio.testing.wait_all_tasks_blocked()
        async with open_host(log) as brief:
            with trio.CancelScope() as scope:
                await brief.submit(GOAL, MissionConfig(FreeModel(_never)), id="idle")  # type: ignore[arg-type]  # it never returns at all
                scope.cancel()
        braked = await host.brake_all(principal="ada", reason="stop it")
        # Those that act come first.
        assert [(each.run_id, each.event is None, each.request) for each in braked] == [
            ("mine", False, 0),
            ("theirs", True, 1),
            ("idle", False, 0),
        ]
        slow.go_on.set()
        for owner, name in ((host, "mine"), (other, "theirs")):
            run = owner.run(name)
            assert run is not None
            await run.closed()
    for name in ("mine", "theirs"):
        check_braked(await history(log, name))
    assert Kind.BRAKE_ENGAGED in [event.kind for event in await history(log, "idle")]
    assert Kind.BRAKE_ENGAGED not in [event.kind for event in await history(log, "ended")]


async def _never(position: int) -> None:
    await trio.sleep_forever()
