"""What people are told when something goes wrong: a sentence, a code, and a traceback only where it was asked for."""

import logging

import pytest

from affidavit.actors.errors import HostFailed, LogFull, SessionFailed
from affidavit.tools.errors import UsageError, notice, report
from affidavit.tools.log_lines import OneLineHandler

RESUME = "affidavit: run x stopped: the disk is full; `affidavit resume` goes on with what stands\n"
ROOM = "make room there and do it again; nothing that was acknowledged is lost"


def caused(error: BaseException, cause: BaseException) -> BaseException:
    """An error with the cause it was raised from."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UsageError("say\nwhat"), 2, "affidavit: say what\n"),
        (
            FileNotFoundError(2, "No such file", "a/b"),
            2,
            "affidavit: a/b: No such file; make what is missing, or name another place\n",
        ),
        (SessionFailed("run x stopped: the disk is full"), 2, RESUME),
        (
            caused(HostFailed("a task"), ExceptionGroup("", [LogFull("full")])),
            2,
            f"affidavit: full; {ROOM}\n",
        ),
        (ExceptionGroup("", [ExceptionGroup("", [UsageError("deep")])]), 2, "affidavit: deep\n"),
        (KeyboardInterrupt(), 130, ""),
        (BaseExceptionGroup("", [KeyboardInterrupt()]), 130, ""),
        (caused(UsageError("no passphrase was given"), KeyboardInterrupt()), 130, ""),
        (BrokenPipeError(), 0, ""),
        (MemoryError(), 2, "affidavit: there is not enough memory\n"),
    ],
    ids=str,
)
def test_each_failure_has_its_sentence_and_code(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, sentence: str
) -> None:
    """Errors of ours and of the system say what they are; an interrupt and a reader that left say nothing."""
    assert report(error) == code
    assert capsys.readouterr().err == sentence


def test_nothing_that_is_said_can_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Names, reasons and messages come from whoever may write the store: what moves a cursor or cannot be seen is spelled out."""
    notice("call 4 was approved already, by a\x1b[2Jd\u202ea\r\nand a second line")
    assert report(UsageError("by a\x1b]0;title\x07da")) == 2
    assert capsys.readouterr().err == (
        "call 4 was approved already, by a\\x1b[2Jd\\u202ea\\r\nand a second line\naffidavit: by a\\x1b]0;title\\x07da\n"
    )


def test_an_unexpected_error_names_its_type_and_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect is one sentence; with AFFIDAVIT_DEBUG=1 the traceback comes before it."""
    monkeypatch.delenv("AFFIDAVIT_DEBUG", raising=False)
    assert report(ZeroDivisionError("by zero")) == 2
    said = capsys.readouterr().err
    assert said.startswith("affidavit: an unexpected ZeroDivisionError: by zero. This is a defect")
    assert said.count("\n") == 1
    monkeypatch.setenv("AFFIDAVIT_DEBUG", "1")
    assert report(caused(ZeroDivisionError("by zero"), ValueError("before"))) == 2
    assert "ValueError: before" in capsys.readouterr().err


def test_what_the_runtime_logs_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A logged exception is shown by its sentence, without its traceback."""
    try:
        raise LogFull("the disk is full")
    except LogFull as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("affidavit", logging.ERROR, "", 0, "run %s could not be sealed", ("x",), info)
    OneLineHandler().emit(record)
    assert capsys.readouterr().err == "affidavit: error: run x could not be sealed: the disk is full\n"
