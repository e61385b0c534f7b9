"""The sealed run written: from memory at once, or event by event into a file of any size.

The exact bytes of every event are carried; none is encoded again. The number of events stands before them, so
a writer that streams has to know it, and is held to it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Final, final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.failures import FailureCode, ProducerError
from affidavit.crypto.hashing import leaf_hashes
from affidavit.crypto.merkle import RootBuilder

_BATCH: Final = 512
_REMEMBERED_LENGTHS: Final = 4096


class _StringHeads(dict[int, bytes]):
    """The head of a byte string of a given length: made once for each length that recurs."""

    def __missing__(self, length: int) -> bytes:
        head = heads.write_head(heads.BYTES, length)
        if length < _REMEMBERED_LENGTHS:
            self[length] = head
        return head


_string_heads: Final = _StringHeads()


def record_head(count: int) -> bytes:
    """Return the bytes of a record before its first event.

    Each event follows as `cbor_heads.write_bytes`, then `record_tail`.

    Raises:
        ProducerError: `record.empty` for a count of 0.
    """
    if count < 1:
        raise ProducerError(FailureCode.RECORD_EMPTY, "a record needs at least one event")
    return heads.write_head(heads.MAP, 2) + heads.write_text("events") + heads.write_head(heads.ARRAY, count)


def record_tail(checkpoint: bytes) -> bytes:
    """Return the bytes of a record after its last event."""
    return heads.write_text("checkpoint") + heads.write_bytes(checkpoint)


def record_events(events: Sequence[bytes]) -> bytes:
    """Return the bytes of some events as a record carries them."""
    # Nothing here runs in Python for each event.
    string_heads = map(_string_heads.__getitem__, map(len, events))
    return b"".join(chain.from_iterable(zip(string_heads, events, strict=True)))


def encode_record(events: Sequence[bytes], checkpoint: bytes) -> bytes:
    """Return the sealed run of these events and this signed checkpoint.

    Args:
        events: The exact bytes of each event, in order.
        checkpoint: The signed checkpoint over them.

    Raises:
        ProducerError: `record.empty` without events.
    """
    return b"".join((record_head(len(events)), record_events(events), record_tail(checkpoint)))


def write_record(
    events: Iterable[bytes], count: int, checkpoint: bytes, write: Callable[[bytes], object]
) -> None:
    """Write a sealed run, holding a few hundred events of it at a time.

    Args:
        events: The exact bytes of each event, in order.
        count: How many there are.
        checkpoint: The signed checkpoint over them.
        write: Takes all of the bytes that it is given.

    Raises:
        ProducerError: `record.empty` for a count of 0; `record.size_mismatch` where there are more or fewer events.
            What was written by then is no record.
    """
    write(record_head(count))
    written, pending = 0, iter(events)
    while batch := list(islice(pending, _BATCH)):
        written += len(batch)
        _require_count(written <= count, count, written)
        write(record_events(batch))
    _require_count(written == count, count, written)
    write(record_tail(checkpoint))


@final
class RecordWriter:
    """Writes and hashes a run in one pass, for a producer that has no tree yet: events, then `root`, then `finish`."""

    __slots__ = ("_builder", "_count", "_write")

    def __init__(self, count: int, write: Callable[[bytes], object]) -> None:
        """Begin a record of `count` events; see `write_record`.

        Raises:
            ProducerError: `record.empty` for a count of 0.
        """
        self._builder = RootBuilder()
        self._count = count
        self._write = write
        write(record_head(count))

    def add(self, events: Sequence[bytes]) -> None:
        """Write the next events.

        Raises:
            ProducerError: `record.size_mismatch` where they are too many.
        """
        size = self._builder.size + len(events)
        _require_count(size <= self._count, self._count, size)
        self._builder.extend(leaf_hashes(events))
        self._write(record_events(events))

    def root(self) -> bytes:
        """Return the root to sign.

        Raises:
            ProducerError: `record.size_mismatch` where events are missing.
        """
        _require_count(self._builder.size == self._count, self._count, self._builder.size)
        return self._builder.root()

    def finish(self, checkpoint: bytes) -> None:
        """Write the signed checkpoint over `root`, which ends the record.

        Raises:
            ProducerError: `record.size_mismatch` where events are missing.
        """
        _require_count(self._builder.size == self._count, self._count, self._builder.size)
        self._write(record_tail(checkpoint))


def _require_count(holds: bool, count: int, found: int) -> None:  # noqa: FBT001 - the one thing it asks
    if not holds:
        raise ProducerError(
            FailureCode.RECORD_SIZE_MISMATCH,
            f"{count} events were announced, {found} were given",
            expected=count,
            actual=found,
        )
