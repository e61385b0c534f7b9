"""However a call ends, and however its processes tried to get away, none of them is left when it has returned."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from affidavit.actors.containment.port import Containment, Struck
from tests.actors.containment.kit import PATIENCE_MS, Witness, run, run_python, witness

# Each has a process hold the witness open, in the way a process would take that wants to outlive its parent.
RUNAWAYS = {
    "background": "sleep 1000 3> alive & echo x > alive; : > up",
    "double fork": "( ( exec 3> alive; echo x >&3; : > up; sleep 1000 ) & )",
    "own session": "setsid sh -c 'exec 3> alive; echo x >&3; : > up; sleep 1000' &",
    "session and double fork": "( setsid sh -c '(exec 3> alive; echo x >&3; : > up; exec sleep 1000) &' & )",
    "deaf": "( trap '' HUP TERM INT QUIT; exec 3> alive; echo x >&3; : > up; while :; do sleep 1000; done ) &",
    "nohup": "nohup sh -c 'exec 3> alive; echo x >&3; : > up; sleep 1000' >/dev/null 2>&1 &",
}
UNTIL_UP = "until [ -e up ]; do sleep 0.01; done"
DAEMON = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # a subreaper of its own
for number in range(1, 32):
    if number not in (9, 17, 19): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir('/')
        held = os.open(FIFO, os.O_WRONLY)
        os.closerange(0, held)
        os.write(held, b'x')
        while True: signal.pause()
while True: signal.pause()
"""


async def run_until_alive(level: Containment, work: Path, script: str, *, python: bool = False) -> None:
    """Run a script that has a process come to life and go on, and cancel it as soon as the witness has seen it."""
    with witness(work) as seen:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_python if python else run, level, work, script)
            await trio.to_thread.run_sync(seen.wait_for_life)
            nursery.cancel_scope.cancel()
        assert seen.nobody_is_left()


@pytest.mark.parametrize("how", RUNAWAYS)
async def test_cancelling_leaves_nobody(level: Containment, work: Path, how: str) -> None:
    """A cancelled call returns only when all are gone."""
    await run_until_alive(level, work, f"{RUNAWAYS[how]}\nsleep 1000")


async def test_cancelling_leaves_no_daemon(level: Containment, work: Path) -> None:
    """Nor one that reaps its own orphans, ignores every signal it can and has closed all but the witness."""
    fifo = "/workspace/alive" if level.level == "kernel" else str(work / "alive")
    await run_until_alive(level, work, DAEMON.replace("FIFO", repr(fifo)), python=True)


@pytest.mark.parametrize("how", RUNAWAYS)
async def test_an_ordinary_end_leaves_nobody(level: Containment, work: Path, how: str) -> None:
    """When the command itself has ended, what it left behind is ended too, and its outputs do not hold the call."""
    with witness(work) as seen:
        outcome = await run(level, work, f"{RUNAWAYS[how]}\n{UNTIL_UP}; exit 5")
        assert outcome.exit_code == 5
        seen.wait_for_life()
        assert seen.nobody_is_left()


async def test_stopping_what_watches_does_not_help(level: Containment, work: Path) -> None:
    """A command that stops every process it can reach, its parents first, is ended all the same."""
    script = "exec 3> alive; echo x >&3; kill -STOP 1 $PPID; kill -STOP $$"
    if level.level == "none":
        script = script.replace(" 1 ", " ")
    with witness(work) as seen:
        outcome = await run(level, work, script, wall_seconds=1.0)
        assert outcome.struck is Struck.WALL
        seen.wait_for_life()
        assert seen.nobody_is_left()


async def test_a_limit_leaves_nobody(level: Containment, work: Path) -> None:
    """A struck command takes its runaways along."""
    with witness(work) as seen:
        outcome = await run(
            level, work, "(setsid sleep 1000 3> alive &); echo x > alive; sleep 1000", wall_seconds=1.0
        )
        assert outcome.struck is Struck.WALL
        assert seen.nobody_is_left()


@pytest.mark.parametrize("kind", ["Bubblewrap", "NoContainment"])
async def test_our_own_death_leaves_nobody(kernel: Containment, work: Path, kind: str) -> None:
    """A process of ours that is killed outright takes its commands along, runaways included."""
    module = {"Bubblewrap": "bubblewrap", "NoContainment": "none"}[kind]
    program = (
        "import sys, trio\n"
        f"from affidavit.actors.containment.{module} import {kind}\n"
        "from affidavit.actors.containment.port import Limits\n"
        "async def main():\n"
        f"    await {kind}().run(['/bin/sh', '-c', sys.argv[2]], limits=Limits(wall_seconds=1000.0),\n"
        "        workspace=sys.argv[1], environment={})\n"
        "trio.run(main)\n"
    )
    script = "( setsid sh -c '(exec 3> alive; echo x >&3; exec sleep 1000) &' & ) ; sleep 1000"
    with witness(work) as seen:
        await trio.to_thread.run_sync(
            _start_and_kill, seen, [sys.executable, "-c", program, str(work), script]
        )


def _start_and_kill(seen: Witness, argv: list[str]) -> None:
    with subprocess.Popen(argv) as ours:
        try:
            seen.wait_for_life()
        finally:
            ours.send_signal(signal.SIGKILL)
        assert ours.wait(PATIENCE_MS / 1000) == -signal.SIGKILL
    seen.wait_for_the_end()


async def test_it_is_started_from_the_thread_that_runs_us(
    level: Containment, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel ends a sandbox with the thread that started it: one that ends when idle would end a long command with it."""
    threads: list[int] = []
    real = subprocess.Popen

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        threads.append(threading.get_ident())
        return real(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    await run(level, work, "true")
    assert threads == [threading.get_ident()]


async def test_cancelling_during_the_start_leaves_nothing(level: Containment, work: Path) -> None:
    """Wherever in its start a call is cancelled, it returns, with no process and no descriptor left over."""
    await run(level, work, "true")
    before = _descriptors()
    for ticks in range(12):
        with trio.CancelScope() as scope:

            async def cancel(scope: trio.CancelScope = scope, ticks: int = ticks) -> None:
                for _ in range(ticks):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel)
                await run(level, work, "echo ran >> ran; sleep 1000", wall_seconds=0.5)
    assert not _children()
    # A look at the disk that was abandoned may hold its descriptor for a moment more.
    with trio.fail_after(PATIENCE_MS / 1000):
        while _descriptors() > before:  # noqa: ASYNC110  # no event tells when a thread lets go
            await trio.sleep(0.01)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _children() -> list[str]:
    tasks = Path("/proc/self/task").iterdir()
    return [pid for task in tasks for pid in (task / "children").read_text().split()]
