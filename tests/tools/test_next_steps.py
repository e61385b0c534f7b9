"""Every sentence that a command ends with says what to do next, whoever wrote it."""

from __future__ import annotations

import ast
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from affidavit.actors import errors
from affidavit.actors.signers.keyfile import KeyFileError
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.tools.errors import UsageError, report
from affidavit.tools.next_steps import has_step, with_next_step
from affidavit.tools.passphrase import PassphraseError
from tests.environment import ROOT

KINDS = {
    kind.__name__: kind
    for kind in (
        errors.ConfigurationError,
        errors.LogClosed,
        errors.LogFull,
        errors.LogLocked,
        errors.LogStateUnknown,
        errors.ResumeRefused,
        errors.SealRefused,
        errors.StoreDamaged,
        errors.StoreUnusable,
        errors.UnknownGoal,
        errors.UnknownRun,
        KeyFileError,
        PassphraseError,
        UsageError,
    )
}
# What these are about hangs on the words of the command line, so its help is the step where the sentence has none.
BY_HELP = (errors.ConfigurationError, errors.ResumeRefused, UsageError)


def sentences() -> Iterator[tuple[str, str]]:
    """Every sentence that is written out where one of these errors is made; a gap stands for what is filled in."""
    for folder in ("actors", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                    text = _written(node.args[0])
                    if node.func.id in KINDS and text:
                        yield node.func.id, text


def _written(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "GAP" for part in node.values)
    return ""


SENTENCES = sorted(set(sentences()))


def test_the_sentences_are_found() -> None:
    """The list is that of the whole product, and not of what happened to be parsed."""
    assert len(SENTENCES) > 150
    assert {name for name, _ in SENTENCES} >= KINDS.keys() - {"UnknownGoal", "LogClosed"}


@pytest.mark.parametrize(("name", "text"), SENTENCES)
def test_each_sentence_gets_a_next_step(capsys: pytest.CaptureFixture[str], name: str, text: str) -> None:
    """By its own words, by what kind of error it is, or by the help of the command that was typed; and only once."""
    error = KINDS[name](text)
    assert report(error, "run") == 2
    said = capsys.readouterr().err
    assert said.startswith("affidavit: ")
    assert has_step(said)
    assert said.count("\n") == 1
    assert has_step(with_next_step(text, error)) or isinstance(error, BY_HELP)
    if has_step(text):
        assert said == f"affidavit: {' '.join(text.split())}\n"


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (errors.StoreUnusable("there is no store at x"), '`affidavit run "..."` makes one'),
        (errors.StoreUnusable("the store x was made by a newer version of this program"), "use that version"),
        (errors.StoreUnusable("x is a database of another program, not a store"), "--store names the folder"),
        (errors.StoreUnusable("the store x is read-only"), "to write, get the permission"),
        (errors.StoreUnusable("the store x is damaged: it is"), "`affidavit fsck` tells what is wrong"),
        (errors.StoreUnusable("there is no room to open the store x"), "make room there"),
        (errors.LogFull("there is no room left for the store x"), "make room there"),
        (errors.LogLocked("the store x is locked by another process"), "try again in a moment"),
        (errors.RunOwned("run-1"), "wait for it, or end it with `affidavit cancel`"),
        (errors.SealRefused("run x was never sealed"), "`affidavit seal` signs"),
        (VerificationError(FailureCode.ENC_DECODE, "byte 3"), "`affidavit fsck` tells what is wrong"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), "make room there"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), "get the permission"),
        (KeyFileError("x is there already; a key is never overwritten"), "`affidavit keys show` shows it"),
    ],
    ids=str,
)
def test_the_step_fits_the_error(error: BaseException, step: str) -> None:
    """What helps against one thing is not advised against another."""
    assert step in with_next_step(str(error), error)


def test_a_run_that_stopped_is_helped_by_what_stopped_it() -> None:
    """A full disk wants room, whoever noticed it; of an unknown cause the run can be resumed."""
    stopped = errors.SessionFailed("run x stopped: there is no room left for the store")
    assert with_next_step("it stopped", stopped).endswith("`affidavit resume` goes on with what stands")
    stopped.__cause__ = errors.LogFull("there is no room left for the store")
    assert "make room there" in with_next_step("it stopped", stopped)


def test_docs_that_are_named_are_there() -> None:
    """A step that names a page names one of ours."""
    text = (ROOT / "tools" / "next_steps.py").read_text(encoding="utf-8")
    named = {word.strip("\"',;") for word in text.split() if word.startswith("docs/")}
    assert named
    assert all(Path(ROOT / name).is_file() for name in named)
