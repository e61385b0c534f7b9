"""The numbered decisions of the record format, where the draft is open: each held by name.

The vectors named here are this project's own; their verdicts are checked with all others, and here it is held
that each decision has some, with the verdict that the decision gives. What no vector can show has a test.
"""

import pytest

from affidavit.crypto import FailureCode, Keyring, ProducerError, SigningKey, VerifyingKey, verify_record
from affidavit.crypto.findings import FindingKind
from tests.crypto.samples import KEY, KID, code_of, event, events, keyring, sealed, steps
from tests.crypto.test_own_vectors import MANIFEST

VERDICTS = {vector["id"]: vector.get("failure_code") for vector in MANIFEST["vectors"]}


def holds(code: str | None, *names: str) -> None:
    """Check that these vectors exist and have this verdict."""
    assert {name: VERDICTS[name] for name in names} == dict.fromkeys(names, code)


def test_decision_1_keys_stand_shorter_first() -> None:
    """Key order is bytewise on the encoded key."""
    assert event(1)[1:5] == b"\x63seq"
    holds("enc.non_canonical_cbor", "events.keys_unsorted", "run.event_unsorted")


def test_decision_2_ranges_and_types() -> None:
    """Seq from 1, time required and within 64 bits, and `enc.decode` for every other stranger."""
    holds("chain.non_monotonic_seq", "events.seq_zero")
    holds("enc.non_canonical_cbor", "events.time_absent")
    holds("enc.time_out_of_range", "events.time_beyond_int64", "events.time_below_int64")
    holds("enc.decode", "events.seq_beyond_int64", "events.int_above", "events.int_below", "events.tag_date")
    holds("enc.decode", "events.tag_bignum", "events.undefined", "events.simple_value", "events.key_int")


def test_decision_3_floats() -> None:
    """Never made; read in the shortest form and reported; `call` and `check` as integers, `passed` as true alone."""
    holds(None, "events.float_shortest", "run.event_float", "rules.call_float")
    holds("enc.non_canonical_cbor", "events.float_long")
    holds("shallow.no_ground_truth", "rules.check_one")
    floating = event(1).replace(b"\x67payload\xa0", b"\x67payload\xa1\x61a\xf9\x3e\x00")
    found = verify_record(sealed([floating]), keyring()).findings
    assert [finding.kind for finding in found] == [FindingKind.FLOAT]


def test_decision_4_the_cose_profile() -> None:
    """Framing faults, the content type and the key id each have their code; a raw key is bound to its id."""
    framing = (
        "untagged",
        "tag_other",
        "tag_long",
        "array_long",
        "array_indefinite",
        "trailing",
        "payload_nil",
    )
    headers = (
        "alg_eddsa",
        "label_extra",
        "label_double",
        "labels_unsorted",
        "label_long",
        "unprotected_full",
    )
    holds("sign.signature_invalid", *(f"checkpoint.{name}" for name in (*framing, *headers)))
    holds("sign.bad_content_type", "checkpoint.content_type_unprotected")
    holds("sign.unknown_key", "checkpoint.kid_absent", "checkpoint.kid_text", "checkpoint.kid_unprotected")
    bound_to_another = Keyring({b"another": KEY.public})
    assert code_of(verify_record, sealed(events(1)), bound_to_another) == FailureCode.SIGN_UNKNOWN_KEY
    bound_to_another.add_any_kid(KEY.public)
    assert code_of(verify_record, sealed(events(1)), bound_to_another) is None


def test_decision_5_containers_of_proofs() -> None:
    """A container that does not decode, one that is not canonical, and a node of another width."""
    holds("record.decode", "event_proof.trailing", "run.events_missing", "run.checkpoint_missing")
    holds("record.non_canonical", "event_proof.extra_field", "event_proof.index_long", "run.fields_swapped")
    holds("merkle.inclusion_invalid", "event_proof.node_narrow")
    holds("merkle.consistency_invalid", "consistency.node_narrow")


