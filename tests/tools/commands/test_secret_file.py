"""`--secret-file` and AFFIDAVIT_SECRETS_FILE: further secrets, kept out of what a run records and what its command prints."""

import json
from pathlib import Path

import pytest

from tests.tools.commands.runner import Cli

SECRET, OTHER = "hunter2-hunter2", "correct horse battery"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A file of two secrets, with an empty line."""
    path = tmp_path / "secrets"
    path.write_text(f"{SECRET}\n\n  {OTHER}\n", encoding="utf-8")
    return path


def script(folder: Path) -> str:
    """A model that repeats both."""
    path = folder / "repeats.json"
    path.write_text(json.dumps({"turns": [{"text": f"It is {SECRET}, or {OTHER}."}]}), encoding="utf-8")
    return f"script:{path}"


@pytest.mark.parametrize("by", ["option", "variable"])
def test_secrets_of_a_file_are_not_recorded(cli: Cli, tmp_path: Path, secrets: Path, by: str) -> None:
    """They stand neither in the transcript, nor in the exported record, nor in the store."""
    words = ("--secret-file", secrets) if by == "option" else ()
    more = {} if by == "option" else {"AFFIDAVIT_SECRETS_FILE": str(secrets)}
    objective = f"Say {SECRET}"
    done = cli("run", objective, "--model", script(tmp_path), "--id", "mine", *words, **more)
    assert done.code == 0, done.err
    assert "It is [secret removed], or [secret removed]." in done.out
    assert cli("export", "mine", "--out", tmp_path / "mine.record").code == 0
    kept = [path for path in cli.home.rglob("*") if path.is_file() and path.parent != tmp_path]
    written = b"".join(path.read_bytes() for path in [*kept, tmp_path / "mine.record"] if path != secrets)
    for secret in (SECRET, OTHER):
        assert secret not in done.out + done.err
        assert secret.encode() not in written


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"short\n", "at least 8"), (b"\xff\xfe\xff\xfe", "is not UTF-8"), (None, "cannot be read")],
)
def test_a_file_that_is_none_is_refused_before_anything_is_begun(
    cli: Cli, tmp_path: Path, content: bytes | None, why: str
) -> None:
    """One sentence, exit code 2, and no run; nor is the line repeated that was no secret."""
    path = tmp_path / "none"
    if content is not None:
        path.write_bytes(content)
    done = cli("run", "Hello", "--model", script(tmp_path), "--secret-file", path)
    assert done.code == 2
    assert why in done.err
    assert "Traceback" not in done.err
    assert "short" not in done.err.replace("shorter", "")
    assert "there is no store" in cli("sessions").err
