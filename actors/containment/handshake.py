"""What we and our `inside` program say to each other before a command begins: the plan, "ready", and the word to go.

The word to go carries the environment. It is said only when the process is held by descriptor; without it, because we are gone,
no command is run.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import trio

from affidavit.actors.containment.port import ContainmentFailed
from affidavit.actors.containment.process import Child

START_SECONDS: Final = 60.0
_READY: Final = b"ready"
_MESSAGE: Final = 4096


def line(value: object) -> bytes:
    """Return a value as one line of the conversation."""
    return json.dumps(value).encode() + b"\n"


async def await_ready(child: Child, first_line: bytes, *, listen: bool) -> int | None:
    """Hand over the plan and wait for the answer.

    Args:
        child: Runs `inside`, or becomes what runs it.
        first_line: The plan.
        listen: Whether a listening socket is to come with the answer.

    Returns:
        The descriptor of that socket, owned by the caller.

    Raises:
        ContainmentFailed: There is no answer; the message holds what was said on standard error.

    Cancellation: the child is left as it is.
    """
    words = b""
    ancillary: list[tuple[int, int, bytes]] = []
    with trio.move_on_after(START_SECONDS), suppress(OSError):
        await _send_all(child.control, first_line)
        words, ancillary, _, _ = await child.control.recvmsg(len(_READY), socket.CMSG_SPACE(4))
    found = [
        data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    ]
    listener = int.from_bytes(found[0][:4], sys.byteorder) if found else None
    if words == _READY and (listener is not None) == listen:
        return listener
    if listener is not None:
        os.close(listener)
    raise ContainmentFailed(f"the sandbox does not start: {_last_words(child)}")


def _last_words(child: Child) -> str:
    """Return what went wrong, as whoever failed has told it on its standard error."""
    outputs = child.take_outputs()
    try:
        os.set_blocking(outputs[1], False)
        said = os.read(outputs[1], _MESSAGE)
    except OSError:
        said = b""
    finally:
        for descriptor in outputs:
            os.close(descriptor)
    lines = said.decode(errors="replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), "it said nothing")


async def say_go(child: Child, environment: Mapping[str, str]) -> None:
    """Let the command begin.

    Args:
        child: Has said that it is ready.
        environment: All variables of the command.

    Raises:
        ContainmentFailed: It has died meanwhile, and no command was run.

    Cancellation: the command may have begun.
    """
    try:
        with trio.fail_after(START_SECONDS):
            await _send_all(child.control, line(environment))
    except (OSError, trio.TooSlowError) as error:
        raise ContainmentFailed("the process ended before the command began") from error


async def _send_all(control: trio.socket.SocketType, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[await control.send(rest) :]
