"""What a verified record says of itself: tiers, trust, completeness, governance, findings, and what is left open."""

from typing import Any

import pytest

from affidavit.crypto import (
    Checkpoint,
    FailureCode,
    Keyring,
    ProducerError,
    Tier,
    Trust,
    VerificationError,
    encode_record,
    sign_checkpoint,
    verify_events,
    verify_record,
)
from affidavit.crypto.cbor_heads import write_bytes
from affidavit.crypto.checkpoint import assemble_checkpoint, signing_input
from affidavit.crypto.findings import Finding, FindingKind
from affidavit.crypto.record import RULES, SIGNATURE, WENT_ON, WHOSE_KEY, record_head, record_tail
from tests.crypto.samples import (
    KEY,
    KID,
    STREAM,
    TIME,
    checkpoint,
    code_of,
    event,
    events,
    keyring,
    sealed,
    steps,
    tree,
)

START, END = ("dispatch.start", {"call": 1}), ("dispatch.end", {"call": 1})
BROKEN_RULES = steps(END)


def findings_of(data: bytes, ring: Keyring | None = None) -> dict[FindingKind, Finding]:
    """The findings of a record that verifies, by kind."""
    return {finding.kind: finding for finding in verify_record(data, ring or keyring()).findings}


def test_a_verified_record_gives_back_what_was_sealed() -> None:
    """Events byte for byte, the signed size, root and origin, the key id, and full trust."""
    carried = events(4)
    found = verify_record(sealed(carried), keyring())
    assert found.events == tuple(carried)
    assert found.checkpoint == Checkpoint(STREAM, 4, tree(carried).root())
    assert (found.kid, found.trust, found.tier) == (KID, Trust.KEYRING, Tier.L4)
    assert (found.chain.first_seq, found.chain.last_seq, found.chain.last_time) == (1, 4, TIME + 4)
    assert found.findings == ()
    assert WENT_ON in found.not_checked
    assert not {SIGNATURE, WHOSE_KEY, RULES} & set(found.not_checked)


@pytest.mark.parametrize(
    ("tier", "reached", "code"),
    [
        (Tier.L1, Tier.L1, None),
        (Tier.L2, Tier.L2, None),
        (Tier.L3, Tier.L2, None),
        (Tier.L4, Tier.L4, FailureCode.GOV_UNADMITTED_ACTION),
    ],
)
def test_a_tier_stops_there_and_says_so(tier: Tier, reached: Tier, code: FailureCode | None) -> None:
    """Rules broken at L4 do not matter below it, and the result then says that they were not checked."""
    assert code_of(verify_record, BROKEN_RULES, keyring(), tier=tier) == code
    if code is None:
        found = verify_record(BROKEN_RULES, keyring(), tier=tier)
        assert found.tier == reached
        assert found.governance is None
        assert RULES in found.not_checked


@pytest.mark.parametrize("tier", [Tier.L2, Tier.L3])
def test_from_l2_on_the_signature_and_the_root_count(tier: Tier) -> None:
    """A bad signature, a wrong size and a wrong root are refused, and what is signed is handed on."""
    carried = events(3)
    signed = checkpoint(tree(carried))
    broken = signed[:-1] + bytes((signed[-1] ^ 1,))
    for data, code in (
        (encode_record(carried, broken), FailureCode.SIGN_SIGNATURE_INVALID),
        (encode_record(carried[:2], signed), FailureCode.RECORD_SIZE_MISMATCH),
        (encode_record([*carried[:2], event(9)], signed), FailureCode.RECORD_ROOT_MISMATCH),
    ):
        assert code_of(verify_record, data, keyring(), tier=tier) == code
    found = verify_record(encode_record(carried, signed), keyring(), tier=tier)
    assert found.checkpoint is not None
    assert (found.checkpoint.size, found.kid, found.trust) == (3, KID, Trust.KEYRING)


def test_structure_alone_vouches_for_nothing() -> None:
    """At L1 the signature is not looked at, and nothing that it covers is passed on as fact."""
    unsigned = encode_record(events(2), b"no checkpoint at all")
    assert code_of(verify_record, unsigned, keyring()) == FailureCode.SIGN_SIGNATURE_INVALID
    found = verify_record(unsigned, Keyring(), tier=Tier.L1)
    assert (found.checkpoint, found.kid, found.trust) == (None, None, Trust.NONE)
    assert SIGNATURE in found.not_checked


def test_a_self_certified_record_says_so() -> None:
    """A key id that spells out its key earns trust `self`, and whose key it is stays open."""
    data = sealed(events(2), kid=KEY.public.did_key.encode())
    found = verify_record(data, Keyring())
    assert found.trust is Trust.SELF
    assert WHOSE_KEY in found.not_checked
    assert verify_record(data, Keyring({KEY.public.did_key.encode(): KEY.public})).trust is Trust.KEYRING


