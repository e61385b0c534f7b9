"""Help: one screen for the whole, and for each command an example that works as it stands."""

import re
import shlex

import pytest
from cyclopts import CycloptsError

from affidavit.tools import app, overview
from affidavit.tools.__main__ import main

WIDE, HIGH = 100, 40


def help_of(capfd: pytest.CaptureFixture[str], command: str) -> str:
    """What `affidavit COMMAND --help` prints."""
    assert app.main([command, "--help"]) == 0
    return capfd.readouterr().out


@pytest.mark.parametrize("command", app.COMMANDS)
def test_each_command_has_an_example_that_parses(capfd: pytest.CaptureFixture[str], command: str) -> None:
    """The help of each command fits a screen, is plain text, and shows an example of that very command."""
    text = help_of(capfd, command)
    examples = re.findall(rf"^ +affidavit ({command}\b.*)$", text, re.MULTILINE)
    assert examples
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    for example in examples:
        app.build_app().parse_args(shlex.split(example), exit_on_error=False, print_error=False)


def test_an_example_with_a_mistake_would_be_found() -> None:
    """The parser that examples are held to does refuse what is wrong."""
    with pytest.raises(CycloptsError):
        app.build_app().parse_args(["export"], exit_on_error=False, print_error=False)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_whole_is_explained_on_one_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """`affidavit` alone, and its help, say what it is for and name every command."""
    monkeypatch.setattr("sys.argv", ["affidavit", *words])
    assert main() == 0
    text = capsys.readouterr().out
    assert text == overview.OVERVIEW
    lines = text.splitlines()
    assert len(lines) <= HIGH
    assert max(map(len, lines)) <= WIDE
    named = set(re.findall(r"^  ([a-z]+)\b", text, re.MULTILINE))
    assert {*app.COMMANDS, "verify", "keys"} <= named


def test_the_version_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the name and the version."""
    assert app.main(["--version"]) == 0
    assert re.fullmatch(r"affidavit \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)
