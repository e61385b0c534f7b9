"""A standard output that is closed, full or not read gives a sentence and an exit code, for every command."""

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from affidavit.tools.demo import run_demo

COMMANDS = {"verify": "verify {record}", "overview": "", "demo": "demo --dir demo"}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a record that verifies under the key it names."""
    folder = tmp_path_factory.mktemp("record")
    trio.run(run_demo, folder)
    return next(folder.glob("*.provetrail"))


def _shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = f"{sys.executable} -m affidavit.tools {line}"
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_standard_output_is_told_in_one_sentence(name: str, record: Path, tmp_path: Path) -> None:
    """Where standard output has no room, a command ends with 2 and says so in one line; nothing is called rejected."""
    done = _shell(f"{COMMANDS[name].format(record=record)} >/dev/full", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(("name", "code"), [("verify", 3), ("overview", 0), ("demo", 0)])
def test_a_closed_standard_output_changes_no_outcome(
    name: str, code: int, record: Path, tmp_path: Path
) -> None:
    """With standard output closed a command does its work and exits by its outcome, without a word."""
    done = _shell(f"{COMMANDS[name].format(record=record)} >&-", tmp_path)
    assert (done.returncode, done.stderr) == (code, "")
