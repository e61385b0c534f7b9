"""Runs one command as its child and ends only when nothing that came of the command is left. A program, for the level `none`.

Runs alone, with the standard library only and no package around it. It makes itself the one to whom orphans fall (a subreaper,
prctl(2)), so that a process that forks twice, or starts a session of its own, is still its descendant. The command's end, or
ours (the other end of the life pipe is closed, be it by a crash), begins the end of all: it stops every descendant so that none
can fork on, kills them, and waits until the system says that it has no child left. Then it ends as the command ended.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

_SET_CHILD_SUBREAPER = 36


def main(life: int, argv: Sequence[str]) -> None:
    """Run `argv` until it ends or the life pipe is closed, and then end all."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("this system does not hand orphans over")
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    control = int(argv[-1])
    command = os.posix_spawn(argv[0], list(argv), {})
    for descriptor in (control, 1, 2):
        os.close(descriptor)  # Ours would keep the outputs open after the command's end.
    status = wait(command, life, wake)
    end_all(status, command)


def wait(command: int, life: int, wake: int) -> int | None:
    """Reap what falls to us until the command has ended, and return its status; None if the life pipe was closed first."""
    poll = select.poll()
    poll.register(life, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        if life in ready:
            return None
        os.read(wake, 4096)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == command:
                return status
            if pid == 0:
                break


def end_all(status: int | None, command: int) -> None:
    """End every descendant, and then this process as the command ended."""
    while True:
        stopped: set[int] = set()
        while found := set(descendants(os.getpid())) - stopped:
            send(found, signal.SIGSTOP)
            stopped |= found
        send(stopped, signal.SIGKILL)
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if pid == command:
            status = ended
    if status is None or os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status or 0))
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def descendants(root: int) -> list[int]:
    """Return the processes below one, as far as they hold still."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  # pathlib costs a third of the start
                with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123  # as above
                    children = [int(number) for number in file.read().split()]
                    found += children
                    waiting += children
    return found


def send(pids: set[int], number: signal.Signals) -> None:
    """Signal each of some processes that nobody but us can reap, so that their numbers are still theirs."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
