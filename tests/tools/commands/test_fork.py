"""`affidavit fork`: a new run from a point of another, which is left as it is."""

import json

import pytest

from tests.tools.commands.runner import Cli, lines_that_begin


@pytest.fixture
def parent(cli: Cli) -> Cli:
    """A home with the finished run `mine`, and a model in it that has more to say."""
    turns = [{"text": "Four."}, {"text": "In base three it is eleven."}]
    (cli.home / "answers.json").write_text(json.dumps({"turns": turns}))
    assert (
        cli("run", "Two and two?", "--model", f"script:{cli.home / 'answers.json'}", "--id", "mine").code == 0
    )
    return cli


def events(cli: Cli, run_id: str) -> list[dict[str, object]]:
    """The run's events."""
    return [json.loads(line) for line in cli("replay", run_id, "--json").out.splitlines()]


def test_a_fork_goes_on_with_what_is_said_and_leaves_its_parent_alone(parent: Cli) -> None:
    """It is shown live, named as what it is, and its record verifies with the origin in plain words."""
    before = events(parent, "mine")
    at = len(before)
    done = parent("fork", "mine", "And in base three?", "--at", at, "--id", "other")
    assert (done.code, "In base three it is eleven." in done.out) == (0, True)
    assert f"run other goes on from event {at} of run mine" in done.err
    assert f"And in base three? (forked from mine at {at})" in done.out
    assert events(parent, "mine") == before
    export, verify = lines_that_begin(done.out, "affidavit ")
    assert parent.printed(export).code == 0
    checked = parent.printed(verify)
    assert (checked.code, f"  forked from  mine at {at}\n" in checked.out) == (0, True)
    assert "not checked  whether it begins with what its parent really said" in checked.out
    told = json.loads(parent.printed(f"{verify} --json").out)["fork"]
    assert (told["run"], told["n"], told["trust"], told["trouble"]) == ("mine", at, "keyring", "")
    assert [line.split()[0] for line in parent("sessions").out.splitlines()[1:]].count("other") == 1


def test_a_fork_that_cannot_be_made_says_where_it_could(parent: Cli) -> None:
    """In one sentence, and no run is left behind."""
    words = ("And?", "--id", "other")
    amid = parent("fork", "mine", *words, "--at", 4)
    beyond = parent("fork", "mine", *words, "--at", 999)
    silent = parent("fork", "mine", "--at", len(events(parent, "mine")), "--id", "other")
    taken = parent("fork", "mine", "And?", "--at", 1, "--id", "mine")
    assert [done.code for done in (amid, beyond, silent, taken)] == [2, 2, 2, 2]
    assert "the nearest events to fork at: 3 and" in amid.err
    assert "has events 1 to" in beyond.err
    assert "say something to go on with" in silent.err
    assert "there is a run mine already" in taken.err
    assert all(len(done.err.splitlines()) == 1 for done in (amid, beyond, silent, taken))
    assert "other" not in parent("sessions").out
