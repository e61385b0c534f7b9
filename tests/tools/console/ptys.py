"""A pseudo-terminal for the view, and what can be read on it."""

import fcntl
import os
import struct
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio

from tests.tools.console.glass import Glass

# Only so that a test which fails does not wait for ever.
PATIENCE = 60


@dataclass(slots=True)
class Pty:
    """A pseudo-terminal.

    Attributes:
        master: Where a person sits.
        slave: Where the program sits.
        glass: What the person sees, as far as it was read.
        is_closed: Whether both ends were closed.
    """

    master: int
    slave: int
    glass: Glass = field(default_factory=Glass)
    is_closed: bool = False

    def resize(self, width: int, height: int) -> None:
        """Give it another size."""
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def close(self) -> None:
        """Close both ends, once."""
        for end in (self.master, self.slave) if not self.is_closed else ():
            os.close(end)
        self.is_closed = True

    def type(self, data: bytes) -> None:
        """Type something."""
        os.write(self.master, data)

    async def until(self, is_so: Callable[[Glass], bool]) -> Glass:
        """Read until the screen is as wanted."""
        with trio.move_on_after(PATIENCE):
            while not is_so(self.glass):
                await trio.lowlevel.wait_readable(self.master)
                self.glass.feed(os.read(self.master, 65_536))
            return self.glass
        raise AssertionError(f"the screen never came to be as wanted; it shows:\n{self.glass.text}")

    async def fills(self, width: int, height: int) -> Glass:
        """Read until the screen has exactly a size."""
        return await self.until(lambda glass: (glass.width(), max(glass.rows, default=0)) == (width, height))

    async def shows(self, words: str) -> Glass:
        """Read until some words are on the screen."""
        return await self.until(lambda glass: words in glass.text)


@contextmanager
def open_pty(width: int = 80, height: int = 24) -> Iterator[Pty]:
    """A pseudo-terminal of a size."""
    master, slave = os.openpty()
    pty = Pty(master, slave)
    pty.resize(width, height)
    try:
        yield pty
    finally:
        pty.close()
