"""Runs the installed command as a user does: as a process of its own, in a home of its own, with nothing of this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.environment import ROOT

COMMAND = Path(sys.executable).with_name("affidavit")
SCRIPTS = ROOT / "docs" / "examples" / "scripts"
READER = f"script:{SCRIPTS / 'read-the-readme.json'}"
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left: its exit code and what it said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Cli:
    """The command, in a home."""

    home: Path

    def environment(self, **more: str | None) -> dict[str, str]:
        """The whole environment of the command; None takes a variable out."""
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "AFFIDAVIT_PASSPHRASE": "only for tests",
            **more,
        }
        return {name: value for name, value in own.items() if value is not None}

    def __call__(self, *words: object, **more: str | None) -> Done:
        """Run the command to its end."""
        return self.into(subprocess.PIPE, *words, **more)

    def told(self, said: str | bytes, *words: object, **more: str | None) -> Done:
        """Run the command to its end with this on its standard input."""
        done = subprocess.run(
            [COMMAND, *map(str, words)],
            cwd=self.home,
            env=self.environment(**more),
            input=said if isinstance(said, bytes) else said.encode(),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def into(self, stdout: int, *words: object, **more: str | None) -> Done:
        """Run the command to its end with its standard output going to an open file."""
        done = subprocess.run(
            [COMMAND, *map(str, words)],
            cwd=self.home,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout or "", done.stderr)

    @contextmanager
    def going(self, *words: object, **more: str | None) -> Iterator[subprocess.Popen[str]]:
        """Run the command beside the test; it is killed if the test leaves it going."""
        with subprocess.Popen(
            [COMMAND, *map(str, words)],
            cwd=self.home,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def printed(self, line: str, **more: str | None) -> Done:
        """Run a line that the command printed, as a person would paste it."""
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.home,
            env=self.environment(PATH=f"{COMMAND.parent}:{os.environ['PATH']}", **more),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)


def lines_that_begin(text: str, words: str) -> list[str]:
    """The lines of a text that begin with some words."""
    return [line for line in text.splitlines() if line.startswith(words)]
