"""E5: what is missing, wrong, locked, full, too new or foreign: one sentence with its next step, exit code 2, nothing lost."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from affidavit.actors.logs import sqlite_place
from affidavit.actors.logs.sqlite_locks import StoreLocks
from affidavit.tools import app
from affidavit.tools.next_steps import has_step
from affidavit.tools.store_place import store_file
from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import READER, Cli, lines_that_begin

RUN = ("run", "Hello", "--model", READER, "--id", "next")


@pytest.fixture
def store(cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Path:
    """A store with one finished run, for commands that run in this process."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AFFIDAVIT_MODEL", "AFFIDAVIT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "only for tests")
    monkeypatch.setenv("AFFIDAVIT_STORE", str(cli.home / "store"))
    monkeypatch.chdir(cli.home)
    assert app.main(["run", "Hello", "--model", READER, "--id", "first"]) == 0
    capfd.readouterr()
    return cli.home / "store"


def with_version(store: Path, version: int) -> None:
    """Make the store one that a program of another version wrote."""
    with sqlite3.connect(store_file(store)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def as_database_of_another(store: Path) -> None:
    """Put the database of some other program where the runs should be."""
    store_file(store).unlink()
    with sqlite3.connect(store_file(store)) as connection:
        connection.execute("PRAGMA application_id = 42")
        connection.execute("CREATE TABLE songs (name)")
    connection.close()


SPOILED: dict[str, tuple[Callable[[Path], object], tuple[str, ...], str]] = {
    "newer version": (lambda store: with_version(store, 999), ("sessions",), "newer version"),
    "newer version, to write": (lambda store: with_version(store, 999), RUN, "newer version"),
    "foreign database": (as_database_of_another, ("sessions",), "a database of another program"),
    "foreign file": (lambda store: store_file(store).write_bytes(b"x" * 9000), RUN, "is not a store"),
    "no store": (lambda store: store_file(store).unlink(), ("replay", "@last"), "there is no store"),
    "missing key of the model": (
        lambda _: None, ("run", "Hello", "--model", "openai:m"), "set the environment variable OPENAI_API_KEY",
    ),
    "wrong model name": (lambda _: None, ("run", "Hello", "--model", "gpt"), "no model 'gpt': choose script:FILE"),
}  # fmt: skip


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that must be refused, and return its one sentence."""
    code = app.main(words)
    shown = capfd.readouterr()
    assert (code, shown.out) == (2, "")
    assert shown.err.startswith("affidavit: ")
    assert shown.err.count("\n") == 1
    assert has_step(shown.err), shown.err
    return shown.err


@pytest.mark.parametrize(("spoil", "words", "sentence"), SPOILED.values(), ids=SPOILED)
def test_e5_one_sentence_with_a_next_step(
    capfd: pytest.CaptureFixture[str],
    store: Path,
    spoil: Callable[[Path], object],
    words: tuple[str, ...],
    sentence: str,
) -> None:
    """Said once, on standard error, and the store's file is left as it was."""
    spoil(store)
    before = store_file(store).read_bytes() if store_file(store).exists() else None
    assert sentence in refused(capfd, *words)
    assert (store_file(store).read_bytes() if store_file(store).exists() else None) == before


def test_e5_a_missing_signing_key_or_passphrase(
    capfd: pytest.CaptureFixture[str], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is begun that could not be signed."""
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE")
    assert "set AFFIDAVIT_PASSPHRASE or AFFIDAVIT_PASSPHRASE_FILE" in refused(capfd, *RUN)
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "another")
    assert "a wrong passphrase" in refused(capfd, *RUN)
    assert "no run begins with 'next'" in refused(capfd, "replay", "next")


def test_e5_a_run_that_another_process_drives(capfd: pytest.CaptureFixture[str], store: Path) -> None:
    """The owner is named as such, and goes on undisturbed."""
    locks = StoreLocks.open(sqlite_place.resolve(store_file(store)))
    locks.own("first")
    try:
        other = str(store.with_name("other"))
        assert "is being driven by another process" in refused(capfd, "store", "copy", "first", "--to", other)
    finally:
        locks.disown("first")
        locks.close()


def test_e5_a_read_only_store(
    capfd: pytest.CaptureFixture[str], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading goes on; writing is refused by name before anything is begun."""
    # Whoever may do anything, such as root, is refused nothing, so the question is answered here.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != 2)
    assert "is read-only" in refused(capfd, *RUN)
    assert app.main(["replay", "first"]) == 0


@pytest.mark.parametrize("blocks", [10, 30])
@pytest.mark.parametrize("words", ["brake --all", "sessions", "seal parked", "fsck"])
def test_e5_no_room_even_to_open_the_store(finished: Finished, words: str, blocks: int) -> None:
    """It is said to be that, and not some error of the disk."""
    done = finished.cli.printed(
        f"cp -r {shlex.quote(str(finished.store))} full-{blocks}; cd full-{blocks}; ulimit -f {blocks};"
        f" affidavit {words} --store .; code=$?; rm -rf ../full-{blocks}; exit $code",
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert done.code == 2
    (sentence,) = lines_that_begin(done.err, "affidavit: ")
    assert "there is no room to open the store" in sentence
    assert "make room there" in sentence


def test_e5_a_refused_connection(cli: Cli) -> None:
    """The run ends as stalled, sealed, with the address and what to look at; nothing of it is lost."""
    done = cli(
        "run", "Hello", "--model", "openai:m", "--id", "alone",
        OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="x" * 20,
    )  # fmt: skip
    assert done.code == 1
    assert "cannot connect to 127.0.0.1:9: is it running, and is OPENAI_BASE_URL right?" in done.out
    assert lines_that_begin(done.out, "record     verified, sealed ")
