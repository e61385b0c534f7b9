"""Writes what a command was asked for to standard output, without ever holding up the run that it is about.

Writes happen in a thread: a reader that does not read stops this writer alone. What was written is not buffered here, so
nothing is left to fail when the interpreter ends.
"""

from __future__ import annotations

import os
import sys
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

    async def write(self, text: str) -> None:
        """Write text.

        Raises:
            BrokenPipeError: Nobody reads any more.
            OSError: It could not be written.

        Cancellation: how much was written is unknown, so nothing is written after it.
        """
        await self.write_bytes(text.encode(self._encoding, "backslashreplace"))

    async def line(self, text: str = "") -> None:
        """Write text and a line's end; see `write`."""
        await self.write(f"{text}\n")

    async def write_bytes(self, data: bytes) -> None:
        """Write bytes; see `write`."""
        if self._broken:
            await trio.lowlevel.checkpoint()
            return
        self._broken = True
        await trio.to_thread.run_sync(_write_all, data, abandon_on_cancel=True)
        self._broken = False


def _write_all(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(_STDOUT, left) :]
