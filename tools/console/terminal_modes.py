"""The terminal itself: opened a second time, without blocking, put into the modes of a full screen, and put back again.

Opened by its own name, so that being non-blocking concerns nobody who shares the standard streams. `restore` puts everything back
on every way out, may be called twice, and waits for nobody: a terminal that stands still gets its modes back all the same.
"""

from __future__ import annotations

import os
import select
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

import trio

_FLAGS: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# The other screen, no cursor, no line that wraps by itself, and pasted text told apart from typed.
_ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
# First of all what ends a sequence that was cut in two, and an update that was begun.
_LEAVE: Final = b"\x18\x1b[?2026l\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
_LEAVE_GRACE: Final = 0.2
_CHUNK: Final = 4096


@final
class FullScreen:
    """A terminal while a view has it. Made by `open_full_screen`.

    Attributes:
        has_keys: Whether keys can be read from it.
    """

    def __init__(self, out: int, keys: int | None) -> None:
        """Use `open_full_screen`."""
        self._out = out
        self._keys = keys
        self._modes = None if keys is None else termios.tcgetattr(keys)
        self._entered = False

    @property
    def has_keys(self) -> bool:
        """Whether keys can be read from it."""
        return self._keys is not None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines just now; 80 and 24 where the terminal does not say."""
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    def enter(self) -> None:
        """Take the whole screen and single keys. The keys that send a signal keep their meaning, but for Ctrl-Z."""
        self._entered = True
        if self._keys is not None and self._modes is not None:
            modes = list(self._modes)
            modes[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            letters = list(modes[6])
            letters[termios.VMIN], letters[termios.VTIME] = 1, 0
            # A stopped process would hold on to its run while nobody can see that it does.
            letters[termios.VSUSP] = b"\x00"
            modes[6] = letters
            termios.tcsetattr(self._keys, termios.TCSANOW, modes)
        _write_now(self._out, _ENTER)

    async def write(self, data: bytes) -> None:
        """Write, waiting for as long as the terminal takes nothing. Once the terminal was given back, nothing is written.

        Raises:
            OSError: The terminal is gone.

        Cancellation: what was not written is not written.
        """
        left = memoryview(data)
        while left:
            await trio.lowlevel.wait_writable(self._out)
            if not self._entered:
                return
            try:
                left = left[os.write(self._out, left) :]
            except BlockingIOError:
                continue

    async def read(self) -> bytes:
        """Read what was typed, waiting for it; nothing if the terminal is gone.

        Cancellation: nothing is lost.
        """
        if self._keys is None:
            await trio.sleep_forever()
        while True:
            await trio.lowlevel.wait_readable(self._keys)
            try:
                return os.read(self._keys, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    def restore(self) -> None:
        """Give the terminal back as it was. Never raises, and waits a moment at most."""
        if not self._entered:
            return
        self._entered = False
        _write_now(self._out, _LEAVE)
        if self._keys is not None and self._modes is not None:
            try:
                # What was typed for the view must not reach the shell as a command.
                termios.tcflush(self._keys, termios.TCIFLUSH)
                termios.tcsetattr(self._keys, termios.TCSANOW, self._modes)
            except termios.error:
                return


@contextmanager
def open_full_screen(out: int = 1, keys: int = 0) -> Iterator[FullScreen]:
    """Open the terminal behind two descriptors, for the length of the block; it is restored at its end.

    Args:
        out: A descriptor of the terminal to paint on.
        keys: A descriptor of the terminal to read keys from; none are read where it is no terminal.

    Raises:
        OSError: The terminal cannot be opened by its name.
    """
    opened = [os.open(os.ttyname(out), os.O_WRONLY | _FLAGS)]
    try:
        if os.isatty(keys):
            opened.append(os.open(os.ttyname(keys), os.O_RDONLY | _FLAGS))
        screen = FullScreen(opened[0], opened[1] if len(opened) > 1 else None)
        try:
            yield screen
        finally:
            screen.restore()
    finally:
        for each in opened:
            os.close(each)


def _write_now(descriptor: int, data: bytes) -> None:
    """Write what the terminal takes within a moment."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            if not select.select([], [descriptor], [], _LEAVE_GRACE)[1]:
                return
        except OSError:
            return