def test_checks_come_in_the_order_of_the_format() -> None:
    """Container, signature, emptiness, size, events, root, rules: the first fault in that order is named."""
    carried = events(3)
    signed = checkpoint(tree(carried))
    bad_event, bad_rules = b"\xa0", event(9, "dispatch.end", {"call": 1})
    bad_signature = signed[:-1] + bytes((signed[-1] ^ 1,))
    empty = b"\xa2\x66events\x80\x6acheckpoint"
    ladder: list[tuple[bytes, str]] = [
        (encode_record([bad_event], bad_signature) + b"\x00", "record.decode"),
        (empty + write_bytes(bad_signature), "sign.signature_invalid"),
        (empty + write_bytes(signed), "record.empty"),
        (encode_record([bad_event], signed), "record.size_mismatch"),
        (encode_record([carried[0], bad_event, bad_rules], signed), "enc.non_canonical_cbor"),
        (encode_record([carried[0], carried[0], bad_rules], signed), "chain.non_monotonic_seq"),
        (encode_record([carried[0], carried[1], bad_rules], signed), "record.root_mismatch"),
        (sealed([carried[0], carried[1], bad_rules]), "gov.unadmitted_action"),
    ]
    assert [code_of(verify_record, data, keyring()) for data, _ in ladder] == [code for _, code in ladder]


def test_an_error_carries_its_evidence() -> None:
    """Index, expected and actual value come with the code."""
    carried = events(3)
    with pytest.raises(VerificationError) as refusal:
        verify_record(sealed([carried[0], carried[2], carried[1]]), keyring())
    assert (refusal.value.index, refusal.value.actual) == (2, 2)
    assert str(refusal.value) == "chain.non_monotonic_seq: event 3: seq 2 follows 3"
    with pytest.raises(VerificationError) as refusal:
        verify_record(encode_record(carried[:2], checkpoint(tree(carried))), keyring())
    assert (refusal.value.expected, refusal.value.actual) == (3, 2)


@pytest.mark.parametrize(
    ("kinds", "complete"),
    [
        (["session.started", "session.converged"], True),
        (["session.started", "session.stalled"], True),
        (
            ["session.started", "session.converged", "spine.record", "record.verified", "record.rejected"],
            True,
        ),
        (["session.started", "tool.call"], False),
        (["session.started", "session.converged", "user.message"], False),
        (["session.started", "session.converged", "user.message", "session.stalled", "spine.record"], True),
        (["session.started", "spine.record"], False),
        (["action.dispatched"], None),
        (["spine.record"], None),
    ],
)
def test_completeness_is_told_from_the_last_event_about_the_run(
    kinds: list[str], complete: bool | None
) -> None:
    """Terminal last: complete. Anything else last: incomplete. No word of ours: unknown."""
    assert verify_record(steps(*((kind, {}) for kind in kinds)), keyring()).complete is complete


def test_governance_is_counted() -> None:
    """Admissions, ends, refusals, interruptions and claimed successes."""
    data = steps(
        START,
        ("dispatch.start", {"call": 2}),
        ("dispatch.end", {"call": 2, "error_class": "interrupted"}),
        ("dispatch.rejected", {"call": 3}),
        END,
        ("check.recorded", {"check": 1, "passed": True}),
        ("outcome.recorded", {"result": "success", "check": 1}),
        ("outcome.recorded", {"result": "failure"}),
    )
    found = verify_record(data, keyring()).governance
    assert found is not None
    counts = (found.admitted, found.completed, found.refused, found.interrupted, found.outcomes_claimed)
    assert counts == (2, 2, 1, 1, 1)
    assert found.not_judged == 0


