"""Approvals of a record at L4: signatures are checked, contradictions rejected, and what does not fit together is a finding."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from affidavit.crypto import (
    FailureCode,
    Keyring,
    SigningKey,
    Tier,
    VerificationError,
    VerifiedRecord,
    cbor,
    verify_record,
)
from affidavit.crypto.approval import ApprovalStatement, sign_approval
from affidavit.crypto.approval_fold import ApprovalFold
from affidavit.crypto.approval_notes import pack_notes, read_note, unpack_notes
from affidavit.crypto.findings import FindingKind
from affidavit.crypto.governance_steps import read_step
from tests.crypto.samples import STREAM, TIME, event, keyring, sealed

ADA, EVE = SigningKey.from_seed(b"a" * 32), SigningKey.from_seed(b"e" * 32)
ARGS, OTHER = b"d" * 32, b"e" * 32
EXPIRES = TIME + 10**9
STATEMENT = ApprovalStatement(STREAM, 4, "pay", ARGS, "approved", "ada", "as agreed", 1, EXPIRES)

Made = tuple[str, dict[str, Any], str]


def asked(**more: Any) -> Made:
    """A request for approval of call 4."""
    return "approval.requested", {"call": 4, "action": "pay", "args": ARGS, "expires": EXPIRES} | more, ""


def signature(statement: ApprovalStatement = STATEMENT, key: SigningKey = ADA, kid: bytes = b"") -> bytes:
    """A signed statement."""
    return sign_approval(statement, kid=kid or key.public.did_key.encode(), sign=key.sign)


def decided(decision: str = "approved", principal: str = "ada", **more: Any) -> Made:
    """A decision about call 4."""
    payload = {
        "call": 4,
        "action": "pay",
        "args": ARGS,
        "decision": decision,
        "request": 1,
        "reason": "as agreed",
    }
    return "approval.decided", payload | more, principal


def admitted(approval: int | None = 2, **more: Any) -> Made:
    """The admission of call 4, which rests on the decision of this seq."""
    payload: dict[str, Any] = {"call": 4, "action": "pay", "args": ARGS} | more
    return "dispatch.start", payload if approval is None else payload | {"approval": approval}, ""


def record(*made: Made) -> bytes:
    """A sealed record of these events."""
    return sealed(
        [
            event(seq, kind, payload, **({"principal": principal} if principal else {}))
            for seq, (kind, payload, principal) in enumerate(made, 1)
        ]
    )


def verified(*made: Made, keys: Keyring | None = None) -> VerifiedRecord:
    """The verdict on a record of these events."""
    return verify_record(record(*made), keys or keyring())


def kinds(found: VerifiedRecord) -> set[FindingKind]:
    """The kinds of findings about approvals."""
    return {finding.kind for finding in found.findings} - {FindingKind.OPEN_CALL, FindingKind.ARGS_NOT_SHOWN}


def test_an_approval_on_the_hosts_word_is_counted_as_that() -> None:
    """Nothing is wrong with it, and nobody signed it."""
    found = verified(asked(), decided(), admitted())
    assert found.approvals is not None
    assert (found.approvals.approved, found.approvals.unsigned, found.approvals.signed) == (1, 1, 0)
    assert kinds(found) == set()


def test_a_signed_approval_names_its_signer() -> None:
    """With the fingerprint, and with what the verifier's keyring says of that very key, or that it says nothing."""
    made = (asked(keys={"ada": ADA.public.raw}, signed=True), decided(statement=signature()), admitted())
    found = verified(*made).approvals
    assert found is not None
    (signer,) = found.signers
    assert (found.signed, found.unsigned, signer.principal, signer.count) == (1, 0, "ada", 1)
    assert (signer.fingerprint, signer.entry) == (ADA.public.fingerprint, None)
    keys = keyring()
    keys.add(b"ops", ADA.public, name="Ada of Ops")
    known = verified(*made, keys=keys).approvals
    assert known is not None
    assert known.signers[0].entry is not None
    assert known.signers[0].entry.name == "Ada of Ops"


