"""The command in an empty home."""

from pathlib import Path

import pytest

from tests.environment import absent
from tests.tools.commands.runner import COMMAND, Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command in an empty home."""
    if not COMMAND.exists():
        absent("the command affidavit is not installed beside this Python")
    return Cli(tmp_path)
