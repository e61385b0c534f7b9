"""A sandbox from the outside: made to stand, let go, killed whole and waited for whole.

Its first process is the init of its process namespace. The kernel kills every process of the namespace when init dies, and lets
init be waited for only when they are gone; so that one descriptor is all that ending a sandbox takes.
"""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, final

import trio

from affidavit.actors.containment.handshake import await_ready, say_go
from affidavit.actors.containment.plan import Prepared
from affidavit.actors.containment.port import ContainmentFailed
from affidavit.actors.containment.process import Child, send_signal
from affidavit.actors.containment.sandbox import MEMORY_MOUNTS
from affidavit.actors.containment.supervise import KILL_SECONDS

_SIGNALS: Final = 128
_MESSAGE: Final = 4096
_CHILD: Final = re.compile(rb'"child-pid": *(\d+)')


@final
class Sandbox:
    """A sandbox that stands, held by its first process."""

    def __init__(self, child: Child, init: int, descriptor: int, listener: int | None) -> None:
        self.root = init
        self.memory_mounts = tuple(f"/proc/{init}/root{path}" for path in MEMORY_MOUNTS)
        self._child = child
        self._descriptor = descriptor
        self._listener = listener
        self._end: tuple[int | None, int | None] | None = None

    def take_listener(self) -> trio.SocketListener:
        """Return the socket that listens inside, to be owned by the caller."""
        if self._listener is None:
            raise RuntimeError("no listener was asked for, or it was taken already")
        made = socket.socket(fileno=self._listener)
        self._listener = None
        made.setblocking(False)
        return trio.SocketListener(trio.socket.from_stdlib_socket(made))

    async def go(self, environment: Mapping[str, str]) -> None:
        """Let the command begin.

        Raises:
            ContainmentFailed: The sandbox has died meanwhile.
        """
        await say_go(self._child, environment)

    def take_outputs(self) -> tuple[int, int]:
        """Return the reading ends of the outputs, to be owned by the caller."""
        return self._child.take_outputs()

    def kill(self) -> None:
        """Kill the namespace by its init, and bwrap that waits for it."""
        send_signal(self._descriptor, signal.SIGKILL)
        self._child.kill()

    async def ended(self) -> tuple[int | None, int | None]:
        """Wait for init, which the kernel lets end only after every process of its namespace, and for bwrap."""
        if self._end is None:
            await trio.lowlevel.wait_readable(self._descriptor)
            code = await self._child.wait()
            number = -code if code < 0 else code - _SIGNALS
            self._end = (None, number) if 0 < number < signal.NSIG else (code, None)
        return self._end

    async def close(self) -> None:
        """End what is left and let go of it.

        Cancellation: nothing was let go of yet.
        """
        self.kill()
        await self.ended()
        if self._listener is not None:
            os.close(self._listener)
        os.close(self._descriptor)
        self._child.close()


async def open_sandbox(prepared: Prepared) -> Sandbox:
    """Start a sandbox and wait until it stands, its command not yet begun.

    Args:
        prepared: What it is made from.

    Raises:
        ContainmentFailed: It does not come to stand.

    Cancellation: what was started is ended first.
    """
    child = Child.start(prepared.argv, pass_fds=prepared.descriptors)
    init = listener = None
    try:
        listener = await await_ready(child, prepared.first_line, listen=prepared.listen)
        init = _init_of(prepared.status)
        if init is None:
            raise ContainmentFailed("bubblewrap did not name the sandbox's first process")
        return Sandbox(child, init, os.pidfd_open(init), listener)
    except BaseException:
        if listener is not None:
            os.close(listener)
        # Shielded, since a cancelled start must not leave processes behind; the deadline is for a kernel that is stuck.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + KILL_SECONDS):
            await _undo(child, init or _init_of(prepared.status))
        raise


async def _undo(child: Child, init: int | None) -> None:
    """End what has been started of a sandbox that does not come to stand.

    Cancellation: killed, and not waited for.
    """
    child.kill()
    await child.wait()
    if init is not None and _is_init(init):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(init)
            send_signal(descriptor, signal.SIGKILL)
            await trio.lowlevel.wait_readable(descriptor)
            os.close(descriptor)
    child.close()


def _init_of(status: int) -> int | None:
    """Return the number of the sandbox's first process, which bwrap tells before that process goes on."""
    try:
        found = _CHILD.search(os.read(status, _MESSAGE))
    except BlockingIOError:
        return None
    return int(found[1]) if found else None


def _is_init(pid: int) -> bool:
    """Tell whether a process is the first of a namespace below ours; another may have its number by now."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("NSpid:"):
                numbers = line.split()[1:]
                return len(numbers) > 1 and numbers[-1] == "1"
    return False
