"""The view in a real terminal multiplexer: a person types, approves, resizes, refuses and stops."""

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.environment import require_tool
from tests.tools.commands.runner import COMMAND, Cli
from tests.tools.console.ptys import PATIENCE
from tests.tools.console.terminals import ALL_APPROVALS, words_of_a_run


class Tmux:
    """A multiplexer of its own with one window, in which a shell waits for lines."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self._program = require_tool("tmux")
        self._socket = folder / "tmux"
        self._environment = cli.environment(PATH=f"{COMMAND.parent}:{os.environ['PATH']}", PS1="$ ", ENV=None)
        fifo = folder / "output"
        os.mkfifo(fifo)
        self._output = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        self("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", str(cli.home), "/bin/sh")
        # What the window prints wakes the test, which then looks at the screen.
        self("pipe-pane", f"cat > {fifo}")

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [self._program, "-u", "-S", str(self._socket), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return done.stdout

    def screen(self) -> str:
        """What the window shows."""
        return self("capture-pane", "-p", "-J")

    def until(self, is_so: Callable[[str], bool]) -> str:
        """Look until the screen is as wanted."""
        end = time.monotonic() + PATIENCE
        while not is_so(screen := self.screen()):
            assert time.monotonic() < end, f"never as wanted:\n{screen}"
            if select.select([self._output], [], [], 0.5)[0]:
                os.read(self._output, 65_536)
        return screen

    def shows(self, words: str) -> str:
        """Look until some words are there."""
        return self.until(lambda screen: words in screen)

    def type(self, text: str) -> None:
        """Type characters."""
        self("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press named keys."""
        self("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self("resize-window", "-x", str(width), "-y", str(height))

    def close(self) -> None:
        """End the multiplexer and all in it."""
        subprocess.run(
            [self._program, "-S", str(self._socket), "kill-server"], capture_output=True, check=False
        )
        os.close(self._output)


@pytest.fixture
def tmux(cli: Cli, tmp_path: Path) -> Iterator[Tmux]:
    """A multiplexer with a shell in the home of the command."""
    made = Tmux(cli, tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_a_person_types_approves_resizes_refuses_and_stops(cli: Cli, tmux: Tmux) -> None:
    """The whole way in a real terminal; at its end the shell is back, with the lines that resume the run."""
    words = words_of_a_run(cli.home, ALL_APPROVALS)
    tmux.type("affidavit " + " ".join(f"'{word}'" for word in words) + "; echo ended with $?")
    tmux.press("Enter")
    screen = tmux.shows("call 2: list_dir waits for approval")
    assert "waits for you" in screen.splitlines()[0]
    assert len(screen.splitlines()) <= 24

    tmux.press("a")
    assert '{"path": "."}' in tmux.shows("with exactly these arguments")
    tmux.resize(120, 40)
    tmux.until(lambda screen: len(screen.splitlines()[0]) > 100 and "exactly these" in screen)
    tmux.type("y")
    screen = tmux.shows("read_file waits for approval")
    assert "│ ── governance" in screen

    tmux.resize(60, 16)
    tmux.until(lambda screen: max(map(len, screen.splitlines())) <= 60 and "─ governance" in screen)
    tmux.press("r")
    tmux.shows("Enter refuses")
    tmux.type("not that filee")
    tmux.press("BSpace", "Enter")
    tmux.resize(100, 30)
    tmux.shows("list_dir waits for approval")
    tmux.press("t")
    tmux.shows("▾ ✗ read_file")
    tmux.press("Home")
    tmux.shows("▼ held")
    tmux.press("g")
    tmux.until(lambda screen: "── governance" not in screen)

    tmux.type("q")
    tmux.shows("q again parks the run")
    tmux.type("q")
    left = tmux.shows("ended with 130")
    assert "affidavit resume live-1" in left
    shown = cli("replay", "live-1").out
    assert "REFUSED by" in shown
    assert "not that file\n" in shown
    assert "list_dir APPROVED by" in shown
