"""Governance and ground truth (tier L4), as a fold over events that passed L1.

What ended was admitted, what was refused did not run, and each claimed success rests on a check that passed.
It reads only the record: that the events describe what happened rests on the runtime that mediated the acts.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Final, final

from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.findings import PLACES, Finding, FindingKind, Findings
from affidavit.crypto.governance_state import Calls, GroundTruth, Unfounded
from affidavit.crypto.governance_steps import CHECK, CLAIM, END, FAILURE, NOT_JUDGED, REJECT, START, Step

_NAMED: Final = 10  # how many further claims without a ground a refusal names
# The two values that disagree where a rule is broken.
_ADMITTED, _REFUSED, _RAN = "admitted before", "refused", "ran"


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
    """Takes the steps of one record in order, and judges them at the end."""

    __slots__ = (
        "_calls",
        "_counts",
        "_failed",
        "_fault",
        "_findings",
        "_late_denial",
        "_nameless_claim",
        "_truth",
    )

    def __init__(self) -> None:
        self._findings = Findings()
        self._calls = Calls()
        self._truth = GroundTruth()
        self._counts = {"admitted": 0, "completed": 0, "refused": 0, "interrupted": 0}
        self._counts |= {"outcomes_claimed": 0, "not_judged": 0}
        self._fault: VerificationError | None = None
        self._late_denial: VerificationError | None = None
        self._nameless_claim: int | None = None
        # The last check that failed, by its place and number, until an outcome is recorded.
        self._failed: tuple[int, int] | None = None

    def take(self, step: Step) -> None:
        """Take the next step. Never raises: the first fault is kept until `finish`, and nothing follows it."""
        if self._fault is None:
            _RULES[step[0]](self, step)

    def finish(self) -> Governance:
        """Return what the record shows.

        Raises:
            VerificationError: `gov.unadmitted_action`, `gov.admission_denied_but_executed` or
                `shallow.no_ground_truth`, with the index of the event at fault.
        """
        # A refusal after the end contradicts it just as well, but what is wrong by itself is named first,
        # as in the published implementation.
        fault = self._fault or self._late_denial or self._unfounded()
        if fault is not None:
            raise fault
        self._note_open_calls()
        return Governance(**self._counts, findings=self._findings.all())

    def _note_open_calls(self) -> None:
        count, first = self._calls.open_count, self._calls.first_open()
        if not count:
            return
        detail = f"{count} calls were admitted and have no end on the record"
        if count == 1:
            detail = "a call was admitted and has no end on the record"
        self._findings.add(
            FindingKind.OPEN_CALL,
            detail,
            islice(first.values(), PLACES),
            ids=islice(first, PLACES),
            count=count,
        )

    def _unfounded(self) -> VerificationError | None:
        found = self._truth.unfounded(_NAMED + 1)
        nameless, count = self._nameless_claim, self._truth.unfounded_count
        if nameless is not None and (not found or nameless < found[0].place):
            detail = "a success is claimed that names no check" + _also(found[:_NAMED], count)
            return _unfounded(nameless, detail, "no check named")
        if not found:
            return None
        index, check, failed = found[0]
        detail = f"a success is claimed that rests on check {check}, which never passed"
        return _unfounded(
            index, detail + _also(found[1:], count - 1), "failed" if failed else "not on the record"
        )

    def _start(self, step: Step) -> None:
        _, _, seq, call, _ = step
        self._counts["admitted"] += 1
        if call is not None:
            self._calls.start(call, seq)

    def _reject(self, step: Step) -> None:
        _, index, _, call, _ = step
        self._counts["refused"] += 1
        if call is not None and self._calls.refuse(call) and self._late_denial is None:
            self._late_denial = VerificationError(
                FailureCode.GOV_ADMISSION_DENIED_BUT_EXECUTED,
                f"call {call} ran and was refused",
                expected=_REFUSED,
                actual=_RAN,
            ).at(index)

    def _end(self, step: Step) -> None:
        _, index, seq, call, interrupted = step
        self._counts["completed"] += 1
        self._counts["interrupted"] += interrupted
        calls = self._calls
        if call is None:
            self._fail(
                FailureCode.GOV_UNADMITTED_ACTION,
                "an action with no call number ended without an earlier admission",
                index,
                (_ADMITTED, "no call number"),
            )
        elif calls.end(call):
            return
        elif call in calls.ended:
            self._findings.add(FindingKind.REPEATED_END, "a call has more than one end", [seq], ids=[call])
        elif call in calls.refused_started:
            self._fail(
                FailureCode.GOV_ADMISSION_DENIED_BUT_EXECUTED,
                f"call {call} was refused and ran",
                index,
                (_REFUSED, _RAN),
            )
        else:
            self._fail(
                FailureCode.GOV_UNADMITTED_ACTION,
                f"call {call} ended without an earlier admission",
                index,
                (_ADMITTED, _REFUSED if calls.was_refused(call) else "not on the record"),
            )

    def _check(self, step: Step) -> None:
        _, _, seq, check, passed = step
        if check is not None and not passed:
            self._failed = seq, check
        if check is not None and self._truth.check(check, passed=passed):
            self._findings.add(
                FindingKind.CONTRADICTING_CHECKS,
                "a check is recorded as failed and as passed",
                [seq],
                ids=[check],
            )

    def _claim(self, step: Step) -> None:
        _, index, _, check, _ = step
        self._counts["outcomes_claimed"] += 1
        # That the very check it rests on failed as well is a finding, or a refusal, of its own.
        if self._failed is not None and self._failed[1] != check:
            seq, failed = self._failed
            self._findings.add(
                FindingKind.SUCCESS_BESIDE_FAILURE,
                "a success is claimed after another check failed, and no failure was recorded between them",
                [seq],
                ids=[failed],
            )
            self._failed = None
        if check is not None:
            self._truth.claim(check, index)
        elif self._nameless_claim is None:
            self._nameless_claim = index

    def _fail_openly(self, step: Step) -> None:
        self._failed = None

    def _leave_out(self, step: Step) -> None:
        _, _, seq, version, _ = step
        self._counts["not_judged"] += 1
        self._findings.add(
            FindingKind.NOT_JUDGED,
            "an event's schema version is unknown here: it was not judged",
            [seq],
            ids=[] if version is None else [version],
        )

    def _fail(self, code: FailureCode, detail: str, index: int, values: tuple[str, str]) -> None:
        expected, actual = values
        self._fault = VerificationError(code, detail, expected=expected, actual=actual).at(index)


def _unfounded(index: int, detail: str, actual: str) -> VerificationError:
    return VerificationError(
        FailureCode.SHALLOW_NO_GROUND_TRUTH, detail, expected="a check that passed", actual=actual
    ).at(index)


def _also(others: list[Unfounded], count: int) -> str:
    if not count:
        return ""
    named = ", ".join(f"check {other.check} (event {other.place + 1})" for other in others)
    more = f" and {count - len(others)} more" if count > len(others) else ""
    return f"; nor did these pass, on which successes rest: {named}{more}"


_RULES = {
    START: GovernanceFold._start,  # noqa: SLF001 - the table of the class's own rules
    REJECT: GovernanceFold._reject,  # noqa: SLF001
    END: GovernanceFold._end,  # noqa: SLF001
    CHECK: GovernanceFold._check,  # noqa: SLF001
    CLAIM: GovernanceFold._claim,  # noqa: SLF001
    FAILURE: GovernanceFold._fail_openly,  # noqa: SLF001
    NOT_JUDGED: GovernanceFold._leave_out,  # noqa: SLF001
}
