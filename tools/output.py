"""Writes what a command was asked for to standard output, without ever holding up the run that it is about.

Writes happen in a thread: a reader that does not read stops this writer alone. What was written is not buffered here, so
nothing is left to fail when the interpreter ends.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
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
        # A write that its caller was cancelled out of; the thread goes on with it.
        self._under_way: trio.Event | None = None

    async def write(self, text: str) -> None:
        """Write text.

        Raises:
            BrokenPipeError: Nobody reads any more.
            OSError: It could not be written.

        Cancellation: the writing goes on in its thread, and whatever is written next waits for it.
        """
        await self.write_bytes(text.encode(self._encoding, "backslashreplace"))

    async def line(self, text: str = "") -> None:
        """Write text and a line's end; see `write`."""
        await self.write(f"{text}\n")

    async def write_bytes(self, data: bytes) -> None:
        """Write bytes; see `write`."""
        if self._under_way is not None:
            await self._under_way.wait()
        if self._broken:
            await trio.lowlevel.checkpoint()
            return
        ended, loop = trio.Event(), trio.lowlevel.current_trio_token()
        self._under_way = ended
        await trio.to_thread.run_sync(self._work, data, loop, ended, abandon_on_cancel=True)
        self._under_way = None

    def _work(self, data: bytes, loop: trio.lowlevel.TrioToken, ended: trio.Event) -> None:
        try:
            _write_all(data)
        except OSError:
            # Nothing follows what could not be written whole.
            self._broken = True
            raise
        finally:
            with suppress(trio.RunFinishedError):
                loop.run_sync_soon(ended.set)


def _write_all(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(_STDOUT, left) :]
