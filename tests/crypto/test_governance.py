"""The rules of tier L4: judged as a slow reading of the format's words judges them, in little memory."""

import random
import tracemalloc
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import governance_state
from affidavit.crypto.failures import VerificationError
from affidavit.crypto.findings import PLACES, FindingKind
from affidavit.crypto.governance import GovernanceFold
from affidavit.crypto.governance_steps import (
    CHECK,
    CLAIM,
    END,
    REJECT,
    START,
    Step,
    pack_steps,
    read_step,
    unpack_steps,
)
from tests.crypto.oracles import governance as oracle

NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 2**63 - 1, -(2**63), 1.0, 2.5, 1e30, True, None, "1"])
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "call": NUMBERS,
        "check": NUMBERS,
        "passed": st.sampled_from([True, True, False, 1]),
        "result": st.sampled_from(["success", "failure"]),
        "error_class": st.sampled_from(["interrupted", "terminal"]),
    },
)
KINDS = st.sampled_from(
    [
        *["dispatch.start"] * 4,
        *["dispatch.end"] * 2,
        "dispatch.rejected",
        *["check.recorded"] * 3,
        "outcome.recorded",
        "note",
    ]
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"type": KINDS, "payload": PAYLOADS, "schema_version": st.sampled_from([1, 1, 1, 1, 2])}
    ),
    max_size=20,
)
MANY = 6000
BYTES_PER_ID = 24


def placed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with a seq each."""
    return [{**fields, "seq": seq} for seq, fields in enumerate(events, 1)]


def steps_of(events: list[dict[str, Any]]) -> list[Step]:
    """What L4 reads of events."""
    read = (read_step(fields, index) for index, fields in enumerate(events))
    return [step for step in read if step is not None]


def judge(steps: list[Step]) -> oracle.Answer:
    """What the fold says, in the oracle's words."""
    fold = GovernanceFold()
    for step in steps:
        fold.take(step)
    try:
        found = asdict(fold.finish())
    except VerificationError as error:
        return str(error.code), -1 if error.index is None else error.index
    findings = {str(finding["kind"]): finding["count"] for finding in found.pop("findings")}
    return found, findings


@given(EVENTS)
def test_the_rules_are_those_of_the_words(events: list[dict[str, Any]]) -> None:
    """Code and index of the first fault, or counts and findings, agree with a slow reference for any events."""
    assert judge(steps_of(placed(events))) == oracle.judge(events)


@given(EVENTS, st.integers(0, 2**40))
def test_steps_travel_unchanged(events: list[dict[str, Any]], first: int) -> None:
    """Packed for another process and unpacked there, steps are what they were."""
    steps = [
        (rule, first + index, seq, number, flag)
        for rule, index, seq, number, flag in steps_of(placed(events))
    ]
    assert unpack_steps(pack_steps(steps, first), first) == steps


def test_steps_that_are_cut_off_are_refused() -> None:
    """Bytes that no packing made are an error, not fewer steps."""
    with pytest.raises(ValueError, match="cut off"):
        unpack_steps(pack_steps([(START, 0, 1, 7, False)], 0)[:-1], 0)


def folded(rules: list[tuple[int, bool]], numbers: list[int]) -> GovernanceFold:
    """A fold that took each rule with every number in turn."""
    fold, seq = GovernanceFold(), 0
    for rule, flag in rules:
        for number in numbers:
            seq += 1
            fold.take((rule, seq - 1, seq, number, flag))
    return fold


