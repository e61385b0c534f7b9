"""The command on a terminal of its own: a process with a controlling pseudo-terminal, and what a person sees there."""

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.environment import require_tool
from tests.tools.commands.runner import COMMAND, Cli
from tests.tools.console.ptys import PATIENCE, Pty, open_pty

SCRIPT = """{"turns": [
  {"text": "I will **look**.", "tool_calls": [{"name": "list_dir", "input": {"path": "."}}]},
  {"text": "I will read.", "tool_calls": [{"name": "read_file", "input": {"path": "README.md"}}]},
  {"text": "Once more.", "tool_calls": [{"name": "list_dir", "input": {"path": "src"}}]},
  {"text": "It is a ledger."}
]}"""
ONE_APPROVAL = '[grant]\ntools = ["list_dir", "read_file"]\n[[approval]]\ntools = ["read_file"]\n'
ALL_APPROVALS = (
    '[grant]\ntools = ["list_dir", "read_file"]\n[[approval]]\ntools = ["list_dir", "read_file"]\n'
)


def words_of_a_run(home: Path, policy: str, *more: str) -> list[str]:
    """The words of a run that waits where its policy says so, in a home that has what it needs."""
    workspace = home / "workspace"
    (workspace / "src").mkdir(parents=True, exist_ok=True)
    (workspace / "README.md").write_text("# A ledger\n\x1b[31mred\x1b[0m\n")
    (home / "script.json").write_text(SCRIPT)
    (home / "policy.toml").write_text(policy)
    return [
        "run", "What is this?", "--model", "script:script.json", "--workspace", "workspace",
        "--policy", "policy.toml", "--id", "live-1", *more,
    ]  # fmt: skip


@dataclass(slots=True)
class Seat:
    """A command on a terminal, and the person before it.

    Attributes:
        process: The command.
        pty: Its terminal.
        seen: All bytes that came.
    """

    process: "subprocess.Popen[bytes]"
    pty: Pty
    seen: bytearray = field(default_factory=bytearray)

    def type(self, text: str) -> None:
        """Type something."""
        self.pty.type(text.encode())

    def look(self, seconds: float) -> bool:
        """Take what has come; False if nothing has."""
        if not select.select([self.pty.master], [], [], seconds)[0]:
            return False
        data = os.read(self.pty.master, 65_536)
        self.seen += data
        self.pty.glass.feed(data)
        return True

    def until(self, is_so: Callable[[], bool]) -> None:
        """Look until it is as wanted."""
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < end, f"never as wanted: {self.pty.glass.text}\n{self.pty.glass.after}"
            self.look(0.2)

    def shows(self, words: str) -> None:
        """Look until some words are on the full screen."""
        self.until(lambda: "?1049" in self.pty.glass.modes and words in self.pty.glass.text)

    def hang_up(self) -> None:
        """Close the window."""
        self.pty.close()

    def ends(self) -> int:
        """Look until the command has ended, and return its exit code."""
        self.until(lambda: self.process.poll() is not None)
        while self.look(0):
            pass
        assert self.process.returncode is not None
        return self.process.returncode


@contextmanager
def seated(
    cli: Cli, words: list[str], size: tuple[int, int] = (80, 24), /, **more: str | None
) -> Iterator[Seat]:
    """Run the command on a terminal; it is killed if the test leaves it going."""
    with open_pty(*size) as pty:
        process = subprocess.Popen(
            [require_tool("setsid"), "--ctty", str(COMMAND), *words],
            cwd=cli.home,
            env=cli.environment(**more),
            stdin=pty.slave,
            stdout=pty.slave,
            stderr=pty.slave,
        )
        with process:
            try:
                yield Seat(process, pty)
            finally:
                process.kill()
