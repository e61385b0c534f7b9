"""The one place where a failure becomes a sentence and an exit code. No command ever shows a traceback by itself.

With AFFIDAVIT_DEBUG=1 in the environment the traceback is shown as well.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from typing import Final

from affidavit.crypto.failures import AffidavitError
from affidavit.tools._verify_report import plain

CONVERGED: Final = 0
STALLED: Final = 1
MISUSE: Final = 2
PARKED: Final = 4
INTERRUPTED: Final = 130
DEBUG_VARIABLE: Final = "AFFIDAVIT_DEBUG"


class UsageError(AffidavitError):
    """A command was asked for something that cannot be meant."""


def notice(text: str) -> None:
    """Tell a person something on standard error. That it cannot be told is no reason to fail.

    Names and reasons in it may come from anyone who may write the store, so nothing in it can steer the terminal.
    """
    try:
        print("\n".join(map(plain, text.split("\n"))), file=sys.stderr, flush=True)
    except OSError:
        return


def report(error: BaseException, command: str = "") -> int:
    """Say on standard error what went wrong, and what to do about it.

    Args:
        error: Whatever ended a command.
        command: Which one, for those whom only its help can help.

    Returns:
        The exit code that goes with it.
    """
    if os.environ.get(DEBUG_VARIABLE) == "1":
        notice("".join(traceback.format_exception(error)).rstrip())
    found = list(_leaves(error))
    if any(isinstance(each, KeyboardInterrupt) for each in found):
        return INTERRUPTED
    if all(isinstance(each, BrokenPipeError) for each in found):
        # Whoever reads has seen enough.
        return CONVERGED
    # Imported here since it knows every error of the runtime, and only a command that fails needs it.
    from affidavit.tools.next_steps import has_step, with_next_step

    text = with_next_step(sentence(found[0]), found[0])
    if command and not has_step(text):
        text = f"{text}; see `affidavit {command} --help`"
    notice(f"affidavit: {text}")
    return MISUSE


def sentence(error: BaseException) -> str:
    """Return what went wrong, in one sentence for the person at the terminal."""
    match error:
        case AffidavitError():
            return _one_line(str(error))
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return _one_line(f"{where}{error.strerror or error}")
        case MemoryError():
            return "there is not enough memory"
        case _:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return _one_line(
                f"an unexpected {what}. This is a defect: please report it, with what {DEBUG_VARIABLE}=1 shows"
            )


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Go through the errors that a person should hear of: those within groups, and the interrupt behind another."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    elif isinstance(error.__cause__, KeyboardInterrupt | BaseExceptionGroup):
        yield from _leaves(error.__cause__)
    else:
        yield error


def _one_line(text: str) -> str:
    return " ".join(text.split())