LIVES = {
    "admitted": [(START, False)],
    "ended": [(START, False), (END, False)],
    "refused": [(REJECT, False)],
    "refused after the admission": [(START, False), (REJECT, False)],
    "refused after the end": [(START, False), (END, False), (REJECT, False)],
    "passed": [(CHECK, True)],
    "failed and passed": [(CHECK, False), (CHECK, True)],
    "claimed": [(CLAIM, False)],
    "failed and claimed": [(CHECK, False), (CLAIM, False)],
}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
def test_no_number_takes_more_than_24_bytes(
    life: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is said of sparse calls and checks, each is kept once, packed; the few places that are named apart."""
    monkeypatch.setattr(governance_state, "_MOST_PLACES", 16)
    draw = random.Random(1)
    numbers = [draw.randint(-(2**63), 2**63 - 1) for _ in range(MANY)]
    tracemalloc.start()
    try:
        fold = folded(life, numbers)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < BYTES_PER_ID * MANY + 4096
    assert fold is not None


@pytest.mark.parametrize("life", [LIVES["admitted"], LIVES["ended"], LIVES["refused"], LIVES["passed"]])
def test_numbers_that_count_up_take_next_to_nothing(life: list[tuple[int, bool]]) -> None:
    """An honest record's calls and checks cost a fixed amount, however many there are."""
    tracemalloc.start()
    try:
        fold = folded(life, list(range(MANY)))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1024 * 200
    assert fold is not None


def test_open_calls_are_counted_and_the_first_are_named() -> None:
    """Of thousands of open calls the number is exact, and the places are those of the earliest."""
    fold = folded([(START, False)], list(range(5000)))
    for call in range(3, 1000):
        fold.take((END, 0, 9000 + call, call, False))
    (finding,) = fold.finish().findings
    assert (finding.kind, finding.count) == (FindingKind.OPEN_CALL, 5000 - 997)
    # Of 1024 that are remembered, 3 and 24 are open still; each is named with its seq.
    assert finding.ids == (0, 1, 2, *range(1000, 1024))
    assert finding.seqs == tuple(call + 1 for call in finding.ids)
    assert finding.detail == "4003 calls were admitted and have no end on the record"


def test_open_calls_beyond_those_remembered_are_counted_still() -> None:
    """Where all of the first thousand ended, the rest are counted without a place rather than with a wrong one."""
    fold = folded([(START, False)], list(range(2000)))
    for call in range(1990):
        fold.take((END, 0, 9000 + call, call, False))
    (finding,) = fold.finish().findings
    assert (finding.count, finding.seqs) == (10, ())
    assert finding.detail == "10 calls were admitted and have no end on the record"


def test_an_unfounded_claim_names_its_check() -> None:
    """The refusal says which check never passed, or that none was named."""
    for number, said in ((7, "rests on check 7, which never passed"), (None, "names no check")):
        fold = GovernanceFold()
        fold.take((CHECK, 0, 1, 7, False))
        fold.take((CLAIM, 1, 2, number, False))
        fold.take((CLAIM, 2, 3, 8, False))
        with pytest.raises(VerificationError, match=said) as refusal:
            fold.finish()
        assert refusal.value.index == 1
        assert "; nor did these pass, on which successes rest: check 8 (event 3)" in refusal.value.detail
        assert refusal.value.expected == "a check that passed"
        assert refusal.value.actual == ("failed" if number else "no check named")


def test_many_unfounded_claims_are_counted_and_the_first_ten_named() -> None:
    """The refusal is of the first in the record, whatever its number; the rest are not hidden behind it."""
    fold = GovernanceFold()
    for index in range(100):
        fold.take((CLAIM, index, index + 1, 500 - index, False))
    with pytest.raises(VerificationError) as refusal:
        fold.finish()
    assert (refusal.value.index, refusal.value.actual) == (0, "not on the record")
    assert "rests on check 500, which never passed" in refusal.value.detail
    assert "rest: check 499 (event 2), check 498 (event 3)," in refusal.value.detail
    assert refusal.value.detail.endswith("check 490 (event 11) and 89 more")


@pytest.mark.parametrize(
    ("rules", "expected", "actual"),
    [
        ([(REJECT, 7), (START, 7), (END, 7)], "refused", "ran"),
        ([(START, 7), (END, 7), (REJECT, 7)], "refused", "ran"),
        ([(REJECT, 7), (END, 7)], "admitted before", "refused"),
        ([(END, 7)], "admitted before", "not on the record"),
        ([(END, None)], "admitted before", "no call number"),
    ],
)
def test_a_refusal_says_what_the_rule_needed_and_what_was_found(
    rules: list[tuple[int, int | None]], expected: str, actual: str
) -> None:
    """Both values that disagree."""
    fold = GovernanceFold()
    for index, (rule, call) in enumerate(rules):
        fold.take((rule, index, index + 1, call, False))
    with pytest.raises(VerificationError) as refusal:
        fold.finish()
    assert (refusal.value.expected, refusal.value.actual) == (expected, actual)


def test_every_call_of_a_finding_is_named_up_to_a_hundred() -> None:
    """Which call, and where; beyond that the number is exact still."""
    fold = folded([(START, False), (END, False), (END, False)], list(range(40, 190)))
    (finding,) = fold.finish().findings
    assert (finding.kind, finding.count) == (FindingKind.REPEATED_END, 150)
    assert finding.ids == tuple(range(40, 140))
    assert len(finding.seqs) == PLACES
    fold = folded([(CHECK, False), (CHECK, True)], [3, 5])
    (finding,) = fold.finish().findings
    assert (finding.kind, finding.ids) == (FindingKind.CONTRADICTING_CHECKS, (3, 5))


@pytest.mark.parametrize(
    ("between", "told"),
    [((), (8,)), (({"result": "failure", "check": 8},), ()), (({"result": "success", "check": 7},), (8,))],
    ids=["nothing", "the failure", "an earlier success"],
)
def test_a_success_beside_another_check_that_failed_is_told(
    between: tuple[dict[str, Any], ...], told: tuple[int, ...]
) -> None:
    """It rests on a check that passed, so the format's rule holds; that one before it failed is for the reader to know, once."""
    checks = [
        {"type": "check.recorded", "payload": {"check": number, "passed": number != 8}}
        for number in (7, 8, 9)
    ]
    outcomes = [*between, {"result": "success", "check": 9}]
    events = checks + [{"type": "outcome.recorded", "payload": payload} for payload in outcomes]
    fold = GovernanceFold()
    for step in steps_of(placed([{**each, "schema_version": 1} for each in events])):
        fold.take(step)
    found = [each for each in fold.finish().findings if each.kind is FindingKind.SUCCESS_BESIDE_FAILURE]
    assert [(each.count, each.ids, each.seqs) for each in found] == [(1, told, (2,))] * bool(told)