CONTRADICTIONS: dict[str, tuple[Made, Made]] = {
    "a bit turned": (asked(), decided(statement=signature()[:-1] + b"\0")),
    "no message": (asked(), decided(statement="ada agreed")),
    "another run": (asked(), decided(statement=signature(replace(STATEMENT, run="run/other")))),
    "another call": (asked(), decided(statement=signature(replace(STATEMENT, call=5)))),
    "another tool": (asked(), decided(statement=signature(replace(STATEMENT, action="note")))),
    "other arguments": (asked(), decided(statement=signature(replace(STATEMENT, args=OTHER)))),
    "the opposite": (asked(), decided("refused", statement=signature())),
    "another person": (asked(), decided(principal="bob", statement=signature())),
    "another reason": (asked(), decided(reason="", statement=signature())),
    "another request": (asked(), decided(request=7, statement=signature())),
    "another expiry": (asked(expires=7), decided(statement=signature())),
    "another's key": (asked(keys={"ada": ADA.public.raw}), decided(statement=signature(key=EVE))),
}


@pytest.mark.parametrize("made", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_statement_that_contradicts_the_events_is_a_rejection(made: tuple[Made, Made]) -> None:
    """At the decision, at tier L4: the record's own signature holds. Below L4 nobody looks."""
    data = record(*made)
    with pytest.raises(VerificationError) as caught:
        verify_record(data, keyring())
    assert (caught.value.code, caught.value.tier, caught.value.index) == (
        FailureCode.SIGN_SIGNATURE_INVALID,
        Tier.L4,
        1,
    )
    assert "call 4" in caught.value.detail
    assert verify_record(data, keyring(), tier=Tier.L2).approvals is None


def test_a_key_that_the_record_does_not_spell_out_is_said_to_be_unchecked() -> None:
    """It is no fault, and it is no signature that was checked either."""
    found = verified(asked(), decided(statement=signature(kid=b"ada's"))).approvals
    assert found is not None
    assert (found.signed, found.unchecked, found.unsigned) == (0, 1, 0)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ((decided(),), FindingKind.APPROVAL_ABSENT),
        ((admitted(),), FindingKind.APPROVAL_ABSENT),
        ((asked(), decided(), admitted(approval=7)), FindingKind.APPROVAL_ABSENT),
        ((asked(), decided("refused"), admitted()), FindingKind.APPROVAL_NOT_GIVEN),
        ((asked(), decided("expired", ""), admitted()), FindingKind.APPROVAL_NOT_GIVEN),
        ((asked(), decided("refused"), admitted(None)), FindingKind.APPROVAL_NOT_GIVEN),
        ((asked(), admitted(None)), FindingKind.APPROVAL_NOT_GIVEN),
        ((asked(), decided(), admitted(args=OTHER)), FindingKind.APPROVAL_OTHER_ARGS),
        ((asked(), decided(), admitted(action="wire")), FindingKind.APPROVAL_OTHER_ARGS),
        ((asked(signed=True), decided(), admitted()), FindingKind.APPROVAL_UNSIGNED),
        ((asked(approvers=["bob", "eve"]), decided(), admitted()), FindingKind.APPROVAL_NOT_NAMED),
        (
            (
                asked(keys={"bob": EVE.public.raw}, signed=True),
                decided(statement=signature()),
                admitted(),
            ),
            FindingKind.APPROVAL_NOT_NAMED,
        ),
        ((asked(expires=TIME + 2), decided()), FindingKind.APPROVAL_LATE),
        ((asked(expires=TIME + 3), decided(), admitted()), FindingKind.APPROVAL_LATE),
    ],
)
def test_what_does_not_fit_together_is_a_finding_that_names_the_call(
    made: tuple[Made, ...], kind: FindingKind
) -> None:
    """An approval that is not there, was not given, is for something else, unsigned, by somebody else, or too late."""
    found = verified(*made)
    assert kinds(found) == {kind}
    assert next(each for each in found.findings if each.kind == kind).ids == (4,)


