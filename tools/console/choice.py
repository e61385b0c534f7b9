"""Whether a run is shown as a live view or line by line. Lines are for everything that is no full terminal, and for who asks."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

PLAIN_VARIABLE: Final = "AFFIDAVIT_PLAIN"

Plain: TypeAlias = Annotated[
    bool,
    Parameter(
        name="--plain",
        env_var=PLAIN_VARIABLE,
        help="Print line by line instead of the live view, for a screen reader say. So it is wherever there is no full terminal.",
    ),
]


def wants_view(*, plain: bool, as_json: bool) -> bool:
    """Tell whether to show a live view.

    Args:
        plain: Whether lines were asked for.
        as_json: Whether standard output is for programs.
    """
    if plain or as_json or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("TERM", "dumb") in {"", "dumb"}:
        return False
    out = sys.stdout
    if out is None or not out.isatty() or (out.encoding or "").lower().replace("-", "") != "utf8":
        return False
    try:
        # A process in the background is stopped when it touches the terminal's modes.
        return os.tcgetpgrp(1) == os.getpgrp() and bool(os.ttyname(1))
    except OSError:
        return False
