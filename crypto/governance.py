"""Governance and ground truth (tier L4), as a fold over events that passed L1.

What ended was admitted, what was refused did not run, and each claimed success rests on a check that passed.
It reads only the record: that the events describe what happened rests on the runtime that mediated the acts.
"""

from dataclasses import dataclass
from typing import Any, Final, final

from affidavit.crypto import cbor
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.findings import Finding, FindingKind, Findings

KNOWN_SCHEMA_VERSIONS: Final = frozenset({1})


@dataclass(frozen=True, slots=True)
class Governance:
    """What a record that keeps the rules shows.

    Attributes:
        admitted: Actions admitted.
        completed: Actions ended, those interrupted included.
        refused: Actions refused.
        interrupted: Actions closed as interrupted: what they did is unknown.
        outcomes_claimed: Successes claimed, each resting on a passed check.
        not_judged: Events left out, since their schema version is unknown here.
        findings: What was noticed without refusing.
    """

    admitted: int
    completed: int
    refused: int
    interrupted: int
    outcomes_claimed: int
    not_judged: int
    findings: tuple[Finding, ...]


@final
class GovernanceFold:
    """Takes the events of one record in order, and judges them at the end."""

    __slots__ = (
        "_claims",
        "_counts",
        "_ended",
        "_failed",
        "_fault",
        "_findings",
        "_index",
        "_late_denial",
        "_not_judged",
        "_passed",
        "_rejected",
        "_started",
    )

    def __init__(self) -> None:
        self._findings = Findings()
        self._started: dict[int, int] = {}
        self._rejected: set[int] = set()
        self._ended: set[int] = set()
        self._passed: dict[int, int] = {}
        self._failed: dict[int, int] = {}
        self._claims: list[tuple[int, int | None]] = []
        self._counts = {"admitted": 0, "completed": 0, "refused": 0, "interrupted": 0}
        self._not_judged = 0
        self._fault: VerificationError | None = None
        self._late_denial: VerificationError | None = None
        self._index = 0

    def add(self, fields: dict[str, Any]) -> None:
        """Take the next event's fields. Never raises: the first fault is kept until `finish`."""
        rule = _RULES.get(fields["type"])
        if fields["schema_version"] not in KNOWN_SCHEMA_VERSIONS:
            self._not_judged += 1
            self._findings.add(
                FindingKind.NOT_JUDGED,
                f"schema version {fields['schema_version']} is unknown here: the event was not judged",
                [fields["seq"]],
            )
        elif rule is not None:
            rule(self, fields["payload"], fields["seq"])
        self._index += 1

    def finish(self) -> Governance:
        """Return what the record shows.

        Raises:
            VerificationError: `gov.unadmitted_action`, `gov.admission_denied_but_executed` or
                `shallow.no_ground_truth`, with the index of the event at fault.
        """
        # A refusal after the end contradicts it just as well, but what is wrong by itself is named first,
        # as in the published implementation.
        fault = self._fault or self._late_denial
        if fault is not None:
            raise fault
        for index, check in self._claims:
            if check is None or check not in self._passed:
                raise VerificationError(
                    FailureCode.SHALLOW_NO_GROUND_TRUTH, "a success is claimed that rests on no passed check"
                ).at(index)
        for check, seq in self._failed.items():
            if check in self._passed:
                self._findings.add(
                    FindingKind.CONTRADICTING_CHECKS,
                    f"check {check} is recorded as failed and as passed",
                    [seq],
                )
        for call, seq in self._started.items():
            if call not in self._ended and call not in self._rejected:
                self._findings.add(
                    FindingKind.OPEN_CALL, "an action was admitted and has no end on the record", [seq]
                )
        return Governance(
            **self._counts,
            outcomes_claimed=len(self._claims),
            not_judged=self._not_judged,
            findings=self._findings.all(),
        )

    def _start(self, payload: dict[str, Any], seq: int) -> None:
        call = _whole(payload.get("call"))
        if call is not None:
            self._counts["admitted"] += 1
            self._started.setdefault(call, seq)

    def _reject(self, payload: dict[str, Any], seq: int) -> None:
        call = _whole(payload.get("call"))
        if call is None:
            return
        self._counts["refused"] += 1
        self._rejected.add(call)
        if call in self._ended and self._late_denial is None:
            self._late_denial = VerificationError(
                FailureCode.GOV_ADMISSION_DENIED_BUT_EXECUTED, f"call {call} ran and was refused"
            ).at(self._index)

    def _end(self, payload: dict[str, Any], seq: int) -> None:
        call = _whole(payload.get("call"))
        self._counts["completed"] += 1
        if payload.get("error_class") == "interrupted":
            self._counts["interrupted"] += 1
        if call is None or call not in self._started:
            which = "an action with no call number" if call is None else f"call {call}"
            self._fail(FailureCode.GOV_UNADMITTED_ACTION, f"{which} ended without an earlier admission")
            return
        if call in self._rejected:
            self._fail(FailureCode.GOV_ADMISSION_DENIED_BUT_EXECUTED, f"call {call} was refused and ran")
        if call in self._ended:
            self._findings.add(FindingKind.REPEATED_END, f"call {call} has more than one end", [seq])
        self._ended.add(call)

    def _check(self, payload: dict[str, Any], seq: int) -> None:
        check = _whole(payload.get("check"))
        if check is not None:
            side = self._passed if payload.get("passed") is True else self._failed
            side.setdefault(check, seq)

    def _outcome(self, payload: dict[str, Any], seq: int) -> None:
        if payload.get("result") == "success":
            self._claims.append((self._index, _whole(payload.get("check"))))

    def _fail(self, code: FailureCode, detail: str) -> None:
        if self._fault is None:
            self._fault = VerificationError(code, detail).at(self._index)


_RULES: Final = {
    "dispatch.start": GovernanceFold._start,  # noqa: SLF001 - the table of the class's own rules
    "dispatch.rejected": GovernanceFold._reject,  # noqa: SLF001
    "dispatch.end": GovernanceFold._end,  # noqa: SLF001
    "check.recorded": GovernanceFold._check,  # noqa: SLF001
    "outcome.recorded": GovernanceFold._outcome,  # noqa: SLF001
}


def _whole(value: object) -> int | None:
    # Producers that pass through JSON write 1.0 for 1; both mean the same call.
    if value.__class__ is int:
        number: int = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    else:
        return None
    return number if cbor.INT64_MIN <= number <= cbor.INT64_MAX else None
