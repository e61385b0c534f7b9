"""What the tests of containment share: running a script at a level, and telling whether any of its processes is left."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from affidavit.actors.containment.plan import Interpreter
from affidavit.actors.containment.port import Containment, Limits, Outcome, ProxyRoute

MIB = 1024 * 1024
# Long enough for a machine under heavy load: a test that meets this limit fails for another reason than time.
LIMITS = Limits(wall_seconds=120.0)
PATIENCE_MS = 60_000


async def run(
    containment: Containment,
    workspace: Path,
    script: str,
    *,
    environment: Mapping[str, str] | None = None,
    proxy: ProxyRoute | None = None,
    **limits: float,
) -> Outcome:
    """Run a line of shell."""
    return await containment.run(
        ["/bin/sh", "-c", script],
        limits=replace(LIMITS, **limits),  # type: ignore[arg-type]  # a test names what it sets
        workspace=str(workspace),
        environment=environment or {},
        proxy=proxy,
    )


async def run_python(
    containment: Containment,
    workspace: Path,
    script: str,
    *arguments: str,
    proxy: ProxyRoute | None = None,
    **limits: float,
) -> Outcome:
    """Run a Python script with our own interpreter, which every level has."""
    return await containment.run(
        [Interpreter.ours().program, "-I", "-S", "-c", script, *arguments],
        limits=replace(LIMITS, **limits),  # type: ignore[arg-type]  # as above
        workspace=str(workspace),
        environment={},
        proxy=proxy,
    )


def printed(outcome: Outcome) -> str:
    """What a script that ended well has printed."""
    assert outcome.exit_code == 0, outcome
    return outcome.stdout.head.decode().strip()


class Witness:
    """A FIFO in the workspace: whoever has it open for writing is alive, and when nobody is left it says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        path.chmod(0o666)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait_for_life(self) -> None:
        """Wait until somebody has written."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        assert poll.poll(PATIENCE_MS), "nobody came"
        assert os.read(self._descriptor, 1)

    def nobody_is_left(self) -> bool:
        """Whether no process has it open any more, and somebody had."""
        poll = select.poll()
        poll.register(self._descriptor, 0)
        return bool(poll.poll(0))

    def wait_for_the_end(self) -> None:
        """Wait until nobody has it open."""
        poll = select.poll()
        poll.register(self._descriptor, 0)
        assert poll.poll(PATIENCE_MS), "somebody is still alive"

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def witness(workspace: Path) -> Iterator[Witness]:
    """Make a witness named `alive`."""
    made = Witness(workspace / "alive")
    try:
        yield made
    finally:
        made.close()
