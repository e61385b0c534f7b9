"""`--secret-file` and AFFIDAVIT_SECRETS_FILE: further secrets, kept out of what a run records and what its command prints."""

import json
from pathlib import Path

import pytest

from affidavit.actors.models.endpoint import ANTHROPIC, OPENAI
from affidavit.tools.own_secrets import KEY_VARIABLES
from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli

SECRET, OTHER, KEY = "hunter2-hunter2", "correct horse battery", "sk-0123456789abcdef"
RUN = ("run", "Hello", "--model", "openai:m", "--id", "mine")


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A file of two secrets, with an empty line."""
    path = tmp_path / "secrets"
    path.write_text(f"{SECRET}\n\n  {OTHER}\n", encoding="utf-8")
    return path


def script(folder: Path) -> str:
    """A model that repeats both."""
    path = folder / "repeats.json"
    path.write_text(json.dumps({"turns": [{"text": f"It is {SECRET}, or {OTHER}."}]}), encoding="utf-8")
    return f"script:{path}"


@pytest.mark.parametrize("by", ["option", "variable"])
def test_secrets_of_a_file_are_not_recorded(cli: Cli, tmp_path: Path, secrets: Path, by: str) -> None:
    """They stand neither in the transcript, nor in the exported record, nor in the store."""
    words = ("--secret-file", secrets) if by == "option" else ()
    more = {} if by == "option" else {"AFFIDAVIT_SECRETS_FILE": str(secrets)}
    objective = f"Say {SECRET}"
    done = cli("run", objective, "--model", script(tmp_path), "--id", "mine", *words, **more)
    assert done.code == 0, done.err
    assert "It is [secret removed], or [secret removed]." in done.out
    assert cli("export", "mine", "--out", tmp_path / "mine.record").code == 0
    kept = [path for path in cli.home.rglob("*") if path.is_file() and path.parent != tmp_path]
    written = b"".join(path.read_bytes() for path in [*kept, tmp_path / "mine.record"] if path != secrets)
    for secret in (SECRET, OTHER):
        assert secret not in done.out + done.err
        assert secret.encode() not in written


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"short\n", "at least 8"), (b"\xff\xfe\xff\xfe", "is not UTF-8"), (None, "cannot be read")],
)
def test_a_file_that_is_none_is_refused_before_anything_is_begun(
    cli: Cli, tmp_path: Path, content: bytes | None, why: str
) -> None:
    """One sentence, exit code 2, and no run; nor is the line repeated that was no secret."""
    path = tmp_path / "none"
    if content is not None:
        path.write_bytes(content)
    done = cli("run", "Hello", "--model", script(tmp_path), "--secret-file", path)
    assert done.code == 2
    assert why in done.err
    assert "Traceback" not in done.err
    assert "short" not in done.err.replace("shorter", "")
    assert "there is no store" in cli("sessions").err


def inbox_and_record(cli: Cli) -> bytes:
    """Return all that the store and its neighbours hold."""
    return b"".join(path.read_bytes() for path in (cli.home / ".local").rglob("*") if path.is_file())


def test_a_reason_is_written_without_what_the_asker_knows_to_be_secret(cli: Cli, secrets: Path) -> None:
    """It stands neither in the inbox nor on the record, though the owner was not told of that secret."""
    with held_endpoint() as gate, cli.going(*RUN, OPENAI_BASE_URL=gate.url) as owner:
        assert gate.asked.wait(30)
        asked = cli(
            "cancel", "mine", "--reason", f"{SECRET} got out, and {KEY}",
            AFFIDAVIT_SECRETS_FILE=str(secrets), OPENAI_API_KEY=KEY,
        )  # fmt: skip
        told, _ = owner.communicate(timeout=30)
    assert asked.code == 0, asked.err
    for text in (asked.out, asked.err, told, cli("replay", "mine", "--json").out):
        assert SECRET not in text
        assert KEY not in text
    assert "[secret removed] got out, and [secret removed]" in asked.out
    kept = inbox_and_record(cli)
    assert b"[secret removed] got out" in kept
    assert SECRET.encode() not in kept
    assert KEY.encode() not in kept


def test_a_reason_with_the_owners_secret_is_recorded_without_it(cli: Cli, secrets: Path) -> None:
    """The asker knows of no secret, so its request stands as it was written; the run and the answer do not have it."""
    with (
        held_endpoint() as gate,
        cli.going(*RUN, OPENAI_BASE_URL=gate.url, AFFIDAVIT_SECRETS_FILE=str(secrets)) as owner,
    ):
        assert gate.asked.wait(30)
        assert cli("cancel", "mine", "--reason", f"{SECRET} got out").code == 0
        told, _ = owner.communicate(timeout=30)
    assert SECRET not in told
    assert SECRET not in cli("replay", "mine", "--json").out
    assert cli("export", "mine", "--out", cli.home / "mine.record").code == 0
    assert SECRET.encode() not in (cli.home / "mine.record").read_bytes()


def test_a_file_that_cannot_be_read_keeps_nobody_from_the_kill_switch(cli: Cli, tmp_path: Path) -> None:
    """It is said, and what was asked is asked all the same."""
    with held_endpoint() as gate, cli.going(*RUN, OPENAI_BASE_URL=gate.url):
        assert gate.asked.wait(30)
        braked = cli("brake", "mine", "--reason", "stop", AFFIDAVIT_SECRETS_FILE=str(tmp_path / "none"))
    assert braked.code == 0
    assert "cannot be read" in braked.err
    assert "were not looked for in what is asked" in braked.err


def test_the_keys_that_are_looked_for_are_those_of_the_models() -> None:
    """They are named by hand where they are looked for."""
    assert set(KEY_VARIABLES) == {OPENAI.key_variable, ANTHROPIC.key_variable}


def test_no_report_of_any_command_holds_one(cli: Cli, secrets: Path) -> None:
    """Planted in objective, words, a file that a tool reads, a path and an id: no report, in words or as JSON, has it (E7)."""
    work = cli.home / "work"
    work.mkdir()
    (work / "notes.txt").write_text(f"The password is {SECRET}.\n", encoding="utf-8")
    calls = [
        {"id": f"call-{SECRET}", "name": "read_file", "input": {"path": "notes.txt"}},
        {"name": "read_file", "input": {"path": f"no/{SECRET}"}},
        {"name": f"no-{SECRET}", "input": {"k": SECRET}},
    ]
    turns = [{"text": f"I look for {SECRET}.", "tool_calls": calls}, {"text": f"It is {SECRET}."}]
    (cli.home / "model.json").write_text(json.dumps({"turns": turns}), encoding="utf-8")
    known = {"AFFIDAVIT_SECRETS_FILE": str(secrets)}
    words = ("--model", "script:model.json", "--workspace", "work", "--id", "mine")
    done = [cli("run", f"Find {SECRET}", *words, "--json", **known)]
    done += [
        cli(*report.split(), **known)
        for report in (
            "replay mine",
            "replay mine --json",
            "watch mine",
            "sessions",
            "sessions --json",
            "inspect mine 3",
            "export mine --out mine.record",
            "prove mine 3 --out mine.proof",
            "verify mine.record",
            "verify mine.record --json",
            "verify mine.proof",
            "fsck",
            "resume mine --model script:model.json",
        )
    ]
    assert {each.code for each in done[:-1]} <= {0, 3}, [each.err for each in done]
    assert sum("[secret removed]" in each.out for each in done) >= 4
    assert not any("Traceback" in each.err for each in done)
    assert not any(SECRET in each.out + each.err for each in done)
    left = [cli.home / "mine.record", cli.home / "mine.proof", *(cli.home / ".local").rglob("*")]
    assert not any(SECRET.encode() in path.read_bytes() for path in left if path.is_file())
