"""One append in a task of its own, and how it ended."""

from __future__ import annotations

from pathlib import Path

import trio

from affidavit.actors.errors import WriterFenced
from affidavit.actors.logs.port import Entry, Log
from affidavit.actors.logs.sqlite import open_sqlite_log


def entry(stream: str, seq: int = 0) -> Entry:
    """Return an entry of one row that says where it belongs."""
    return Entry(stream, seq, (f"{stream}/{seq}".encode(),))


async def fill(path: Path) -> None:
    """Make a store whose stream "a" has the one row "x"."""
    async with open_sqlite_log(path) as log:
        await log.append([Entry("a", 0, (b"x",))])


async def streams_of(path: Path) -> list[str]:
    """Return the streams that a store holds once it is opened again."""
    async with open_sqlite_log(path) as log:
        return [info.stream for info in await log.list()]


def names_in(folder: Path) -> list[str]:
    """Return the names of the files in a folder, in order."""
    return sorted(path.name for path in folder.iterdir())


class Appender:
    """An append to run in a nursery.

    Attributes:
        scope: Cancel it to cancel the append.
        result: What it returned, None if it did not.
        error: What it raised, cancellation apart.
    """

    def __init__(self, log: Log, *entries: Entry) -> None:
        self._log = log
        self._entries = entries
        self.scope = trio.CancelScope()
        self.result: tuple[int | WriterFenced, ...] | None = None
        self.error: Exception | None = None

    async def run(self) -> None:
        with self.scope:
            try:
                self.result = await self._log.append(self._entries)
            except Exception as error:
                self.error = error
