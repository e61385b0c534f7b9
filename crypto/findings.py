"""What a verifier noticed without refusing: counted, with the first few places, so no record floods it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, final

_PLACES: Final = 10


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

    def add(self, kind: FindingKind, detail: str, seqs: Iterable[int] = ()) -> None:
        """Note one more finding of a kind, at a seq where there is one."""
        first, count, places = self._found.get(kind, (detail, 0, []))
        places.extend(seqs if len(places) < _PLACES else ())
        self._found[kind] = (first, count + 1, places)

    def all(self) -> tuple[Finding, ...]:
        """Return what was collected, in the order in which the kinds first appeared."""
        return tuple(
            Finding(kind, detail, count, tuple(places))
            for kind, (detail, count, places) in self._found.items()
        )
