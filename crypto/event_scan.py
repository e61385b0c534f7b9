"""Events cut out of the list that carries them, batch by batch: the loop that sets a verifier's pace.

Events are byte strings one after another. Two forms of head, which nearly every event has, are read in place;
everything else, such as a head that is longer than it need be or an event that lies across two blocks, takes
the careful way. Nothing is decoded here.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.byte_source import ByteSource
from affidavit.crypto.failures import FailureCode, VerificationError

# How many events travel together, at most; a power of two, so that a whole batch is a whole subtree.
BATCH: Final = 1024

_EMPTY: Final = 0x40  # up to 23 bytes: the length is in the head's one byte
_ONE_BYTE_LENGTH: Final = 0x58
_TWO_BYTE_LENGTH: Final = 0x59
_ONE_BYTE_FROM: Final = 24
_TWO_BYTES_FROM: Final = 256
# A head's first byte, and the two after it as the length that they are in the commonest form of head.
_first_three: Final = struct.Struct(">BH").unpack_from

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EventRange:
    """Where some of a record's events stand, for someone else to check.

    Attributes:
        index: Zero-based position of the first one.
        count: How many.
        start: Offset of the first one's head in the record.
        end: Offset just after the last one.
    """

    index: int
    count: int
    start: int
    end: int


class EventTooLong(Exception):
    """An event is longer than allowed; it was skipped, and so is everything after it."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length: Final = length


def event_batches(source: ByteSource, count: int, note: Note, max_bytes: int) -> Iterator[list[bytes]]:
    """Yield the events that follow in a source, in batches of at most `BATCH`.

    Args:
        source: Where the first event's head is next.
        count: How many events there are.
        note: Told of each departure from canonical form.
        max_bytes: The longest event that is cut out.

    Raises:
        VerificationError: `enc.decode` or another fault of decoding, with the events before it yielded.
        EventTooLong: After the events before it; the source stands behind that event.
    """
    while count:
        events, source.pos = _cut(source.data, source.pos, min(count, BATCH))
        if events:
            count -= len(events)
            yield events
            continue
        count -= 1
        length = _next_length(source, note)
        if length > max_bytes:
            source.skip(length)
            raise EventTooLong(length)
        yield [source.take(length)]


def skip_events(source: ByteSource, count: int, note: Note) -> None:
    """Pass over events and cut out none of them.

    Raises:
        VerificationError: As `event_batches`.
    """
    while count:
        skipped, source.pos = _pass_over(source.data, source.pos, count)
        count -= skipped
        if not skipped:
            count -= 1
            source.skip(_next_length(source, note))


def _cut(data: bytes, pos: int, limit: int) -> tuple[list[bytes], int]:
    events: list[bytes] = []
    append, size = events.append, len(data)
    try:
        for _ in range(limit):
            first, length = _first_three(data, pos)
            if first == _TWO_BYTE_LENGTH:
                if length < _TWO_BYTES_FROM:
                    break
                start = pos + 3
                end = start + length
            elif _EMPTY <= first < _ONE_BYTE_LENGTH:
                start = pos + 1
                end = start + first - _EMPTY
            elif first == _ONE_BYTE_LENGTH:
                start = pos + 2
                end = start + (length >> 8)
                if end - start < _ONE_BYTE_FROM:
                    break
            else:
                break
            if end > size:
                break
            append(data[start:end])
            pos = end
    except struct.error:
        # A head at the very end of the window: the careful way gets the rest of it.
        pass
    return events, pos


def _pass_over(data: bytes, pos: int, limit: int) -> tuple[int, int]:
    # The same loop without the cutting, which is most of its cost.
    passed, size = 0, len(data)
    try:
        for passed in range(limit):
            first, length = _first_three(data, pos)
            if first == _TWO_BYTE_LENGTH:
                if length < _TWO_BYTES_FROM:
                    return passed, pos
                end = pos + 3 + length
            elif _EMPTY <= first < _ONE_BYTE_LENGTH:
                end = pos + 1 + first - _EMPTY
            elif first == _ONE_BYTE_LENGTH:
                end = pos + 2 + (length >> 8)
                if length >> 8 < _ONE_BYTE_FROM:
                    return passed, pos
            else:
                return passed, pos
            if end > size:
                return passed, pos
            pos = end
    except struct.error:
        return passed, pos
    return limit, pos


def _next_length(source: ByteSource, note: Note) -> int:
    at = source.offset
    head = source.head()
    if head.major != heads.BYTES:
        raise VerificationError(FailureCode.ENC_DECODE, f"an event at byte {at} is not a byte string")
    if not head.minimal:
        note(f"a head at byte {at} is not the shortest")
    return head.arg
