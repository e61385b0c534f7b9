"""The kill switch from another terminal: within one action everything is refused, on the record, in one run or in all (G7)."""

import json
import signal
from pathlib import Path

import pytest

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.codec import encode
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.session import open_session
from affidavit.tools import asking
from affidavit.tools.commands.brake import brake
from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli

RUN = ("run", "Hello", "--model", "openai:m", "--id", "mine", "--workspace", ".")


def recorded(cli: Cli, *kinds: str) -> list[dict[str, object]]:
    """The run's events of some kinds."""
    events = [json.loads(line) for line in cli("replay", "mine", "--json").out.splitlines()]
    return [event for event in events if event["kind"] in kinds]


@pytest.mark.parametrize("words", [("mine",), ("--all",)], ids=["one", "all"])
def test_g7_a_run_of_another_process_is_braked_while_it_works(cli: Cli, words: tuple[str, ...]) -> None:
    """At most the call under way ends; what follows is refused with code brake, and the run ends as stalled."""
    with held_endpoint(tool="list_dir") as gate, cli.going(*RUN, OPENAI_BASE_URL=gate.url) as owner:
        assert gate.asked.wait(30)
        braked = cli("brake", *words, "--reason", "stop it", "--as", "ada", AFFIDAVIT_PASSPHRASE=None)
        gate.answer.set()
        owner.communicate(timeout=60)
    assert (braked.code, braked.out) == (0, "run mine braked, by ada\n")
    assert owner.returncode == 1
    (pulled,) = recorded(cli, "brake.engaged")
    assert (pulled["actor"], pulled["principal"], pulled["causationID"]) == ("human", "ada", "mine.inbox/1")
    assert all(e["seq"] < pulled["seq"] for e in recorded(cli, "action.admitted"))  # type: ignore[operator]
    rejected = recorded(cli, "action.rejected")
    assert rejected
    assert {event["errorCode"] for event in rejected} == {"brake"}
    again = cli("brake", "mine")
    assert (again.code, again.err) == (1, "run mine has ended already; `affidavit replay` shows how\n")


def test_the_brake_of_a_run_that_nobody_drives_holds_until_it_is_released(cli: Cli) -> None:
    """Resumed while it is on, the run does nothing and stalls; both rulings are on the record."""
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        with cli.going(*RUN, **url) as owner:
            assert gate.asked.wait(30)
            owner.send_signal(signal.SIGKILL)
            owner.wait()
        assert cli("brake", "mine", "--as", "ada", AFFIDAVIT_PASSPHRASE=None).code == 0
        assert cli("brake", "mine", "--release", "--as", "bob").out == "run mine released, by bob\n"
        assert cli("brake", "--all", "--as", "ada").out == "run mine braked, by ada\n"
        gate.answer.set()
        resumed = cli("resume", "mine", "--workspace", ".", **url)
    assert resumed.code == 1
    assert "the brake is on: ada" in resumed.out
    kinds = [event["kind"] for event in recorded(cli, "brake.engaged", "brake.released")]
    assert kinds == ["brake.engaged", "brake.released", "brake.engaged"]


async def test_a_process_that_stands_still_is_said_not_to_be_braked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, as for the others of --all; the request stands, and its owner pulls the brake when it goes on."""
    monkeypatch.setattr(asking, "OWNER_GRACE", 0.0)
    async with open_sqlite_log(tmp_path / "runs.sqlite") as log:
        started = Event(Kind.SESSION_STARTED, text="An objective.")
        await log.append([Entry("mine", 0, (encode(started, stream="mine", seq=1, time=0),))])
        async with log.own("mine"):
            assert await brake("mine", principal="ada", store=tmp_path) == 1
        assert "run mine was NOT braked" in capsys.readouterr().err
        async with open_session(log, MemoryBus(), id="mine") as session:
            await session.attend()
        assert (await history(log, "mine"))[-1].kind == Kind.BRAKE_ENGAGED


def test_misuse_is_said_in_one_sentence(cli: Cli) -> None:
    """Neither a run nor all, both, or no store at all."""
    for words in (("brake",), ("brake", "mine", "--all"), ("brake", "mine"), ("brake", "--all")):
        done = cli(*words)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
