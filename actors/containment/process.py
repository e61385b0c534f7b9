"""One started process by descriptor: its outputs, the socket we talk over, and its end. Knows nothing of limits or sandboxes.

A process descriptor (pidfd) names one process for good, so that a number that was given to another since is never signalled.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import final

import trio

from affidavit.actors.containment.port import ContainmentFailed


@final
class Child:
    """A child process of ours with its two outputs and a control socket. Use `start` to make one."""

    def __init__(self, popen: subprocess.Popen[bytes], control: trio.socket.SocketType) -> None:
        """Take over a process that was just started."""
        self._popen = popen
        self._descriptor = os.pidfd_open(popen.pid)
        self.control = control
        self.pid = popen.pid

    @classmethod
    def start(cls, argv: Sequence[str], *, pass_fds: Sequence[int] = ()) -> Child:
        """Start a program with nothing inherited: an empty environment, no terminal, no descriptor but those given.

        Args:
            argv: The program and its arguments; the number of its end of the control socket is appended.
            pass_fds: Descriptors that it keeps under their numbers.

        Raises:
            ContainmentFailed: It could not be started.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                # Not trio's own, which starts it from a worker thread: the kernel ends a child that asked to die with its
                # parent when the thread that started it ends, and a worker thread ends when idle.
                popen = subprocess.Popen(
                    [*argv, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={},
                    cwd="/",
                    pass_fds=(theirs.fileno(), *pass_fds),
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise ContainmentFailed(f"{argv[0]} cannot be started: {error.strerror}") from error
        ours.setblocking(False)
        return cls(popen, trio.socket.from_stdlib_socket(ours))

    def take_outputs(self) -> tuple[int, int]:
        """Return the reading ends of its two outputs, which the caller owns from now on."""
        found = []
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is None:
                raise RuntimeError("the outputs were taken already")
            found.append(os.dup(stream.fileno()))
            stream.close()
        self._popen.stdout = self._popen.stderr = None
        return found[0], found[1]

    async def wait(self) -> int:
        """Wait for its end and return its exit code, below 0 for a signal.

        Cancellation: the process is left as it is.
        """
        if self._popen.returncode is None:
            await trio.lowlevel.wait_readable(self._descriptor)
        return self._popen.wait()

    def kill(self) -> None:
        """Kill it, not waiting."""
        if self._popen.returncode is None:
            send_signal(self._descriptor, signal.SIGKILL)

    def go_on(self) -> None:
        """Have it go on if something has stopped it."""
        if self._popen.returncode is None:
            send_signal(self._descriptor, signal.SIGCONT)

    def close(self) -> None:
        """Let go of everything that belongs to it. It must have ended and been waited for."""
        self.control.close()
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is not None:
                stream.close()
        os.close(self._descriptor)


def send_signal(descriptor: int, number: signal.Signals) -> None:
    """Send a signal to a process by its descriptor; one that is gone already is no error."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)
