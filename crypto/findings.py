"""What a verifier noticed without refusing: counted, with the first few places, so no record floods it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, final

PLACES: Final = 10  # how many a finding names


class FindingKind(StrEnum):
    """The closed set of findings; the names are stable."""

    FLOAT = "float_in_event"
    SEQ_GAP = "seq_gap"
    ORIGIN_DIFFERS = "origin_differs_from_stream"
    KEY_NOT_YET_VALID = "key_not_yet_valid"
    KEY_NO_LONGER_VALID = "key_no_longer_valid"
    REPEATED_END = "repeated_end"
    CONTRADICTING_CHECKS = "contradicting_checks"
    OPEN_CALL = "open_call"
    NOT_JUDGED = "schema_version_not_judged"


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of finding in a record.

    Attributes:
        kind: What it is, by its stable name.
        detail: One plain sentence.
        count: How often it was seen.
        seqs: Where it was first seen, at most ten places; empty for a finding about the whole.
    """

    kind: FindingKind
    detail: str
    count: int = 1
    seqs: tuple[int, ...] = ()


@final
@dataclass(slots=True)
class Findings:
    """Collects findings, the first detail of a kind standing for all of it."""

    _found: dict[FindingKind, tuple[str, int, list[int]]] = field(default_factory=dict)

    def add(self, kind: FindingKind, detail: str, seqs: Iterable[int] = (), *, count: int = 1) -> None:
        """Note that a kind was seen once more, or `count` times, at the seqs where there are any."""
        first, before, places = self._found.get(kind, (detail, 0, []))
        if len(places) < PLACES:
            places.extend(seqs)
            del places[PLACES:]
        self._found[kind] = (first, before + count, places)

    def join(self, later: Iterable[Finding]) -> None:
        """Note what was found in the part of the record that follows."""
        for finding in later:
            self.add(finding.kind, finding.detail, finding.seqs, count=finding.count)

    def all(self) -> tuple[Finding, ...]:
        """Return what was collected, in the order in which the kinds first appeared."""
        return tuple(
            Finding(kind, detail, count, tuple(places))
            for kind, (detail, count, places) in self._found.items()
        )
