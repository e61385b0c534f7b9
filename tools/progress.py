"""What is shown on standard error while work or a wait lasts: only on a terminal, only after a second, and gone afterwards.

Where standard error is no terminal, or one that cannot move its cursor, there is nothing at all. `verify` has a plain bar of
its own, since it runs without what this one is drawn with.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from affidavit.tools.progress_bar import Bar

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
    if not _can_move():
        yield None
        return
    # Imported here since it is slow to import, and where there is no terminal nothing needs it.
    from affidavit.tools.progress_bar import Bar, work_columns

    with _shown(Bar(what, work_columns(), still=still)) as bar:
        yield bar


@contextmanager
def open_wait(what: str, most: float) -> Iterator[None]:
    """Show for the length of the block what is waited for, and for how long by now; nothing where it could not be seen.

    Args:
        what: What is waited for.
        most: How long it is waited for at most, in seconds.
    """
    if not _can_move():
        yield
        return
    from affidavit.tools.progress_bar import Bar, wait_columns

    with _shown(Bar(f"waiting for {what}", wait_columns(most), still=False)):
        yield


def _can_move() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def _shown(bar: Bar) -> Iterator[Bar]:
    bar.begin()
    try:
        yield bar
    finally:
        bar.end()
