"""The README and the examples say what is so."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from affidavit.actors.models.script import ScriptModel
from tests.docs.readme_blocks import README, demo_screen, example_heart, with_blocks
from tests.environment import CI, ROOT

# What an example shows may be a library of others, which only the dependency group `dev` brings.
LIBRARIES = {"asyncio_agent.py": ("pydantic_ai", "trio_asyncio")}
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
MARKDOWN = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_readme_shows_the_demo_and_the_example_as_they_are(tmp_path: Path) -> None:
    """The README's blocks equal what the program prints and what the example says."""
    readme = README.read_text(encoding="utf-8")
    assert with_blocks(readme, demo_screen(tmp_path), example_heart()) == readme


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_each_example_runs(example: Path, tmp_path: Path) -> None:
    """Every example ends with exit code 0, in a folder of its own and without any output on standard error."""
    for library in LIBRARIES.get(example.name, ()):
        if not CI and importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_script_shown_is_one() -> None:
    """As docs/models.md shows it, and those that it points to."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    scripts = [
        path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "examples" / "scripts").glob("*.json")
    ]
    assert len(scripts) == 2
    for script in (shown, *scripts):
        assert ScriptModel.from_text(script).digest


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_to_a_file_leads_somewhere(page: Path) -> None:
    """Every relative link of the documentation names a file or folder that exists."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []
