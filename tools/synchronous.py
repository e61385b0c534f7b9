"""What a commit of `run` and `resume` waits for: the disk, unless a person has chosen otherwise by name."""

from __future__ import annotations

import os
from typing import Final

from affidavit.actors.logs.sqlite_connect import Synchronous
from affidavit.tools.errors import UsageError, notice

SYNCHRONOUS_VARIABLE: Final = "AFFIDAVIT_SYNCHRONOUS"


def chosen_synchronous() -> Synchronous:
    """Return what AFFIDAVIT_SYNCHRONOUS names, `full` by default; that it is `normal` is told, with what that may lose.

    Raises:
        UsageError: It names something else.
    """
    named = os.environ.get(SYNCHRONOUS_VARIABLE, "") or Synchronous.FULL
    try:
        chosen = Synchronous(named.upper())
    except ValueError:
        raise UsageError(f"{SYNCHRONOUS_VARIABLE} must be full or normal, not {named!r}") from None
    if chosen is Synchronous.NORMAL:
        notice(
            f"{SYNCHRONOUS_VARIABLE}={named}: a loss of power may take the last events, though they were acknowledged"
        )
    return chosen
