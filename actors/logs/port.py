"""The log port: an append-only store of event rows, the only store of truth. Everything else is a fold of it.

An adapter keeps three promises. An entry is applied whole or not at all. When `append` returns, the entry survives the loss of
the process. A caller that was cancelled in `append` knows that nothing was appended. The shared contract suite in the tests
holds every adapter to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from affidavit.actors.errors import LogError, WriterFenced

DEFAULT_READ_LIMIT = 256


class Row(NamedTuple):
    """One stored event. A tuple, since a reader of many makes one for each.

    Attributes:
        seq: Position in its stream, dense from 1.
        data: The canonical CBOR of the event: exactly what is sealed and proved.
    """

    seq: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Guard:
    """How far a writer has read a stream that is not its own, where what it appends is only right in that light.

    Attributes:
        stream: The other stream.
        seq: The seq of the last event that was read of it; 0 for none.
    """

    stream: str
    seq: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What one append adds to one stream, all or nothing.

    Attributes:
        stream: The stream's id.
        expected_seq: The tip the writer believes in (0 for a new stream); rows get `expected_seq + 1` and on.
        rows: Canonical event bytes, at least one.
        terminal_seq: New value of the stream's index column: the seq of its terminal event, 0 when the run was re-opened,
            None to leave it as it is.
        sealed_size: New value of the index column for the size of the last seal; None leaves it.
        guard: What the writer has read of another stream; the entry is applied only if that has not grown since.
    """

    stream: str
    expected_seq: int
    rows: tuple[bytes, ...]
    terminal_seq: int | None = None
    sealed_size: int | None = None
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """The index row of one stream, derived from its events.

    Attributes:
        stream: The stream's id.
        tip: The seq of its last event.
        terminal_seq: The seq of its standing terminal event, 0 when it has none.
        sealed_size: How many events its last seal covers, 0 when it was never sealed.
    """

    stream: str
    tip: int
    terminal_seq: int = 0
    sealed_size: int = 0


class LogReader(Protocol):
    """What a reader may do with a log."""

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        """Return up to `limit` rows with seq > after_seq, in order; empty for an unknown stream or at the tip.

        Raises:
            LogClosed: The log is closed.
            LogStateUnknown: The store could not be read.

        Cancellation: a checkpoint; reads change nothing.
        """
        ...

    async def info(self, stream: str) -> StreamInfo | None:
        """Return one stream's index row, or None if it has no events."""
        ...

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        """Return the seq of the last event of each stream, in the order asked for; 0 for one that has none.

        For whoever looks after many streams: it costs far less than asking for each.

        Raises:
            LogError: The log could not be asked.
        """
        ...

    async def list(self, prefix: str = "") -> tuple[StreamInfo, ...]:
        """Return the index rows of all streams whose id begins with `prefix`, ordered by id."""
        ...


@runtime_checkable
class VersionedReader(Protocol):
    """What a reader may offer beside, so that one who watches asks a number and not each stream."""

    async def version(self) -> int:
        """Return a number that differs from the last one if anything was appended in between, by whichever process.

        One number for the whole store. Every caller compares with what it got itself; a change may also be none of
        the caller's business. Ask before reading, and an append that comes in between is told the next time.

        Raises:
            LogError: The store could not be asked; a read says why.
        """
        ...


Told = Callable[["int | WriterFenced | LogError"], None]
"""Takes what came of one entry: its new tip, the compare that it lost, or why it could not be made durable."""


@runtime_checkable
class SubmittingLog(Protocol):
    """What a log may offer beside: to take an entry without keeping the caller waiting for the disk."""

    def submit(self, entry: Entry, told: Told) -> None:
        """Take one entry, which is applied ahead of whatever is given to this log from now on, and return at once.

        What is appended in the same turn of the loop shares its sync, where the log has one.

        Args:
            entry: As for `Log.append`.
            told: Called once, in the loop, with what `append` would have returned for the entry or raised, before an append
                that was given later returns. It must not raise, and must not call the log.

        Raises:
            LogClosed: The log was closed before; `told` is not called.
            ValueError: As `Log.append`; likewise TypeError.
        """
        ...


class Log(LogReader, Protocol):
    """What an owner of runs may do with a log."""

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Apply each entry whose `expected_seq` is the stream's tip, and return once all applied ones are durable.

        Args:
            entries: At most one per stream.

        Returns:
            For each entry its new tip, or the `WriterFenced` (returned, not raised) if its compare was lost, or its guard,
            whose stream it then names. A lost compare fails that entry alone.

        Raises:
            LogFull: No room. Nothing of this append was written.
            LogLocked: The store's write lock could not be had in time. Nothing was written.
            LogStateUnknown: A write or sync failed; the log is now closed and must be opened again.
            LogClosed: The log was closed before.
            ValueError: An entry has no rows, or a stream stands twice.

        Cancellation: Cancelled means that nothing was appended. Once the writer has taken the entries, the result is
        returned even if the caller was cancelled meanwhile; there is no further checkpoint after the commit.
        """
        ...

    def own(self, stream: str) -> AbstractAsyncContextManager[None]:
        """Hold exclusive ownership of a run while the block lasts. It dies with the process.

        Raises:
            RunOwned: Someone else holds it, in this process or another; tried at once, never waited for.
        """
        ...
