"""The auditor's guide says what is so: its keyring is one, and its commands and codes exist."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from affidavit.actors.codec import stored_type
from affidavit.actors.events import Kind
from affidavit.crypto import FailureCode, parse_keyring
from affidavit.tools import keys, verify
from tests.crypto.samples import KEY, KID, events, sealed
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


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """A folder with a record and a keyring of the names that the guide gives."""
    keyring = {"keyring": [{"key_id": KID.decode(), "public_key_hex": KEY.public.hex}]}
    (tmp_path / "trusted.json").write_text(json.dumps(keyring), encoding="utf-8")
    (tmp_path / "run.provetrail").write_bytes(sealed(events(3)))
    return tmp_path


def said_by(program: str, folder: Path) -> str:
    """What a program of the guide prints, as it stands there."""
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_the_programs_shown_verify_a_record_and_print_its_events(evidence: Path) -> None:
    """The first prints each event, the second the verdict."""
    reads, verifies = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert [line.split()[:3] for line in said_by(reads, evidence).splitlines()] == [
        [str(seq), "note", "agent"] for seq in (1, 2, 3)
    ]
    assert said_by(verifies, evidence).startswith("keyring L4 3 None ()")


def test_each_type_of_event_is_explained() -> None:
    """Whatever a run of ours may record about itself; requests stand in its inbox, which is never exported."""
    kinds = [kind for kind in Kind if not kind.startswith("request.")]
    assert [kind for kind in kinds if f"`{stored_type(kind)}`" not in GUIDE] == []
