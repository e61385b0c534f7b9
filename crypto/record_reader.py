"""The container of a sealed run, read once from front to back: its events in batches, its checkpoint at the end.

The signed checkpoint stands last, so nothing that comes before it is trusted yet: events are handed on as they
come, and it is the caller who holds every judgement on them back until `checkpoint` has been read and opened.
Faults of the container come first in the order of checks, and one of decoding before one of form.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar, final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.byte_source import ByteSource, Read
from affidavit.crypto.cose import MAX_MESSAGE_BYTES
from affidavit.crypto.event_form import MIN_EVENT_BYTES
from affidavit.crypto.event_scan import EventRange, EventTooLong, event_batches, skip_events
from affidavit.crypto.failures import FailureCode, VerificationError

_EVENTS: Final = "events"
_CHECKPOINT: Final = "checkpoint"
_MAX_DEPTH: Final = 64
# What has more or longer names than this is no artifact, and is not worth remembering.
_MOST_FIELDS: Final = 16
_LONGEST_NAME: Final = 256
_FEW: Final = 1 << 16

_T = TypeVar("_T")


@final
class RecordReader:
    """Reads one record.

    Attributes:
        count: How many events the record carries, as far as it was read.
        is_wanted: Set to False by a caller for whom no further event can change anything: the rest is passed over.
        too_long: Index and length of an event that was too long to be handed on. Nothing after it was, either.
    """

    __slots__ = ("_checkpoint", "_departure", "_max_event_bytes", "_source", "count", "is_wanted", "too_long")

    def __init__(self, read: Read, size: int, *, max_event_bytes: int) -> None:
        """Read a record of `size` bytes; see `ByteSource`."""
        self._source = ByteSource(read, size)
        self._max_event_bytes = max_event_bytes
        self._checkpoint: bytes | None = None
        self._departure: str | None = None
        self.count = 0
        self.is_wanted = True
        self.too_long: tuple[int, int] | None = None

    @property
    def offset(self) -> int:
        """How many bytes were read and understood."""
        return self._source.offset

    def events(self) -> Iterator[list[bytes]]:
        """Yield the events in batches; once the form was departed from, no more of them, since none will count.

        Raises:
            VerificationError: `record.decode`.
        """
        return self._coded(self._batches)

    def ranges(self, length: int) -> Iterator[EventRange]:
        """Yield where the events stand, `length` of them in each range but the last.

        Raises:
            VerificationError: `record.decode`.
        """
        return self._coded(lambda count: self._ranges(count, length))

    def checkpoint(self) -> bytes:
        """Return the signed checkpoint of a record that was read to its end.

        Raises:
            VerificationError: `record.non_canonical` where the record decoded but is not in canonical form.
        """
        if self._departure is not None:
            raise VerificationError(FailureCode.RECORD_NON_CANONICAL, self._departure)
        if self._checkpoint is None:
            raise RuntimeError("the record was not read to its end")
        return self._checkpoint

    def _coded(self, entries: Callable[[int], Iterator[_T]]) -> Iterator[_T]:
        try:
            yield from self._walk(entries)
        except VerificationError as error:
            raise VerificationError(FailureCode.RECORD_DECODE, error.detail) from error

    def _walk(self, entries: Callable[[int], Iterator[_T]]) -> Iterator[_T]:
        names: list[str] = []
        for _ in range(self._field_count()):
            name = self._name()
            if name in names:
                raise _fault(f"the field {name[:80]!r} stands twice")
            names.append(name)
            if name == _EVENTS:
                yield from entries(self._event_count())
            elif name == _CHECKPOINT:
                self._take_checkpoint()
            else:
                self._note(f"the unknown field {name[:80]!r}")
                self._source.skip_item(_MAX_DEPTH)
        for name in (_EVENTS, _CHECKPOINT):
            if name not in names:
                raise _fault(f"the field {name!r} is missing")
        if self._source.fill(1):
            raise _fault(f"{self._source.left} bytes follow the artifact")

    def _field_count(self) -> int:
        source = self._source
        if not source.fill(1):
            raise _fault("there is nothing in it")
        if source.data[source.pos] >> 5 != heads.MAP:
            raise _fault("it does not begin as a record or a proof does")
        head = self._head(heads.MAP)
        count = source.bound_count(head, 2)
        if count > _MOST_FIELDS:
            raise _fault(f"it declares {count} fields, more than any artifact has")
        return count

    def _event_count(self) -> int:
        count = self._source.bound_count(self._head(heads.ARRAY))
        # Among few, each is looked at. Of very many that are too short to be any, going through them would take hours.
        if count > _FEW and count * MIN_EVENT_BYTES > self._source.left:
            raise _fault(f"it declares {count} events, more than fit")
        return count

    def _batches(self, count: int) -> Iterator[list[bytes]]:
        if self._checkpoint is not None:
            self._note("the fields are not in canonical order")
        passed = 0
        try:
            for events in event_batches(self._source, count, self._note, self._max_event_bytes):
                self.count += len(events)
                if self._departure is not None:
                    break
                yield events
                if not self.is_wanted:
                    break
        except EventTooLong as stop:
            self.too_long = (self.count, stop.length)
            passed = 1
        skip_events(self._source, count - self.count - passed, self._note)
        self.count = count

    def _ranges(self, count: int, length: int) -> Iterator[EventRange]:
        while self.count < count and self.is_wanted:
            start, wanted = self._source.offset, min(length, count - self.count)
            skip_events(self._source, wanted, self._note)
            found = EventRange(self.count, wanted, start, self._source.offset)
            self.count += wanted
            if self._departure is None:
                yield found
        skip_events(self._source, count - self.count, self._note)
        self.count = count

    def _take_checkpoint(self) -> None:
        head = self._head(heads.BYTES)
        self._checkpoint = self._source.take(min(head.arg, MAX_MESSAGE_BYTES + 1))
        # Longer than any message: so much of it is enough to be refused.
        self._source.skip(head.arg - len(self._checkpoint))

    def _name(self) -> str:
        head = self._head(heads.TEXT)
        if head.arg > _LONGEST_NAME:
            raise _fault(f"a field name of {head.arg} bytes, longer than any artifact has")
        try:
            return self._source.take(head.arg).decode()
        except UnicodeDecodeError:
            raise _fault("a field name is not valid UTF-8") from None

    def _head(self, major: int) -> heads.Head:
        at = self._source.offset
        head = self._source.head()
        if head.major != major:
            raise _fault(f"an item at byte {at} is not of the type that belongs there")
        if not head.minimal:
            self._note(f"a head at byte {at} is not the shortest")
        return head

    def _note(self, what: str) -> None:
        self._departure = self._departure or what


def _fault(detail: str) -> VerificationError:
    return VerificationError(FailureCode.RECORD_DECODE, detail)
