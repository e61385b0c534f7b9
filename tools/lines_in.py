"""Standard input as lines, read without a thread: whoever waits for one can be cancelled, and the process can end at once."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import suppress
from typing import Final, final

import trio

from affidavit.tools.errors import UsageError

_STDIN: Final = 0
_CHUNK: Final = 64 * 1024
# What is pasted comes all at once; nobody types the next line as fast.
_PASTE_SECONDS: Final = 0.03
MAX_LINE: Final = 256 * 1024


@final
class LinesIn:
    """Standard input as lines of text."""

    def __init__(self) -> None:
        """Begin where standard input stands."""
        self._held = bytearray()
        self._ended = False
        self.is_terminal: Final = sys.stdin is not None and sys.stdin.isatty()

    async def next(self) -> str | None:
        """Return the next line without its end, or None once there are no more. Bytes that are no UTF-8 become U+FFFD.

        Raises:
            UsageError: A line is longer than `MAX_LINE` bytes, or standard input cannot be read.

        Cancellation: what was read stays for the next call.
        """
        await trio.lowlevel.checkpoint()
        while (end := self._held.find(b"\n")) < 0 and not self._ended:
            if len(self._held) > MAX_LINE:
                raise UsageError(f"a line of standard input is longer than {MAX_LINE:,} bytes")
            await self._more()
        if end < 0 and not self._held:
            return None
        line = bytes(self._held if end < 0 else self._held[:end])
        del self._held[: len(line) + 1]
        return line.decode("utf-8", "replace").removesuffix("\r")

    async def has_more(self) -> bool:
        """Tell whether more is at hand just now, as the rest of what a person has pasted into a terminal."""
        if self._ended or b"\n" in self._held:
            return b"\n" in self._held
        with trio.move_on_after(_PASTE_SECONDS):
            await trio.lowlevel.wait_readable(_STDIN)
            return True
        return False

    def forget_typed(self) -> None:
        """Drop what was typed into a terminal and not asked for, so that nobody takes it for keys."""
        if self.is_terminal:
            self._held.clear()
            with suppress(termios.error):
                termios.tcflush(_STDIN, termios.TCIFLUSH)

    async def _more(self) -> None:
        try:
            await trio.lowlevel.wait_readable(_STDIN)
        except OSError:
            # A regular file can always be read, and is therefore none that can be waited for.
            await trio.lowlevel.checkpoint()
        try:
            data = os.read(_STDIN, _CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise UsageError(f"standard input cannot be read: {error.strerror}") from error
        self._ended = not data
        self._held += data
