"""Structure (tier L1): every event canonical, all of one stream, seq strictly rising, and at least one event.

Gaps in seq are allowed, since a record may be a window of a longer stream, and are reported. Nothing here
knows a signature.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from affidavit.crypto import cbor
from affidavit.crypto.event_check import CheckedEvent, examine_event, quick_fields
from affidavit.crypto.event_form import MAX_EVENT_BYTES
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.findings import Finding, FindingKind, Findings


@dataclass(frozen=True, slots=True)
class VerifiedEvents:
    """Events that keep the structure rules. They are unsigned: whoever gave them may have made them."""

    stream: str
    count: int
    first_seq: int
    last_seq: int
    last_time: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ChainPart:
    """Events that keep the structure rules among themselves: a part of a record, to be joined to what precedes it."""

    stream: str
    count: int
    first_seq: int
    last_seq: int
    last_time: int
    findings: tuple[Finding, ...]


@final
class ChainFold:
    """Checks events one by one, in order.

    Attributes:
        findings: What was noticed without refusing.
    """

    __slots__ = (
        "_count",
        "_first_seq",
        "_index",
        "_is_part",
        "_last_seq",
        "_last_time",
        "_loads",
        "_max_bytes",
        "_max_depth",
        "_stream",
        "findings",
    )

    def __init__(
        self,
        *,
        max_event_bytes: int = MAX_EVENT_BYTES,
        max_depth: int = cbor.DEFAULT_MAX_DEPTH,
        index: int | None = None,
    ) -> None:
        """Begin.

        Args:
            max_event_bytes: The longest event accepted, in bytes.
            max_depth: How many containers an event may nest.
            index: Zero-based position of the first event in its record where this is a part of one: what comes
                before it, a gap included, is then looked at where the parts are joined.
        """
        self.findings = Findings()
        self._max_bytes = max_event_bytes
        self._max_depth = max_depth
        self._loads = cbor.strict_loader(max_depth)
        self._index = index or 0
        self._is_part = index is not None
        self._stream: str | None = None
        self._count = self._first_seq = self._last_seq = self._last_time = 0

    def add(self, data: bytes) -> dict[str, Any]:
        """Check the next event and return its fields.

        Raises:
            VerificationError: `enc.*` or `chain.*`, with the event's index.
        """
        fields = quick_fields(data, self._loads) if len(data) <= self._max_bytes else None
        has_floats = False
        if fields is None:
            fields, has_floats = self._examine(data)
        seq = fields["seq"]
        if seq != self._last_seq + 1 or fields["stream"] != self._stream:
            self._follow(fields["stream"], seq)
        self._last_seq = seq
        self._last_time = fields["time"]
        self._count += 1
        if has_floats:
            self.findings.add(
                FindingKind.FLOAT,
                "a float, which the profile does not allow, in its shortest form",
                [seq],
            )
        return fields

    def join(self, part: ChainPart) -> None:
        """Take a part of the record that follows what was taken so far.

        Raises:
            VerificationError: `chain.*`, with the index of the part's first event.
        """
        if part.first_seq != self._last_seq + 1 or part.stream != self._stream:
            self._follow(part.stream, part.first_seq)
        self._last_seq, self._last_time = part.last_seq, part.last_time
        self._count += part.count
        self.findings.join(part.findings)

    def part(self) -> ChainPart | None:
        """Return what was taken as a part for another fold to join; None where that is no event."""
        if self._stream is None:
            return None
        return ChainPart(
            self._stream, self._count, self._first_seq, self._last_seq, self._last_time, self.findings.all()
        )

    def finish(self) -> VerifiedEvents:
        """Return what the events were.

        Raises:
            VerificationError: `chain.empty`.
        """
        if self._stream is None:
            raise VerificationError(FailureCode.CHAIN_EMPTY, "there are no events")
        return VerifiedEvents(
            self._stream, self._count, self._first_seq, self._last_seq, self._last_time, self.findings.all()
        )

    def _examine(self, data: bytes) -> CheckedEvent:
        try:
            return examine_event(data, max_bytes=self._max_bytes, max_depth=self._max_depth)
        except VerificationError as error:
            raise error.at(self._index + self._count) from error

    def _follow(self, stream: str, seq: int) -> None:
        # Whatever is not simply the next event of the stream.
        index = self._index + self._count
        begins = self._stream is None
        if self._stream is None:
            self._stream, self._first_seq = stream, seq
        elif stream != self._stream:
            raise VerificationError(
                FailureCode.CHAIN_STREAM_MISMATCH,
                "an event of another stream",
                expected=self._stream,
                actual=stream,
            ).at(index)
        elif seq <= self._last_seq:
            raise VerificationError(
                FailureCode.CHAIN_NON_MONOTONIC_SEQ,
                f"seq {seq} follows {self._last_seq}",
                expected=f"above {self._last_seq}",
                actual=seq,
            ).at(index)
        if seq != self._last_seq + 1 and not (begins and self._is_part):
            self.findings.add(
                FindingKind.SEQ_GAP, "seq leaves a gap: the record is a window of its stream", [seq]
            )


def verify_events(events: Iterable[bytes], *, max_depth: int = cbor.DEFAULT_MAX_DEPTH) -> VerifiedEvents:
    """Check the structure of events that carry no signature (tier L1).

    Args:
        events: The exact bytes of each event, in order.
        max_depth: How many containers an event may nest.

    Raises:
        VerificationError: `enc.*` or `chain.*`.
    """
    chain = ChainFold(max_depth=max_depth)
    for data in events:
        chain.add(data)
    return chain.finish()
