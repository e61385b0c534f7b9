"""The L4 rules as the words of the format say them, over whole events, with plain dicts and sets; slow, and shares no code.

It answers with the code and the index of the event at fault, or with the counts and the findings by kind.
"""

import itertools
from typing import Any

Answer = tuple[str, int] | tuple[dict[str, int], dict[str, int]]


def whole(value: Any) -> int | None:
    """A number as the format reads it: an integral float counts as its integer, true and false do not count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
        return None
    return int(value) if -(2**63) <= value < 2**63 else None


def judge(events: list[dict[str, Any]]) -> Answer:
    """What tier L4 says of the fields of a record's events."""
    known = [(i, e["type"], e["payload"]) for i, e in enumerate(events) if e["schema_version"] == 1]
    started: set[int] = set()
    rejected: set[int] = set()
    ended: set[int] = set()
    faults: list[tuple[str, int]] = []
    late: list[tuple[str, int]] = []
    repeated = 0
    for index, kind, payload in known:
        call = whole(payload.get("call"))
        if kind == "dispatch.start" and call is not None:
            started.add(call)
        elif kind == "dispatch.rejected" and call is not None:
            rejected.add(call)
            if call in ended:
                late.append(("gov.admission_denied_but_executed", index))
        elif kind == "dispatch.end":
            if call is None or call not in started:
                faults.append(("gov.unadmitted_action", index))
            elif call in rejected:
                faults.append(("gov.admission_denied_but_executed", index))
            else:
                repeated += call in ended
                ended.add(call)
    checks = [
        (whole(p.get("check")), p.get("passed") is True) for _, kind, p in known if kind == "check.recorded"
    ]
    passed = {check for check, held in checks if held and check is not None}
    failed = {check for check, held in checks if not held and check is not None}
    claims = [
        (index, whole(p.get("check")))
        for index, kind, p in known
        if kind == "outcome.recorded" and p.get("result") == "success"
    ]
    unfounded = [("shallow.no_ground_truth", index) for index, check in claims if check not in passed]
    for found in (faults, late, unfounded):
        if found:
            return found[0]
    ends = [p for _, kind, p in known if kind == "dispatch.end"]
    counts = {
        "admitted": _numbered(known, "dispatch.start"),
        "completed": len(ends),
        "refused": _numbered(known, "dispatch.rejected"),
        "interrupted": sum(p.get("error_class") == "interrupted" for p in ends),
        "outcomes_claimed": len(claims),
        "not_judged": len(events) - len(known),
    }
    findings = {
        "repeated_end": repeated,
        "contradicting_checks": len(passed & failed),
        "success_beside_failed_check": _successes_beside_failures(known),
        "open_call": len(started - ended - rejected),
        "schema_version_not_judged": len(events) - len(known),
    }
    return counts, {kind: count for kind, count in findings.items() if count}


def _numbered(known: list[tuple[int, str, dict[str, Any]]], kind: str) -> int:
    return sum(k == kind and whole(p.get("call")) is not None for _, k, p in known)


def _successes_beside_failures(known: list[tuple[int, str, dict[str, Any]]]) -> int:
    """How many successes follow a failed check that is not their own, with no outcome between the two."""
    told = [
        (kind, payload)
        for _, kind, payload in known
        if kind == "outcome.recorded"
        or (
            kind == "check.recorded"
            and whole(payload.get("check")) is not None
            and payload.get("passed") is not True
        )
    ]
    return sum(
        before == "check.recorded"
        and kind == "outcome.recorded"
        and payload.get("result") == "success"
        and whole(failed.get("check")) != whole(payload.get("check"))
        for (before, failed), (kind, payload) in itertools.pairwise(told)
    )
