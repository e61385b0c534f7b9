"""Keeps what a command prints within bounds: its beginning, its end, the whole length and digest. Never the whole output."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import Final, final

import trio

from affidavit.actors.containment.port import Captured

_CHUNK: Final = 65536


@final
class Capture:
    """Collects one output.

    Attributes:
        length: How many bytes there were so far.
    """

    def __init__(self, kept: int) -> None:
        """Begin.

        Args:
            kept: How many bytes to keep at most, half of them from the beginning.
        """
        self.length = 0
        self._head_room = kept - kept // 2
        self._tail_room = kept // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._digest = sha256()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.length += len(chunk)
        self._digest.update(chunk)
        room = self._head_room - len(self._head)
        self._head += chunk[:room]
        rest = chunk[room:]
        if not rest or not self._tail_room:
            return
        self._tail.append(rest)
        self._tail_bytes += len(rest)
        while self._tail_bytes - len(self._tail[0]) >= self._tail_room:
            self._tail_bytes -= len(self._tail.popleft())

    def result(self) -> Captured:
        """Return what was kept so far."""
        tail = b"".join(self._tail)[-self._tail_room :] if self._tail_room else b""
        return Captured(bytes(self._head), tail, self.length, self._digest.digest())


async def pump(descriptor: int, taken: Callable[[bytes], None]) -> None:
    """Read a pipe to its end, and close it.

    Args:
        descriptor: The reading end, owned by this call from now on.
        taken: Is handed each piece.

    Cancellation: stops reading; what was handed over stays.
    """
    async with trio.lowlevel.FdStream(descriptor) as stream:
        while True:
            chunk = await stream.receive_some(_CHUNK)
            if not chunk:
                return
            taken(chunk)
