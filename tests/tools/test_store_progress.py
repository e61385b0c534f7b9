"""The bar of long work on a store: only on a terminal, only after a second, and gone afterwards."""

from __future__ import annotations

import io
import sys
import time

import pytest

from affidavit.tools.store_progress import open_bar


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set by the test."""
    seconds = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def test_a_bar_appears_after_a_second_and_is_cleared(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    """Nothing for quick work; then the share that is done, ten times a second at most; at the end an empty line."""
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with open_bar("checking") as bar:
        assert bar is not None
        bar(1, 4)
        assert screen.getvalue() == ""
        now[0] = 1.5
        bar(2, 4)
        bar(3, 4)
        assert screen.getvalue().count("checking") == 1
        assert " 50%" in screen.getvalue()
        now[0] = 2.0
        bar(5, 4)
        assert "100%" in screen.getvalue()
        bar(0, 0)
    assert screen.getvalue().endswith("\r\033[K")


def test_off_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, a file, and a process without standard error get nothing."""
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with open_bar("checking") as bar:
            assert bar is None
