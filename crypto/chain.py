"""Structure (tier L1): every event canonical, all of one stream, seq strictly rising, and at least one event.

Gaps in seq are allowed, since a record may be a window of a longer stream, and are reported. Nothing here
knows a signature.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from affidavit.crypto import cbor
from affidavit.crypto.event import MAX_EVENT_BYTES, check_event
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


@final
class ChainFold:
    """Checks events one by one, in order."""

    __slots__ = ("_count", "_first_seq", "_last_seq", "_last_time", "_limits", "_stream", "findings")

    def __init__(
        self, *, max_event_bytes: int = MAX_EVENT_BYTES, max_depth: int = cbor.DEFAULT_MAX_DEPTH
    ) -> None:
        self.findings = Findings()
        self._limits = (max_event_bytes, max_depth)
        self._stream: str | None = None
        self._count = self._first_seq = self._last_seq = self._last_time = 0

    def add(self, data: bytes) -> dict[str, Any]:
        """Check the next event and return its fields.

        Raises:
            VerificationError: `enc.*` or `chain.*`, with the event's index.
        """
        max_bytes, max_depth = self._limits
        try:
            event = check_event(data, max_bytes=max_bytes, max_depth=max_depth)
        except VerificationError as error:
            raise error.at(self._count) from error
        fields = event.fields
        self._follow(fields["stream"], fields["seq"])
        self._last_time = fields["time"]
        if event.has_floats:
            self.findings.add(
                FindingKind.FLOAT,
                "a float, which the profile does not allow, in its shortest form",
                [fields["seq"]],
            )
        return fields

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

    def _follow(self, stream: str, seq: int) -> None:
        index = self._count
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
                FailureCode.CHAIN_NON_MONOTONIC_SEQ, f"seq {seq} follows {self._last_seq}", actual=seq
            ).at(index)
        if seq != self._last_seq + 1:
            self.findings.add(
                FindingKind.SEQ_GAP, "seq leaves a gap: the record is a window of its stream", [seq]
            )
        self._last_seq = seq
        self._count += 1


def verify_events(events: Iterable[bytes]) -> VerifiedEvents:
    """Check the structure of events that carry no signature (tier L1).

    Args:
        events: The exact bytes of each event, in order.

    Raises:
        VerificationError: `enc.*` or `chain.*`.
    """
    chain = ChainFold()
    for data in events:
        chain.add(data)
    return chain.finish()
