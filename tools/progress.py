"""A bar on standard error for work that lasts: only on a terminal, only after a second, and gone when the work is done.

Where standard error is no terminal, or one that cannot move its cursor, there is no bar at all. `verify` has a plain bar of
its own, since it runs without what this one is drawn with.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

# Told how much is done, and how much there is.
Tell: TypeAlias = Callable[[int, int], None]


@contextmanager
def open_bar(what: str, *, still: bool = False) -> Iterator[Tell | None]:
    """Give a bar for the length of the block, which is gone afterwards; None where it could not be seen.

    Args:
        what: What is going on, in a word or two.
        still: Whether it moves only when it is called, and stands there from the beginning: for work that a moving one would
            disturb, or that lets nothing move.
    """
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    # Imported here since it is slow to import, and where there is no terminal nothing needs it.
    from affidavit.tools.progress_bar import Bar

    bar = Bar(what, still=still)
    bar.begin()
    try:
        yield bar
    finally:
        bar.end()
