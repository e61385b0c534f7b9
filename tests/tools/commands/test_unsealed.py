"""A run that has ended and was never sealed, as a crash just then leaves it: each command says so, and two of them seal it."""

import re
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import open_host
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.tools import app
from affidavit.tools.commands.watch import watch
from affidavit.tools.store_place import store_file


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one finished and unsealed run."""
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "only for tests")
    monkeypatch.chdir(tmp_path)

    async def make() -> None:
        config = MissionConfig(ScriptModel.from_text('{"turns": [{"text": "Done."}]}'))
        async with open_sqlite_log(store_file(tmp_path)) as log, open_host(log) as host:
            run = await host.submit(GoalSpec("Say done."), config, id="open")
            await run.closed()

    trio.run(make)
    return tmp_path


def test_watch_waits_for_a_seal_and_then_says_that_there_is_none(
    store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It shows everything, waits for the grace, and ends by itself."""

    async def follow() -> int:
        return await watch("open", store=store)

    assert trio.run(follow, clock=MockClock(autojump_threshold=0.05)) == 0
    shown = capfd.readouterr()
    assert "session.converged" in shown.out
    assert shown.err.startswith("the run has ended, and nobody seals and checks it (sealed 0/")


@pytest.mark.parametrize("words", [["export", "open"], ["prove", "open", "1"]])
def test_there_is_no_evidence_yet(store: Path, capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Export and proof are refused in one sentence."""
    assert app.main([*words, "--store", str(store)]) == 2
    assert capfd.readouterr().err == (
        "affidavit: run open was never sealed; `affidavit seal` signs what a run has recorded so far\n"
    )
    assert list(store.glob("open*")) == []


@pytest.mark.parametrize("command", ["seal", "resume"])
def test_seal_and_resume_make_up_for_it(store: Path, capfd: pytest.CaptureFixture[str], command: str) -> None:
    """Both seal and check the whole run, and print the two lines; `resume` needs no model for that."""
    assert app.main([command, "open", "--store", str(store)]) == 0
    shown = capfd.readouterr().out
    assert "record     verified, sealed " in shown
    assert "affidavit export open --out open.provetrail --store " in shown
    assert re.search(
        r"^affidavit verify open\.provetrail --key did:key:\w+=[0-9a-f]{64}$", shown, re.MULTILINE
    )
    assert app.main(["export", "open", "--store", str(store)]) == 0


def test_sessions_shows_how_much_is_sealed(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing of it is."""
    assert app.main(["sessions", "--store", str(store)]) == 0
    assert " 0/" in capfd.readouterr().out
