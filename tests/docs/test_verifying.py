"""The auditor's guide says what is so: its keyring is one, and its commands and codes exist."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import FailureCode, parse_keyring
from affidavit.crypto.cbor import DEFAULT_MAX_DEPTH, MAX_ITEMS
from affidavit.crypto.cose import MAX_MESSAGE_BYTES
from affidavit.crypto.event_form import MAX_EVENT_BYTES
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


def test_the_program_shown_verifies_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands in the guide, beside a record and a keyring of the names that it gives."""
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    keyring = {"keyring": [{"key_id": KID.decode(), "public_key_hex": KEY.public.hex}]}
    (tmp_path / "trusted.json").write_text(json.dumps(keyring), encoding="utf-8")
    (tmp_path / "run.provetrail").write_bytes(sealed(events(3)))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("keyring L4 3 None ()")


def test_the_limits_are_those_of_the_code() -> None:
    """Each number of the table is the constant that holds it."""
    for words in (
        f"{MAX_EVENT_BYTES >> 20} MiB, {MAX_ITEMS:,} items",
        f"{DEFAULT_MAX_DEPTH} levels; `--max-depth N` raises it to 10,000",
        f"{MAX_MESSAGE_BYTES >> 10} KiB",
    ):
        assert words in GUIDE