def test_decision_6_proofs_are_as_strict_as_records() -> None:
    """The event of a proof is checked like one of a record; equal trees hold; nothing, less or another fails."""
    holds("enc.trailing_bytes", "event_proof.event_trailing")
    holds(None, "consistency.same", "consistency.ragged")
    holds(
        "merkle.consistency_invalid",
        *("consistency.from_empty", "consistency.shrinking", "consistency.origins", "consistency.fork"),
        "consistency.same_with_path",
    )


def test_decision_7_origin_and_the_empty_tree() -> None:
    """Origin and stream may differ and both are said; no events verify alone only with the empty root."""
    holds(None, "run.origin_other", "checkpoint.size_0_empty_root")
    holds("record.root_mismatch", "checkpoint.size_0_other_root")
    finding = verify_record(sealed(events(1), origin="elsewhere"), keyring()).findings[0]
    assert "'elsewhere'" in finding.detail
    assert "'run/sample'" in finding.detail


def test_decision_8_doubtful_calls_and_checks() -> None:
    """Two ends, and a check that failed and passed, are reported; refused and ended without a start is unadmitted."""
    holds(None, "rules.ends_two", "rules.check_contradicted", "rules.start_without_call")
    holds("gov.unadmitted_action", "rules.rejected_unadmitted", "rules.end_first", "rules.end_without_call")
    holds("gov.admission_denied_but_executed", "rules.rejected_later")


def test_decision_9_depth_and_sizes() -> None:
    """64 levels by default, more on demand, and lengths bounded by the bytes present."""
    holds(None, "events.depth_64")
    holds("enc.decode", "events.depth_65", "events.length_huge", "events.count_huge")
    deep = event(1).replace(b"\x67payload\xa0", b"\x67payload\xa1\x61a" + b"\x81" * 200 + b"\x80")
    data = sealed([deep])
    assert code_of(verify_record, data, keyring()) == FailureCode.ENC_DECODE
    assert code_of(verify_record, data, keyring(), max_depth=300) is None


def test_decision_10_unsound_keys() -> None:
    """A key of small order, and a second spelling, are refused before they reach a keyring."""
    for raw in (bytes(32), (2**255 - 19 + 1).to_bytes(32, "little")):
        with pytest.raises(ProducerError) as refusal:
            VerifyingKey.from_raw(raw)
        assert refusal.value.code is FailureCode.SIGN_BAD_KEY


def test_decision_11_unknown_schema_versions() -> None:
    """Structure ignores the version; the rules leave such events out and say how many."""
    holds(None, "events.schema_version_unknown", "rules.version_unknown")
    found = verify_record(sealed([event(1, "dispatch.end", {"call": 1}, schema_version=9)]), keyring())
    assert found.governance is not None
    assert found.governance.not_judged == 1
    assert [finding.kind for finding in found.findings] == [FindingKind.NOT_JUDGED]


def test_an_event_that_is_not_judged_admits_nothing() -> None:
    """A start of an unknown version does not stand in for an admission."""
    carried = [
        event(1, "dispatch.start", {"call": 1}, schema_version=9),
        event(2, "dispatch.end", {"call": 1}),
    ]
    assert code_of(verify_record, sealed(carried), keyring()) == FailureCode.GOV_UNADMITTED_ACTION


def test_decision_12_validity_is_reported_and_revocation_refuses() -> None:
    """Outside its validity a key's record is reported; under a revoked key it is refused."""
    ring = Keyring()
    ring.add(KID, KEY.public, valid_until=0)
    assert [finding.kind for finding in verify_record(steps(("note", {})), ring).findings] == [
        FindingKind.KEY_NO_LONGER_VALID
    ]
    revoked = Keyring()
    revoked.add(KID, KEY.public, revoked="lost")
    assert code_of(verify_record, steps(("note", {})), revoked) == FailureCode.SIGN_UNKNOWN_KEY


def test_keys_rotate() -> None:
    """Records of an earlier key verify while it is in the keyring, beside those of the next."""
    ring = keyring()
    ring.add(b"next", SigningKey.from_seed(bytes(32)).public)
    assert code_of(verify_record, sealed(events(2)), ring) is None
