"""A host takes up the runs that nobody drives, if it is told to; it leaves others' alone, and says what it could not do."""

from __future__ import annotations

import pytest
import trio

from affidavit.actors.errors import ConfigurationError, LogClosed
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import FakeTool, FreeModel, replies

DONE = ModelReply("Done.")


async def leave(log: MemoryLog, *run_ids: str) -> MissionConfig:
    """Leave runs as a host leaves them that closes while their model is thinking; return what they were driven with."""
    gate = trio.Event()

    async def answer(_position: int) -> ModelReply:
        await gate.wait()
        return DONE

    config = MissionConfig(FreeModel(answer))
    async with open_host(log) as host:
        for run_id in run_ids:
            await host.submit(GoalSpec(f"Do {run_id}."), config, id=run_id)
    gate.set()
    return config


async def test_every_run_that_nobody_drives_is_taken_up_and_ends() -> None:
    """Three were left; each goes on from its own record, and one that had ended is not touched."""
    log = MemoryLog()
    async with open_host(log) as host:
        await (await host.submit(GoalSpec("First."), MissionConfig(replies(DONE)), id="ended")).closed()
    ended = await history(log, "ended")
    config = await leave(log, "a", "b", "c")
    asked: list[str] = []

    def config_for(started: Event) -> MissionConfig:
        asked.append(started.text)
        return config

    async with open_host(log) as host:
        adopted = await host.adopt(config_for)
        assert [(each.run_id, each.trouble) for each in adopted] == [("a", ""), ("b", ""), ("c", "")]
        for each in adopted:
            assert each.run is not None
            assert await each.run.session.wait() == "Done."
    assert asked == ["Do a.", "Do b.", "Do c."]
    assert await history(log, "ended") == ended


async def test_by_default_a_host_leaves_runs_as_they_are() -> None:
    """Opening and closing one records nothing on them; neither does being told to leave each."""
    log = MemoryLog()
    await leave(log, "a", "b")
    before = [await history(log, run_id) for run_id in ("a", "b")]
    async with open_host(log):
        pass
    async with open_host(log) as host:
        assert [(each.run, each.trouble) for each in await host.adopt(lambda _: None)] == [
            (None, ""),
            (None, ""),
        ]
    assert [await history(log, run_id) for run_id in ("a", "b")] == before


async def test_runs_of_other_owners_are_left_alone_and_named() -> None:
    """One is driven by another host, one by this one: the first is named, the second is as it was, the third is taken up."""
    log, gate = MemoryLog(), trio.Event()

    async def answer(_position: int) -> ModelReply:
        await gate.wait()
        return DONE

    await leave(log, "free")
    held = MissionConfig(FreeModel(answer))
    async with open_host(log) as other, open_host(log) as host:
        theirs = await other.submit(GoalSpec("Theirs."), held, id="theirs")
        await host.submit(GoalSpec("Ours."), held, id="ours")
        adopted = {each.run_id: each for each in await host.adopt(lambda _: held)}
        assert [adopted[name].is_owned for name in ("free", "ours", "theirs")] == [False, False, True]
        assert adopted["ours"].run is host.run("ours")
        assert "being driven" in adopted["theirs"].trouble
        gate.set()
        assert await theirs.session.wait() == "Done."
    assert (await history(log, "free"))[-1].kind == Kind.CONVERGED


async def test_what_cannot_be_taken_up_is_said_and_keeps_nothing_from_the_others() -> None:
    """Changed tools, a configuration that cannot be had, a row that is no event: a sentence each; the last run is driven."""
    log = MemoryLog()
    config = await leave(log, "a", "b", "d")
    await log.append([Entry("c", 0, (b"no event",))])

    def config_for(started: Event) -> MissionConfig:
        if started.text == "Do a.":
            return MissionConfig(config.model, Toolbox([FakeTool("look")]))
        if started.text == "Do b.":
            raise ConfigurationError("there is no such model here")
        return config

    async with open_host(log) as host:
        adopted = await host.adopt(config_for)
        assert [each.run is not None for each in adopted] == [False, False, False, True]
        assert "other tools" in adopted[0].trouble
        assert adopted[1].trouble == "there is no such model here"
        assert adopted[2].trouble
        (changed,) = [each for each in await host.adopt(lambda _: None) if each.run_id == "a"]
        assert (changed.run, changed.trouble) == (None, "")
        taken = await host.adopt(
            lambda started: (
                MissionConfig(config.model, Toolbox([FakeTool("look")])) if started.text == "Do a." else None
            ),
            accept_changes=True,
        )
        assert taken[0].run is not None


async def test_a_log_that_closes_ends_the_taking_up() -> None:
    """It is no trouble of one run: nothing further could be taken up either."""
    log = MemoryLog()
    await leave(log, "a", "b")

    def config_for(_: Event) -> MissionConfig:
        raise LogClosed("the disk failed")

    async with open_host(log) as host:
        with pytest.raises(LogClosed):
            await host.adopt(config_for)
