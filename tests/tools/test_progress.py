"""The bar of long work, and the line of a long wait: only on a terminal, only after a second, and gone afterwards."""

from __future__ import annotations

import io
import sys
import threading
from typing import Final

import pytest

from affidavit.tools import progress_bar
from affidavit.tools.progress import open_bar, open_wait

HIDE: Final = "\x1b[?25l"
SHOW: Final = "\x1b[?25h"


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Clock:
    """Stands in for the event that ends the bar's thread: its first waits last as long as they may, then the work is over."""

    def __init__(self, pictures: int) -> None:
        self.waited: list[float] = []
        self._left = pictures

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self._left -= 1
        return self._left < 0

    def set(self) -> None:
        self._left = 0


class _Thread(threading.Thread):
    """A thread that has done all that it does before the work goes on."""

    def start(self) -> None:
        super().start()
        self.join()


def terminal(monkeypatch: pytest.MonkeyPatch, pictures: int = 0) -> tuple[_Screen, _Clock]:
    """Make standard error a terminal, on which the bar's thread has time for so many pictures."""
    shown, clock = _Screen(), _Clock(pictures)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress_bar, "Event", lambda: clock)
    monkeypatch.setattr(progress_bar, "Thread", _Thread)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return shown, clock


def test_a_bar_appears_after_a_second_and_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on, and how much of it is done; at the end nothing is left, and no thread."""
    before = threading.active_count()
    screen, clock = terminal(monkeypatch, 2)
    with open_bar("checking [bold]x") as tell:
        assert tell is not None
        assert clock.waited == [1.0, 0.125, 0.125]
        tell(2, 4)
    text = screen.getvalue()
    assert "checking [bold]x" in text
    assert " 50%" in text
    assert text.count(HIDE) == text.count(SHOW) == 1
    assert text.rstrip().endswith("\x1b[2K")
    assert threading.active_count() == before


def test_a_long_wait_says_what_for_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited for, how long by now and at most; it appears after a second, and nothing is left of it."""
    screen, clock = terminal(monkeypatch, 1)
    with open_wait("somebody [bold]else", 30.0):
        assert clock.waited == [1.0, 0.125]
    text = screen.getvalue()
    assert "waiting for somebody [bold]else: 0 of at most 30 s" in text
    assert text.count(HIDE) == text.count(SHOW) == 1
    assert text.rstrip().endswith("\x1b[2K")


def test_quick_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Done within the second, not a byte was written."""
    screen, clock = terminal(monkeypatch)
    with open_bar("checking") as tell:
        assert tell is not None
        tell(4, 4)
    assert (screen.getvalue(), clock.waited) == ("", [1.0])


def test_a_still_bar_stands_there_at_once_and_moves_only_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """For work that a thread of the bar's own would disturb, or that stops every thread."""
    screen, clock = terminal(monkeypatch)
    with open_bar("measuring", still=True) as tell:
        assert tell is not None
        assert "measuring" in screen.getvalue()
        before = len(screen.getvalue())
        tell(1, 2)
        assert " 50%" in screen.getvalue()[before:]
    assert clock.waited == []


def test_a_screen_that_is_gone_stops_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal was closed: the work goes on without its bar."""
    screen, _ = terminal(monkeypatch)

    def broken(_: str) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(screen, "write", broken)
    with open_bar("measuring", still=True) as tell:
        assert tell is not None
        tell(1, 2)
    assert screen.getvalue() == ""


def test_off_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, a file, a process without standard error, and a terminal that cannot move its cursor get nothing."""
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with open_bar("checking") as bar, open_wait("nobody", 1.0):
            assert bar is None
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "dumb")
    with open_bar("checking") as bar, open_wait("nobody", 1.0):
        assert bar is None
    assert screen.getvalue() == ""
