"""What `progress` shows, drawn with rich; a module of its own, so that nothing is imported for it off a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Final, final

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from affidavit.tools._verify_report import plain

PATIENCE: Final = 1.0  # seconds before anything is shown
_WIDTH: Final = 30
_PAUSE: Final = 0.125  # seconds between two pictures
_GRACE: Final = 0.5  # seconds in which the last picture is drawn


def work_columns() -> tuple[ProgressColumn, ...]:
    """Return the columns for work: what goes on, how much of it is done, and how long the rest will take."""
    return (
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        BarColumn(_WIDTH),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )


def wait_columns(most: float) -> tuple[ProgressColumn, ...]:
    """Return the columns for a wait: what for, how long by now, and how long at most, in seconds."""
    return (
        SpinnerColumn("line"),
        TextColumn(f"{{task.description}}: {{task.elapsed:.0f}} of at most {most:g} s", markup=False),
    )


@final
class Bar:
    """Made by `progress.open_bar` and `progress.open_wait`; call it with how much is done, and how much there is."""

    def __init__(self, what: str, columns: Sequence[ProgressColumn], *, still: bool) -> None:
        """Show `what` in these columns; see `progress.open_bar`."""
        self._still = still
        self._progress = Progress(
            *columns,
            console=Console(file=sys.stderr, highlight=False),
            # Its own thread would be left to end by itself; ours is waited for.
            auto_refresh=False,
            transient=True,
            # What a command writes on standard output is none of the bar's business.
            redirect_stdout=False,
        )
        self._task = self._progress.add_task(plain(what), total=None)
        self._is_shown = False
        self._over = Event()
        self._mover = Thread(target=self._move, name="progress bar", daemon=True)

    def begin(self) -> None:
        """Show the bar once the patience is over; a still one at once."""
        if self._still:
            self._show()
        else:
            self._mover.start()

    def __call__(self, done: int, total: int) -> None:
        """Say how far the work has come."""
        self._progress.update(self._task, completed=done, total=total)
        if self._still:
            _tolerate(self._progress.refresh)

    def end(self) -> None:
        """Take the bar off the screen; nothing follows."""
        self._over.set()
        if not self._still:
            self._mover.join(_GRACE)
            if self._mover.is_alive():
                # The terminal takes nothing: whoever writes to it now would stand still too.
                return
        if self._is_shown:
            _tolerate(self._progress.stop)

    def _show(self) -> None:
        self._is_shown = True
        _tolerate(self._progress.start)

    def _move(self) -> None:
        if self._over.wait(PATIENCE):
            return
        self._show()
        while not self._over.wait(_PAUSE):
            _tolerate(self._progress.refresh)


def _tolerate(step: Callable[[], None]) -> None:
    """Draw; that it cannot be drawn is no reason for the work to fail."""
    try:
        step()
    except OSError:
        return
