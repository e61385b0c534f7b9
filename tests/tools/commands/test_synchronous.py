"""AFFIDAVIT_SYNCHRONOUS: what a commit waits for is chosen by name, and a choice that may lose something says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from affidavit.actors.logs.sqlite_connect import Synchronous
from affidavit.tools import app, driving
from tests.tools.commands.runner import READER


@pytest.mark.parametrize(
    ("named", "chosen"),
    [
        (None, Synchronous.FULL),
        ("", Synchronous.FULL),
        ("full", Synchronous.FULL),
        ("normal", Synchronous.NORMAL),
    ],
)
def test_a_run_commits_as_was_chosen(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    named: str | None,
    chosen: Synchronous,
) -> None:
    """The disk by default; `normal` is named on standard error, with what it may lose."""
    opened: list[Synchronous] = []

    @asynccontextmanager
    async def recording(path: Path, *, synchronous: Synchronous) -> AsyncIterator[SqliteLog]:
        opened.append(synchronous)
        async with open_sqlite_log(path, synchronous=synchronous) as log:
            yield log

    monkeypatch.setattr(driving, "open_sqlite_log", recording)
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "only for tests")
    monkeypatch.delenv("AFFIDAVIT_SYNCHRONOUS", raising=False)
    if named is not None:
        monkeypatch.setenv("AFFIDAVIT_SYNCHRONOUS", named)
    words = [
        "run",
        "settle",
        "--model",
        READER,
        "--store",
        str(tmp_path / "store"),
        "--workspace",
        str(tmp_path),
    ]
    app.main(words)
    assert opened == [chosen]
    assert ("a loss of power may take the last events" in capfd.readouterr().err) is (
        chosen is Synchronous.NORMAL
    )


def test_anything_else_is_refused_before_a_store_is_made(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """E5: one sentence with the two words that are known, exit code 2, and nothing left behind."""
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "only for tests")
    monkeypatch.setenv("AFFIDAVIT_SYNCHRONOUS", "off")
    store = tmp_path / "store"
    assert app.main(["run", "settle", "--model", READER, "--store", str(store)]) == 2
    assert capfd.readouterr().err.strip().endswith("AFFIDAVIT_SYNCHRONOUS must be full or normal, not 'off'")
    assert not store.exists()