@pytest.mark.parametrize(
    "made",
    [
        (asked(approvers=["bob", "ada"]), decided(), admitted()),
        (asked(approvers=[]), decided(), admitted()),
        (asked(approvers=[f"n{number}" for number in range(17)]), decided(), admitted()),
        (asked(approvers="ada", keys=7), decided(), admitted()),
        (asked(expires=TIME + 4), decided(), admitted()),
        (asked(expires=TIME + 2, approvers=["ada"]), decided("expired", "")),
    ],
)
def test_what_fits_together_is_no_finding(made: tuple[Made, ...]) -> None:
    """Decided by one who is named, in time; nobody named; more than are followed; an expiry, which is nobody's."""
    assert kinds(verified(*made)) == set()


def test_an_approval_is_used_up() -> None:
    """A second admission of the call cannot rest on it."""
    assert kinds(verified(asked(), decided(), admitted(), admitted())) == {FindingKind.APPROVAL_ABSENT}


def test_a_decision_over_other_arguments_decides_nothing() -> None:
    """What rests on it rests on nothing."""
    found = verified(asked(), decided(args=OTHER), admitted())
    assert kinds(found) == {FindingKind.APPROVAL_OTHER_ARGS, FindingKind.APPROVAL_ABSENT}


def test_notes_cross_to_another_process_and_back() -> None:
    """As they were."""
    fields = {
        "type": "approval.requested",
        "schema_version": 1,
        "time": TIME,
        "seq": 3,
        "payload": asked(keys={"ada": b"k" * 32})[1],
    }
    note = read_note(fields, 1030)
    assert note is not None
    packed = cbor.decode(cbor.encode(pack_notes((note,), 1024)))
    assert unpack_notes(packed, 1024) == (note,)
    with pytest.raises((TypeError, ValueError)):
        unpack_notes([[1]], 0)


def test_requests_without_end_take_no_memory_without_end() -> None:
    """Of a hundred thousand open requests, each naming keys, only so many are followed, and that is said."""
    fold = ApprovalFold()
    keys = {f"name {number}": b"k" * 32 for number in range(16)}
    tracemalloc.start()
    for call in range(20_000):
        fields = {
            "type": "approval.requested",
            "schema_version": 1,
            "time": TIME,
            "seq": call + 1,
            "payload": {"call": call, "action": "x" * 1000, "args": ARGS, "expires": 1, "keys": keys},
        }
        note = read_note(fields, call)
        assert note is not None
        fold.join((note,), ())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    _, findings = fold.finish(Keyring())
    assert [finding.kind for finding in findings] == [FindingKind.APPROVAL_NOT_FOLLOWED]


def test_an_end_before_its_request_closes_nothing() -> None:
    """Notes and steps are taken in the order of the events, though they arrive apart."""
    fold = ApprovalFold()
    made = [
        {"type": "dispatch.rejected", "schema_version": 1, "time": TIME, "seq": 1, "payload": {"call": 4}},
        {"type": "approval.requested", "schema_version": 1, "time": TIME, "seq": 2, "payload": asked()[1]},
        {
            "type": "approval.decided",
            "schema_version": 1,
            "time": TIME,
            "seq": 3,
            "payload": decided()[1],
            "principal": "ada",
        },
        {"type": "dispatch.start", "schema_version": 1, "time": TIME, "seq": 4, "payload": admitted(3)[1]},
    ]
    notes = tuple(note for place, fields in enumerate(made) if (note := read_note(fields, place)))
    steps = tuple(step for place, fields in enumerate(made) if (step := read_step(fields, place)))
    fold.join(notes, steps)
    shown, findings = fold.finish(Keyring())
    assert (shown.approved, findings) == (1, ())
