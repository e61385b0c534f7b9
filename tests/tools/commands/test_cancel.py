"""Asking the owner of a run from another terminal: it is answered, on the record, and nobody is fenced (S7, S11)."""

import getpass
import json
import signal
from collections.abc import Sequence

import trio

from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli

RUN = ("run", "Hello", "--model", "openai:m", "--id", "mine")


def recorded(cli: Cli, kind: str) -> list[dict[str, object]]:
    """Return the run's events of a kind."""
    events: Sequence[dict[str, object]] = [
        json.loads(line) for line in cli("replay", "mine", "--json").out.splitlines()
    ]
    return [event for event in events if event["kind"] == kind]


def until_asked(cli: Cli) -> None:
    """Return once a request stands in the run's inbox."""
    store = cli.home / ".local" / "share" / "affidavit" / "runs.sqlite"

    async def look() -> None:
        with trio.fail_after(30):
            async with open_sqlite_reader(store) as log:
                while not await log.read("mine.inbox"):  # noqa: ASYNC110  # another process changes it
                    await trio.lowlevel.checkpoint()

    trio.run(look)


def test_a_run_of_another_terminal_is_cancelled_by_its_owner(cli: Cli) -> None:
    """The owner ends it, names who and why, seals it and exits as for a stall; the asker sees it and exits 0."""
    with (
        held_endpoint() as gate,
        cli.going(*RUN, OPENAI_BASE_URL=gate.url) as owner,
    ):
        assert gate.asked.wait(30)
        asked = cli("cancel", "mine", "--reason", "wrong ledger", "--as", "ada", AFFIDAVIT_PASSPHRASE=None)
        told, _ = owner.communicate(timeout=30)
    assert (asked.code, owner.returncode) == (0, 1)
    assert "wrong ledger" in asked.out
    assert "record     verified" in told
    (stalled,) = recorded(cli, "session.stalled")
    assert (stalled["principal"], stalled["error"], stalled["causationID"]) == (
        "ada",
        "wrong ledger",
        "mine.inbox/1",
    )
    again = cli("cancel", "mine")
    assert (again.code, again.err) == (1, "run mine has ended already\n")
    assert [line.split()[0] for line in cli("sessions").out.splitlines()[1:]] == ["mine"]
    assert cli("fsck").code == 0


def test_a_run_that_nobody_drives_is_cancelled_at_once(cli: Cli) -> None:
    """No request is needed; the one who asks is this system's user, and no passphrase is asked for."""
    with held_endpoint() as gate, cli.going(*RUN, OPENAI_BASE_URL=gate.url) as owner:
        assert gate.asked.wait(30)
        owner.kill()
        owner.wait()
    asked = cli("cancel", "mine", AFFIDAVIT_PASSPHRASE=None)
    assert asked.code == 0
    assert "affidavit seal mine" in asked.err
    (stalled,) = recorded(cli, "session.stalled")
    assert stalled["principal"] == getpass.getuser()
    assert "causationID" not in stalled


def test_an_owner_that_dies_before_it_answers_leaves_the_request_to_whoever_takes_the_run(cli: Cli) -> None:
    """Paused, it keeps its run; killed, the asker takes the run over and carries out the very request, once."""
    with held_endpoint() as gate, cli.going(*RUN, OPENAI_BASE_URL=gate.url) as owner:
        assert gate.asked.wait(30)
        owner.send_signal(signal.SIGSTOP)
        with cli.going("cancel", "mine", "--reason", "enough") as asker:
            until_asked(cli)
            assert asker.poll() is None
            owner.kill()
            owner.wait()
            asker.communicate(timeout=30)
    assert asker.returncode == 0
    (stalled,) = recorded(cli, "session.stalled")
    assert stalled["causationID"] == "mine.inbox/1"


def test_a_seal_is_made_by_the_owner_of_a_live_run_and_never_again_after_a_restart(cli: Cli) -> None:
    """Asked, answered, and the owner goes on; after SIGKILL and resume there is still one seal of that request."""
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        with cli.going(*RUN, **url) as owner:
            assert gate.asked.wait(30)
            sealed = cli("seal", "mine", "--as", "eve", AFFIDAVIT_PASSPHRASE=None)
            assert owner.poll() is None
            owner.kill()
            owner.wait()
        gate.answer.set()
        resumed = cli("resume", "mine", **url)
    assert (sealed.code, resumed.code) == (0, 0)
    assert "affidavit export mine" in sealed.out
    seals = recorded(cli, "record.sealed")
    assert [seal.get("causationID") for seal in seals].count("mine.inbox/1") == 1
    assert seals[0]["principal"] == "eve"
    assert len(seals) == 2


def test_what_cannot_be_cancelled_is_said_in_one_sentence(cli: Cli) -> None:
    """No store, no such run, a blank name: exit code 2."""
    assert cli("cancel", "mine").code == 2
    with held_endpoint() as gate:
        gate.answer.set()
        assert cli(*RUN, OPENAI_BASE_URL=gate.url).code == 0
    for words in (("cancel", "nobody"), ("cancel", "mine", "--as", " ")):
        done = cli(*words)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
