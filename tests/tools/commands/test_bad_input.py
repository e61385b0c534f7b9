"""Whatever a command is given that cannot be meant: one sentence on standard error, exit code 2, and never a traceback."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from affidavit.actors.logs.sqlite_locks import StoreLocks
from affidavit.tools import app
from affidavit.tools.store_place import store_file
from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import READER, Cli

RUN = ("run", "Hello", "--model")
NO_RUN = "no run begins with"


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command runs in this process, in an empty folder, with a passphrase and with no key of a vendor."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "AFFIDAVIT_STORE",
        "AFFIDAVIT_MODEL",
        "AFFIDAVIT_DEBUG",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "only for tests")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def refused(capfd: pytest.CaptureFixture[str], *words: object) -> str:
    """Run a command that must be refused, and return its one sentence."""
    code = app.main([str(word) for word in words])
    shown = capfd.readouterr()
    assert code == 2
    assert shown.out == ""
    assert shown.err.startswith("affidavit: ")
    assert shown.err.count("\n") == 1, shown.err
    return shown.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", " ", "--model", "local"), "the objective is empty"),
        (("run",), "OBJECTIVE requires an argument. See `affidavit run --help`"),
        (("run", "Hello"), "--model requires an argument"),
        ((*RUN, "gpt"), "no model 'gpt': choose script:FILE, openai:NAME, anthropic:NAME, local"),
        ((*RUN, "openai:m"), "no key for api.openai.com: set the environment variable OPENAI_API_KEY"),
        ((*RUN, "script:absent.json"), "the script absent.json cannot be read: No such file"),
        ((*RUN, "local:absent.gguf"), "the model file absent.gguf cannot be read"),
        ((*RUN, READER, "--workspace", "absent"), "the workspace absent does not exist"),
        ((*RUN, READER, "--tools", "read_file"), "name one with --workspace"),
        ((*RUN, READER, "--tools", "dance", "--workspace", "."), "there is no tool 'dance'"),
        ((*RUN, READER, "--id", "two words"), "a run id is 1 to 128 letters"),
        ((*RUN, READER, "--id=--json"), "a run's id cannot begin with '-'"),
        (("run", "Summarise", "this", "--model", READER), "run takes no 'this' here"),
        ((*RUN, READER, "--max-steps", "0"), "--max-steps"),
        ((*RUN, READER, "--max-tokens", "many"), "--max-tokens"),
        ((*RUN, READER, "--colour"), "Unknown option: --colour"),
        (("dance",), 'Unknown command "dance"'),
        (("--dance",), "--dance"),
        (("watch",), "ID requires an argument"),
        (("sessions",), "there is no store at"),
        (("resume", "@last"), "there is no store at"),
        (("seal", "@last"), "there is no store at"),
        (("sessions", "--store", "/dev/null"), "is a file; --store names the folder"),
    ],
)
def test_what_cannot_be_meant(
    capfd: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    """A wrong word, a missing one, or one that names nothing: the sentence says which."""
    assert sentence in refused(capfd, *words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("watch", "none"), NO_RUN),
        (("replay", "none"), NO_RUN),
        (("resume", "none"), NO_RUN),
        (("seal", "none"), NO_RUN),
        (("export", "none"), NO_RUN),
        (("prove", "none", "1"), NO_RUN),
        (("prove", "converged-1", "0"), "covers events 1 to"),
        (("prove", "converged-1", "99999"), "covers events 1 to"),
        (("prove", "converged-1", "first"), "unable to convert"),
        (("watch", "converged-1", "--after", "-1"), "--after"),
        (("export", "converged-1", "--out", "."), ". is a directory; name a file"),
        (("export", "converged-1", "--out", "absent/a"), "absent/a: No such file or directory"),
        (("export", "converged-1", "--out", "--force"), "looks like an option"),
        (("export", "converged-1", "--out", ""), "--out names no file"),
        ((*RUN, READER, "--id", "converged-1"), "there is a run converged-1 already"),
    ],
)
def test_what_a_store_does_not_hold(
    capfd: pytest.CaptureFixture[str], finished: Finished, words: tuple[str, ...], sentence: str
) -> None:
    """A run that is not there, an event that no seal covers, a file that cannot be written, an id that is taken."""
    assert sentence in refused(capfd, *words, "--store", finished.store)


def test_an_ambiguous_id(capfd: pytest.CaptureFixture[str], cli: Cli) -> None:
    """Of a prefix that several runs have, the sentence says how many and which."""
    for name in ("twin-a", "twin-b"):
        assert app.main([*RUN, READER, "--id", name]) == 0
    capfd.readouterr()
    assert "2 runs begin with 'twin': twin-a, twin-b" in refused(capfd, "replay", "twin")


def test_a_file_that_is_there_is_not_replaced(
    capfd: pytest.CaptureFixture[str], finished: Finished, tmp_path: Path
) -> None:
    """Without --force an export refuses and the file stays as it was; with it the file is replaced."""
    there = tmp_path / "there.provetrail"
    there.write_text("mine")
    words = ("export", "converged-1", "--store", finished.store, "--out", there)
    assert "is there already; --force replaces it" in refused(capfd, *words)
    assert there.read_text() == "mine"
    assert app.main([*map(str, words), "--force"]) == 0
    assert there.read_bytes() != b"mine"
    assert list(tmp_path.glob(".there*")) == []


def test_what_is_no_regular_file_is_never_replaced(
    capfd: pytest.CaptureFixture[str], finished: Finished, tmp_path: Path
) -> None:
    """Not even with --force: a pipe, or a device, stays what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ("export", "converged-1", "--store", finished.store, "--out", pipe, "--force")
    assert "is not a regular file" in refused(capfd, *words)
    assert pipe.is_fifo()


