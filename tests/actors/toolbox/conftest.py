"""The workspace that the tests of its tools look into."""

from pathlib import Path

import pytest

from tests.actors.toolbox.workspaces import SECRET


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a secret that must never be read."""
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "deep.txt").write_text(SECRET)
    made = tmp_path / "work"
    (made / "src").mkdir(parents=True)
    (made / "README.md").write_text("one\ntwo\nthree\n")
    (made / "src" / "main.py").write_text("print('hello')\n")
    return made
