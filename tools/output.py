"""Writes what a command was asked for to standard output, without ever holding up the run that it is about.

Writes happen in a thread: a reader that does not read stops this writer alone. What was written is not buffered here, so
nothing is left to fail when the interpreter ends.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from threading import Lock
from typing import Final, final

import trio

_STDOUT: Final = 1


@final
class Output:
    """Standard output as bytes."""

    def __init__(self) -> None:
        """Write in the encoding that Python chose for standard output."""
        self._encoding = (sys.stdout.encoding if sys.stdout is not None else None) or "utf-8"
        self._broken = False
        # What was asked for and is not written yet. Whoever holds the lock takes from its left end, so that the order
        # is that of the calls, and what one cancelled call leaves is written by the next.
        self._asked: deque[bytes] = deque()
        self._writing = Lock()

    async def write(self, text: str) -> None:
        """Write text.

        Raises:
            BrokenPipeError: Nobody reads any more.
            OSError: It could not be written.

        Cancellation: the text keeps its place, and is written before whatever is written next, or by `drain`.
        """
        await self.write_bytes(text.encode(self._encoding, "backslashreplace"))

    async def line(self, text: str = "") -> None:
        """Write text and a line's end; see `write`."""
        await self.write(f"{text}\n")

    async def write_bytes(self, data: bytes) -> None:
        """Write bytes; see `write`."""
        if not self._broken:
            self._asked.append(data)
        await self.drain()

    async def drain(self) -> None:
        """Return once everything that was asked for is written; see `write`."""
        await trio.to_thread.run_sync(self._work, abandon_on_cancel=True)

    def _work(self) -> None:
        with self._writing:
            while self._asked:
                try:
                    _write_all(self._asked.popleft())
                except OSError:
                    # Nothing follows what could not be written whole.
                    self._broken = True
                    self._asked.clear()
                    raise


def _write_all(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(_STDOUT, left) :]
