"""`MemoryLog`: the reference adapter of the log port, in one process's memory.

It keeps every rule of the port that does not need a disk, in the plainest code that can: what it does is what
the port means. Nothing survives the process, so "durable" here means "in the dictionary".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import final

import trio

from affidavit.actors.errors import RunOwned, WriterFenced
from affidavit.actors.logs.entries import check_entries, check_limit
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Entry, Row, StreamInfo, Told


@dataclass(slots=True)
class _Stream:
    rows: list[bytes] = field(default_factory=list)
    terminal_seq: int = 0
    sealed_size: int = 0


@final
class MemoryLog:
    """A log in memory. Needs no opening and no closing; all handles to it are this one object."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._owned: set[str] = set()
        self._version = 0

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Apply each entry whose compare holds; see `Log.append`.

        Cancellation: the one checkpoint comes before anything is applied.
        """
        checked = check_entries(entries)
        await trio.lowlevel.checkpoint()
        return tuple(self._apply(entry) for entry in checked)

    def submit(self, entry: Entry, told: Told) -> None:
        """Apply an entry at once, and tell so; see `SubmittingLog.submit`."""
        (checked,) = check_entries((entry,))
        told(self._apply(checked))

    def _apply(self, entry: Entry) -> int | WriterFenced:
        stream = self._streams.get(entry.stream, _Stream())
        tip = len(stream.rows)
        if entry.expected_seq != tip:
            return WriterFenced(entry.stream, entry.expected_seq, tip)
        guard = entry.guard
        if guard is not None and guard.stream in self._streams:
            grown = len(self._streams[guard.stream].rows)
            if grown > guard.seq:
                return WriterFenced(guard.stream, guard.seq, grown)
        self._streams[entry.stream] = stream
        stream.rows.extend(entry.rows)
        self._version += 1
        if entry.terminal_seq is not None:
            stream.terminal_seq = entry.terminal_seq
        if entry.sealed_size is not None:
            stream.sealed_size = entry.sealed_size
        return len(stream.rows)

    @asynccontextmanager
    async def own(self, stream: str) -> AsyncIterator[None]:
        """Hold exclusive ownership of a run while the block lasts; see `Log.own`."""
        await trio.lowlevel.checkpoint()
        if stream in self._owned:
            raise RunOwned(stream)
        self._owned.add(stream)
        try:
            yield
        finally:
            self._owned.discard(stream)

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        """Return up to `limit` rows with seq > after_seq; see `LogReader.read`."""
        count = check_limit(limit)
        await trio.lowlevel.checkpoint()
        known = self._streams.get(stream)
        if known is None:
            return ()
        start = max(after_seq, 0)
        return tuple(
            Row(seq, data) for seq, data in enumerate(known.rows[start : start + count], start=start + 1)
        )

    async def version(self) -> int:
        """Return a number that changes with each append; see `VersionedReader.version`."""
        await trio.lowlevel.checkpoint()
        return self._version

    async def info(self, stream: str) -> StreamInfo | None:
        """Return one stream's index row, or None if it has no events."""
        await trio.lowlevel.checkpoint()
        known = self._streams.get(stream)
        return None if known is None else _info(stream, known)

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        """Return the seq of the last event of each stream, 0 for one that has none; see `LogReader.tips`."""
        await trio.lowlevel.checkpoint()
        known = (self._streams.get(stream) for stream in streams)
        return tuple(0 if stream is None else len(stream.rows) for stream in known)

    async def list(self, prefix: str = "") -> tuple[StreamInfo, ...]:
        """Return the index rows of all streams whose id begins with `prefix`, ordered by id."""
        await trio.lowlevel.checkpoint()
        return tuple(
            _info(name, stream) for name, stream in sorted(self._streams.items()) if name.startswith(prefix)
        )


def _info(name: str, stream: _Stream) -> StreamInfo:
    return StreamInfo(name, len(stream.rows), stream.terminal_seq, stream.sealed_size)
