"""The auditor's guide says what is so: its keyring is one, and its commands and codes exist."""

import re
from typing import Any

import pytest

from affidavit.crypto import FailureCode, parse_keyring
from affidavit.tools import keys, verify
from tests.environment import ROOT

GUIDE = (ROOT / "docs" / "verifying.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"^ *affidavit (.+)$", GUIDE, re.MULTILINE)))


def test_the_keyring_shown_is_one() -> None:
    """A trusted key under its own name, and a revoked one."""
    (block,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    trusted, revoked = parse_keyring(block.encode()).entries
    assert trusted.kid.decode() == trusted.key.did_key
    assert revoked.revoked is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shown_exists(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With every option that is shown."""
    name, *words = command.split()
    program: Any = {"verify": verify, "keys": keys}[name]
    assert program.main([words[0], "--help"] if name == "keys" else ["--help"]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in words if word.startswith("--"))


def test_the_families_of_codes_are_all_explained() -> None:
    """A reader of any code finds its first word."""
    assert all(f"`{code.partition('.')[0]}`" in GUIDE for code in FailureCode)


@pytest.mark.parametrize("code", [verify.ACCEPTED, verify.REJECTED, verify.MISUSE, verify.SELF_CERTIFIED])
def test_each_exit_code_is_explained(code: int) -> None:
    """In the table."""
    assert f"\n| {code} | " in GUIDE
