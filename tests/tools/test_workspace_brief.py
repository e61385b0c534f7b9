"""What an agent is told of its workspace: bounded, the same each time, and no more than it is granted."""

from pathlib import Path

import pytest

from affidavit.tools.commands.workspace_brief import system_prompt

BOUND = 3500


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace that holds more than fits."""
    (tmp_path / "README.md").write_text("The ledger project.\n" + "word " * 5000)
    for number in range(300):
        (tmp_path / f"file-{number}").touch()
    return tmp_path


def test_a_model_without_tools_is_given_an_overview(workspace: Path) -> None:
    """It holds the head of the README and the listing, says who made it, and is short enough for a small model."""
    text = system_prompt(workspace, given=None, supports_tools=False, granted=None)
    assert "The ledger project." in text
    assert "file-0" in text
    assert "made by the program that runs you" in text
    assert len(text) < BOUND
    assert text == system_prompt(workspace, given=None, supports_tools=False, granted=None)


def test_it_shows_no_more_than_is_granted(workspace: Path) -> None:
    """Without the grant to read there is no README in it, without the grant to list no listing."""
    listed = system_prompt(workspace, given=None, supports_tools=False, granted=("list_dir",))
    read = system_prompt(workspace, given=None, supports_tools=False, granted=("read_file",))
    neither = system_prompt(workspace, given="Be brief.", supports_tools=False, granted=())
    assert ("file-0" in listed, "ledger project" in listed) == (True, False)
    assert ("file-0" in read, "ledger project" in read) == (False, True)
    assert neither == "Be brief."


def test_a_model_with_tools_looks_for_itself(workspace: Path) -> None:
    """It is told that it can, and shown nothing; the operator's own words replace ours."""
    text = system_prompt(workspace, given=None, supports_tools=True, granted=None)
    assert "tools" in text
    assert "ledger" not in text
    assert system_prompt(workspace, given="Be brief.", supports_tools=True, granted=None) == "Be brief."


def test_without_a_workspace_nothing_is_made_up() -> None:
    """The system prompt is the operator's, or empty."""
    assert system_prompt(None, given=None, supports_tools=True, granted=None) == ""
    assert system_prompt(None, given="Be brief.", supports_tools=False, granted=None) == "Be brief."


def test_a_workspace_without_a_readme_is_listed(tmp_path: Path) -> None:
    """A README that is absent, or leads outside, is left out; the listing stands."""
    (tmp_path / "README.md").symlink_to("/etc/passwd")
    text = system_prompt(tmp_path, given=None, supports_tools=False, granted=None)
    assert "README.md@" in text
    assert "root:" not in text
