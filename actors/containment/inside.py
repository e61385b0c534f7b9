"""The first program inside a sandbox: takes the limits upon itself, waits for the word to go, and becomes the command.

Runs alone, with the standard library only and no package around it (`bubblewrap` hands its text to an interpreter). It runs
before the command does, so nothing hostile is near it; what it holds open is closed before the command begins. Never runs
beside the command: the command takes its place.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

NOT_FOUND = 127
NOT_RUNNABLE = 126


def set_limits(limits: Mapping[str, int]) -> None:
    """Set each limit, soft and hard, by its name in `resource`; a lower one that stands already stays."""
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def announce(control: socket.socket, *, listen: bool) -> None:
    """Say that the sandbox stands; with it hand out a socket that listens on the sandbox's own loopback, if asked for."""
    if not listen:
        control.send(b"ready")
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        socket.send_fds(control, [b"ready"], [listener.fileno()])


def become(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Replace this program by the command; on failure say so and exit as a shell would."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores these two, and that would be inherited.
    os.closerange(3, 1 << 20)
    try:
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606  # no shell is wanted
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE)


def main(descriptor: int) -> None:
    """Follow the two lines of JSON that come over the control socket: the plan, and after our answer the environment.

    Whoever started the sandbox may have died before the kernel was told to end it with its parent. Then a line is missing, and
    no command is run.
    """
    with socket.socket(fileno=descriptor) as control, control.makefile("rb") as lines:
        plan = json.loads(lines.readline() or "null")
        if plan is None:
            sys.exit(NOT_RUNNABLE)
        set_limits(plan["limits"])
        announce(control, listen=plan["listen"])
        line = lines.readline()
    if plan["folder"] is not None:
        os.chdir(plan["folder"])
    if not line.endswith(b"\n"):
        sys.exit(NOT_RUNNABLE)
    become(plan["command"], json.loads(line))


if __name__ == "__main__":
    main(int(sys.argv[1]))
