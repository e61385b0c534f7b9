"""One store for all tests that only read it: a run that converged, one that stalled, and the key that sealed both."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.environment import absent
from tests.tools.commands.runner import COMMAND, READER, Cli, Done


@dataclass(frozen=True, slots=True)
class Finished:
    """A store with finished runs, and what the commands that made them said."""

    cli: Cli
    store: Path
    converged: Done
    stalled: Done


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command in an empty home."""
    _require_command()
    return Cli(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Two finished runs, named `converged-1` and `stalled-1`; no test changes this store."""
    _require_command()
    home = tmp_path_factory.mktemp("home")
    cli, store, workspace = Cli(home), home / "store", home / "workspace"
    workspace.mkdir()
    (workspace / "README.md").write_text("# A ledger\n\nIt keeps \x1b[31mred\x1b[0m numbers.\n")
    converged = cli(
        "run", "What is this?", "--model", READER, "--workspace", workspace, "--tools", "read_file",
        "--store", store, "--id", "converged-1",
    )  # fmt: skip
    script = home / "cut.json"
    script.write_text(json.dumps({"turns": [{"text": "Because", "stop_reason": "max_tokens"}]}))
    stalled = cli("run", "Why?", "--model", f"script:{script}", "--store", store, "--id", "stalled-1")
    return Finished(cli, store, converged, stalled)


def _require_command() -> None:
    if not COMMAND.exists():
        absent("the command affidavit is not installed beside this Python")