@pytest.mark.parametrize(
    ("data", "kind", "seqs"),
    [
        (steps(START, END, END), FindingKind.REPEATED_END, (3,)),
        (steps(START), FindingKind.OPEN_CALL, (1,)),
        (
            steps(
                ("check.recorded", {"check": 1, "passed": False}),
                ("check.recorded", {"check": 1, "passed": True}),
            ),
            FindingKind.CONTRADICTING_CHECKS,
            (2,),
        ),
        (sealed([event(1, "dispatch.end", schema_version=2)]), FindingKind.NOT_JUDGED, (1,)),
        (sealed(events(5)[2:]), FindingKind.SEQ_GAP, (3,)),
        (sealed(events(1), origin="run/elsewhere"), FindingKind.ORIGIN_DIFFERS, ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_odd_but_allowed_is_reported(data: bytes, kind: FindingKind, seqs: tuple[int, ...]) -> None:
    """Each is accepted and named, with where it is."""
    found = findings_of(data)
    assert set(found) == {kind}
    assert (found[kind].count, found[kind].seqs) == (1, seqs)


def test_steps_without_a_number_are_inert() -> None:
    """A start, a refusal or a check that names no integer admits, refuses and passes nothing."""
    for strange in (
        {},
        {"call": "1", "check": "1"},
        {"call": True, "check": True},
        {"call": None, "check": None},
    ):
        kinds = ("dispatch.start", "dispatch.rejected", "check.recorded", "outcome.recorded")
        found = verify_record(
            steps(*((kind, {**strange, "passed": True}) for kind in kinds)), keyring()
        ).governance
        assert found is not None
        assert (found.admitted, found.refused, found.outcomes_claimed, found.findings) == (0, 0, 0, ())
        success = ("outcome.recorded", {"result": "success", **strange})
        data = steps(("check.recorded", {**strange, "passed": True}), success)
        assert code_of(verify_record, data, keyring()) == FailureCode.SHALLOW_NO_GROUND_TRUTH


def test_findings_are_counted_and_never_flood() -> None:
    """A thousand of one kind are one finding with the first hundred places, each with its call."""
    found = findings_of(steps(*[("dispatch.start", {"call": call}) for call in range(1000)]))
    assert found[FindingKind.OPEN_CALL].count == 1000
    assert found[FindingKind.OPEN_CALL].seqs == tuple(range(1, 101))
    assert found[FindingKind.OPEN_CALL].ids == tuple(range(100))


@pytest.mark.parametrize(
    ("window", "kinds"),
    [
        ({"valid_from": TIME + 3, "valid_until": TIME + 3}, set()),
        ({"valid_from": TIME + 4}, {FindingKind.KEY_NOT_YET_VALID}),
        ({"valid_until": TIME + 2}, {FindingKind.KEY_NO_LONGER_VALID}),
    ],
)
def test_validity_is_compared_with_the_last_claimed_time(
    window: dict[str, Any], kinds: set[FindingKind]
) -> None:
    """A time outside a key's validity is reported, since the time is only claimed."""
    ring = Keyring()
    ring.add(KID, KEY.public, **window)
    assert set(findings_of(sealed(events(3)), ring)) == kinds


def test_nothing_cannot_be_sealed() -> None:
    """A record without events is refused by the producer and by the verifier."""
    with pytest.raises(ProducerError) as refusal:
        encode_record([], checkpoint(tree([])))
    assert refusal.value.code is FailureCode.RECORD_EMPTY
    assert code_of(verify_events, []) == FailureCode.CHAIN_EMPTY


def test_a_streamed_record_is_the_same_bytes() -> None:
    """Head, events and tail written one by one give the record that is encoded at once."""
    for count in (1, 23, 24, 300):
        carried = events(count)
        signed = checkpoint(tree(carried))
        parts = [record_head(count), *map(write_bytes, carried), record_tail(signed)]
        assert b"".join(parts) == encode_record(carried, signed)


def test_a_signature_made_elsewhere_gives_the_same_checkpoint() -> None:
    """A signer that has to wait is given the bytes to sign, and its signature is put in afterwards."""
    head = Checkpoint(STREAM, 2, tree(events(2)).root())
    signature = KEY.sign(signing_input(head, kid=KID))
    assert assemble_checkpoint(head, kid=KID, signature=signature) == sign_checkpoint(
        head, kid=KID, sign=KEY.sign
    )


def test_a_checkpoint_that_cannot_be_signed_is_refused() -> None:
    """An empty key id, a short signature, a signer that fails, and a root of another length."""

    def failing(_: bytes) -> bytes:
        raise OSError("the token was pulled out")

    head = Checkpoint(STREAM, 1, bytes(32))
    cases: list[tuple[Checkpoint, bytes, Any, FailureCode]] = [
        (head, b"", KEY.sign, FailureCode.SIGN_EMPTY_KEY_ID),
        (head, KID, lambda _: bytes(63), FailureCode.SIGN_SIGN_FAILED),
        (head, KID, failing, FailureCode.SIGN_SIGN_FAILED),
        (Checkpoint(STREAM, 1, bytes(31)), KID, KEY.sign, FailureCode.ENC_ENCODE),
        (Checkpoint(STREAM, -1, bytes(32)), KID, KEY.sign, FailureCode.ENC_ENCODE),
    ]
    for checkpoint_, kid, sign, code in cases:
        with pytest.raises(ProducerError) as refusal:
            sign_checkpoint(checkpoint_, kid=kid, sign=sign)
        assert refusal.value.code is code
    with pytest.raises(ProducerError):
        signing_input(head, kid=b"")