def test_a_wrong_passphrase(
    capfd: pytest.CaptureFixture[str], finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key does not open, and no run is begun."""
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "wrong")
    words = (*RUN, READER, "--id", "never", "--store", finished.store)
    assert "a wrong passphrase" in refused(capfd, *words)
    assert NO_RUN in refused(capfd, "replay", "never", "--store", finished.store)


@pytest.mark.parametrize("command", [("sessions",), (*RUN, READER)])
def test_a_store_that_is_none(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A file of another kind is no store: it is left as it was, and no key is made for it."""
    path = store_file(tmp_path)
    path.write_bytes(b"not a database" * 1000)
    assert "is not a store" in refused(capfd, *command, "--store", tmp_path)
    assert path.read_bytes() == b"not a database" * 1000
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("command", [("sessions",), (*RUN, READER)])
def test_a_store_of_a_newer_version(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A store that a newer version has written is refused by name and not touched."""
    assert app.main([*RUN, READER, "--store", str(tmp_path)]) == 0
    capfd.readouterr()
    with sqlite3.connect(store_file(tmp_path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert "newer version" in refused(capfd, *command, "--store", tmp_path)


def test_a_store_that_another_process_holds_locked(
    capfd: pytest.CaptureFixture[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that somebody else drives is refused by name; the owner goes on undisturbed."""
    assert app.main([*RUN, READER, "--id", "taken"]) == 0
    capfd.readouterr()
    path = store_file(cli.home / "data" / "affidavit")
    locks = StoreLocks.open(path)
    locks.own("taken")
    try:
        assert "taken is being driven by another process" in refused(capfd, "seal", "taken")
    finally:
        locks.disown("taken")
        locks.close()


def test_a_damaged_event_is_told_by_its_code(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A store whose rows were changed behind its back is refused with the registered code; `replay` shows what lies before."""
    assert app.main([*RUN, READER, "--store", str(tmp_path)]) == 0
    capfd.readouterr()
    with sqlite3.connect(store_file(tmp_path)) as connection:
        connection.execute("UPDATE rows SET data = x'ff' WHERE seq = 3")
    connection.close()
    assert "enc." in refused(capfd, "approve", "@last", "--store", tmp_path)
    assert app.main(["replay", "@last", "--store", str(tmp_path)]) == 2
    shown = capfd.readouterr()
    assert shown.out.count("\n") == 2
    assert "enc." in shown.err
    assert "`affidavit fsck` tells what is wrong" in shown.err


def test_a_script_that_is_none(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A model script with a mistake in it names the place."""
    (tmp_path / "bad.json").write_text(json.dumps({"turns": [{"texts": "?"}]}))
    assert "the script bad.json is not valid: turns.0.texts" in refused(capfd, *RUN, "script:bad.json")
