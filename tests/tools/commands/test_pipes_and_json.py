"""E6: piped output is plain text, `--json` is complete and parses, and no colour is shown where none may be."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence

import pytest

from affidavit.tools import app
from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import COMMAND, READER, Cli, lines_that_begin

# Each command that has --json, as it is typed for the run that converged, and the keys that each line has at least.
JSON = {
    "sessions": (("sessions",), {"id", "state"}),
    "replay": (("replay", "converged-1"), {"seq", "time", "kind", "actor"}),
    "replay --at": (("replay", "converged-1", "--at", "3"), set[str]()),
    "watch": (("watch", "converged-1"), {"seq", "time", "kind", "actor"}),
    "inspect": (("inspect", "converged-1"), {"run", "events", "bytes", "kinds", "seals"}),
    "inspect SEQ": (("inspect", "converged-1", "4"), {"run", "seq", "event", "bytes", "leaf", "proof"}),
    "fsck": (("fsck",), {"store", "verdict", "findings"}),
    "approve": (("approve", "converged-1"), set[str]()),
    "resume": (("resume", "converged-1"), {"seq", "time", "kind", "actor"}),
}
# Those that another test in this file runs, since they need something else.
ELSEWHERE = {"run", "policy", "say", "fork", "chat"}


def test_e6_every_command_that_has_json_is_tried(capfd: pytest.CaptureFixture[str]) -> None:
    """The list below is that of the commands whose help offers it."""
    offering = set()
    for command in app.COMMANDS:
        assert app.main([command, "--help"]) == 0
        if "--json" in capfd.readouterr().out:
            offering.add(command)
    assert offering == {name.split()[0] for name in JSON} | ELSEWHERE - {"policy"}


@pytest.mark.parametrize(("words", "keys"), JSON.values(), ids=JSON)
def test_e6_json_is_complete_and_alone(finished: Finished, words: Sequence[str], keys: set[str]) -> None:
    """Each line of standard output is one JSON object with its keys, and nothing else stands there."""
    done = finished.cli(*words, "--json", "--store", finished.store)
    assert done.code == 0
    assert done.out == "" or done.out.endswith("\n")
    for line in done.out.splitlines():
        found = json.loads(line)
        assert found.keys() >= keys
        assert "\x1b" not in line


def test_e6_run_policy_keys_and_verify_as_json(cli: Cli) -> None:
    """The transcript of a run that goes on just now, what a policy says, keys, and a verdict."""
    ran = cli("run", "What is this?", "--model", READER, "--id", "mine", "--json")
    assert ran.code == 0
    assert [json.loads(line)["seq"] for line in ran.out.splitlines()] == list(
        range(1, ran.out.count("\n") + 1)
    )
    export, verify = lines_that_begin(ran.err, "affidavit ")
    assert cli.printed(export).code == 0
    assert json.loads(cli.printed(f"{verify} --json").out)["verdict"] == "accept"
    policy = cli.home / "policy.toml"
    policy.write_text('[grant]\ntools = ["read_file"]\n')
    assert json.loads(cli("policy", "check", policy, "--json").out).keys() >= {"file", "digest", "explained"}
    key = cli("keys", "show", "--json")
    assert json.loads(key.out)
    trusted = cli("keys", "trust", json.loads(key.out)["public_key_hex"], "--keyring", "ring.json")
    assert trusted.code == 0, trusted
    listed = cli("keys", "list", "--keyring", "ring.json", "--json")
    assert all(json.loads(line) for line in listed.out.splitlines())


def test_e6_what_goes_on_with_a_run_as_json(cli: Cli) -> None:
    """A further round, a fork and a chat: events alone on standard output, each one line, each once."""
    script = cli.home / "answers.json"
    script.write_text(json.dumps({"turns": [{"text": f"Answer {number}."} for number in range(5)]}))
    model = ("--model", f"script:{script}", "--json")
    first = seqs(cli("run", "What is this?", "--id", "mine", *model).out)
    said = seqs(cli("say", "mine", "And that?", *model).out)
    chatted = seqs(cli.told("And now?\n", "chat", "mine", *model).out)
    assert first + said + chatted == list(range(1, chatted[-1] + 1))
    assert seqs(cli("fork", "mine", "Again.", "--at", str(first[-1]), *model).out)[0] == 1


def seqs(text: str) -> list[int]:
    """The seqs of the events that some lines of JSON are."""
    return [json.loads(line)["seq"] for line in text.splitlines()]


PEOPLE = (
    ("sessions",),
    ("replay", "converged-1"),
    ("inspect", "converged-1"),
    ("inspect", "converged-1", "4"),
    ("watch", "converged-1"),
    ("fsck",),
    ("sessions", "--help"),
)


@pytest.mark.parametrize("words", PEOPLE, ids=" ".join)
def test_e6_a_pipe_gets_plain_text(finished: Finished, words: Sequence[str]) -> None:
    """Not one escape, even where the environment asks every program for colour."""
    store = () if "--help" in words else ("--store", finished.store)
    done = finished.cli(*words, *store, FORCE_COLOR="1", CLICOLOR_FORCE="1", COLORTERM="truecolor")
    assert done.code == 0
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
@pytest.mark.parametrize("words", PEOPLE[:4], ids=" ".join)
def test_e6_a_terminal_without_colour_gets_none(
    finished: Finished, words: Sequence[str], environment: dict[str, str]
) -> None:
    """`NO_COLOR`, and a terminal that knows no escapes; the text is that of a terminal that shows colour."""
    bare = on_a_terminal(finished, words, environment)
    assert "\x1b" not in bare
    coloured = on_a_terminal(finished, words, {})
    assert bare.splitlines()[0].split()[0] in coloured
    assert "\x1b[" in coloured


def on_a_terminal(finished: Finished, words: Sequence[str], environment: dict[str, str]) -> str:
    """What a command shows on a terminal."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [COMMAND, *words, "--store", finished.store],
        env=finished.cli.environment(**environment, COLUMNS="100"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 1 << 16):
                shown += block
        except OSError:
            # The other end is closed: that is how a terminal's output ends.
            pass
        finally:
            os.close(ours)
        assert process.wait() == 0
    return shown.decode()
