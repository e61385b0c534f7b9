"""What a verifier noticed without refusing: counted, with the first hundred places of a kind, so no record floods it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, final

PLACES: Final = 100  # how many a finding names


class FindingKind(StrEnum):
    """The closed set of findings; the names are stable."""

    FLOAT = "float_in_event"
    SEQ_GAP = "seq_gap"
    ORIGIN_DIFFERS = "origin_differs_from_stream"
    KEY_NOT_YET_VALID = "key_not_yet_valid"
    KEY_NO_LONGER_VALID = "key_no_longer_valid"
    REPEATED_END = "repeated_end"
    CONTRADICTING_CHECKS = "contradicting_checks"
    SUCCESS_BESIDE_FAILURE = "success_beside_failed_check"
    OPEN_CALL = "open_call"
    NOT_JUDGED = "schema_version_not_judged"
    APPROVAL_ABSENT = "approval_not_on_record"
    APPROVAL_NOT_GIVEN = "approval_not_given"
    APPROVAL_OTHER_ARGS = "approval_for_other_arguments"
    APPROVAL_UNSIGNED = "approval_unsigned"
    APPROVAL_NOT_NAMED = "approval_by_other"
    APPROVAL_LATE = "approval_after_expiry"
    APPROVAL_NOT_FOLLOWED = "approval_not_followed"
    ARGS_DIFFER = "arguments_not_those_shown"
    ARGS_NOT_SHOWN = "arguments_not_shown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of finding in a record.

    Attributes:
        kind: What it is, by its stable name.
        detail: One plain sentence.
        count: How often it was seen.
        seqs: Where it was first seen, at most a hundred places; empty for a finding about the whole.
        ids: Which call, check or version each of these places is about; empty for a kind that has none.
    """

    kind: FindingKind
    detail: str
    count: int = 1
    seqs: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()


@final
@dataclass(slots=True)
class Findings:
    """Collects findings, the first detail of a kind standing for all of it."""

    _found: dict[FindingKind, tuple[str, int, list[int], list[int]]] = field(default_factory=dict)

    def add(
        self,
        kind: FindingKind,
        detail: str,
        seqs: Iterable[int] = (),
        *,
        ids: Iterable[int] = (),
        count: int = 1,
    ) -> None:
        """Note that a kind was seen once more, or `count` times.

        Args:
            kind: What was seen.
            detail: One plain sentence; that of the first of its kind stands.
            seqs: Where, where there are places.
            ids: What each place is about, where the kind has ids.
            count: How often.
        """
        first, before, places, abouts = self._found.get(kind, (detail, 0, [], []))
        if len(places) < PLACES:
            places.extend(seqs)
            abouts.extend(ids)
            del places[PLACES:]
            del abouts[PLACES:]
        self._found[kind] = (first, before + count, places, abouts)

    def join(self, later: Iterable[Finding]) -> None:
        """Note what was found in the part of the record that follows."""
        for finding in later:
            self.add(finding.kind, finding.detail, finding.seqs, ids=finding.ids, count=finding.count)

    def all(self) -> tuple[Finding, ...]:
        """Return what was collected, in the order in which the kinds first appeared."""
        return tuple(
            Finding(kind, detail, count, tuple(places), tuple(ids))
            for kind, (detail, count, places, ids) in self._found.items()
        )
