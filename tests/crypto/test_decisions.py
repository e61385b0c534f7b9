"""The numbered decisions of the record format, where the draft is open: each held by name.

The vectors named here are this project's own; their verdicts are checked with all others, and here it is held
that each decision has some, with the verdict that the decision gives. What no vector can show has a test.
"""

import json
from typing import Any

import cbor2
import pytest

from affidavit.crypto import (
    FailureCode,
    Keyring,
    ProducerError,
    SigningKey,
    VerificationError,
    VerifyingKey,
    encode_event_proof,
    parse_keyring,
    verify_checkpoint,
    verify_event_proof,
    verify_record,
)
from affidavit.crypto.findings import FindingKind
from tests.crypto.samples import (
    KEY,
    KID,
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
from tests.crypto.test_own_vectors import MANIFEST

VERDICTS = {vector["id"]: vector.get("failure_code") for vector in MANIFEST["vectors"]}


def holds(code: str | None, *names: str) -> None:
    """Check that these vectors exist and have this verdict."""
    assert {name: VERDICTS[name] for name in names} == dict.fromkeys(names, code)


def kinds(data: bytes, ring: Keyring | None = None) -> list[FindingKind]:
    """The kinds of finding in a record that verifies."""
    return [finding.kind for finding in verify_record(data, ring or keyring()).findings]


def refusal(make: Any, *arguments: Any, **options: Any) -> FailureCode:
    """The code with which a producer refuses."""
    with pytest.raises(ProducerError) as refused:
        make(*arguments, **options)
    return refused.value.code


def test_decision_1_keys_stand_shorter_first() -> None:
    """Key order is bytewise on the encoded key, in the envelope with its optional keys between, and in payloads."""
    optional = dict.fromkeys(("span_id", "trace_id", "principal", "causation_id", "origin_instance_id"), "x")
    whole = cbor2.loads(event(1, payload={"b": 1, "aa": 2, "a": 3}, **optional))
    required = ["seq", "time", "type", "actor", "stream", "payload", "schema_version"]
    assert list(cbor2.loads(event(1))) == required
    assert list(whole) == [
        *(*required[:6], "span_id", "trace_id", "principal", "causation_id"),
        *("schema_version", "origin_instance_id"),
    ]
    assert list(whole["payload"]) == ["a", "b", "aa"]
    holds("enc.non_canonical_cbor", "events.keys_unsorted", "run.event_unsorted")


def test_decision_2_ranges_and_types() -> None:
    """Seq from 1, time required and within 64 bits, and `enc.decode` for every other stranger."""
    holds("chain.non_monotonic_seq", "events.seq_zero")
    holds("enc.non_canonical_cbor", "events.time_absent")
    holds("enc.time_out_of_range", "events.time_beyond_int64", "events.time_below_int64")
    holds("enc.decode", "events.seq_beyond_int64", "events.int_above", "events.int_below", "events.tag_date")
    holds("enc.decode", "events.tag_bignum", "events.undefined", "events.simple_value", "events.key_int")
    holds("enc.decode", "events.key_bytes", "events.type_number", "events.array")
    assert refusal(event, 0) == "chain.non_monotonic_seq"
    for time in (-1 << 63, -1, 0, (1 << 63) - 1):
        assert kinds(sealed([event(1, time=time)])) == []


def test_decision_3_floats() -> None:
    """Never made; read in the shortest form and reported; `call` and `check` as integers, `passed` as true alone."""
    assert refusal(event, 1, payload={"a": 1.5}) == "enc.encode"
    holds(None, "events.float_shortest", "run.event_float", "rules.call_float", "rules.check_float")
    holds("gov.unadmitted_action", "rules.call_fraction")
    holds("enc.non_canonical_cbor", "events.float_long")
    holds("shallow.no_ground_truth", "rules.check_one")
    floating = event(1).replace(b"\x67payload\xa0", b"\x67payload\xa1\x61a\xf9\x3e\x00")
    assert kinds(sealed([floating])) == [FindingKind.FLOAT]


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
        "payload_map",
        "payload_text",
        "signature_short",
    )
    headers = (
        "alg_eddsa",
        "label_extra",
        "label_double",
        "labels_unsorted",
        "label_long",
        "unprotected_full",
        "unprotected_array",
        "alg_absent",
    )
    holds("sign.signature_invalid", *(f"checkpoint.{name}" for name in (*framing, *headers)))
    for name in ("unprotected", "absent", "other"):
        holds("sign.bad_content_type", f"checkpoint.content_type_{name}")
    holds("sign.unknown_key", "checkpoint.kid_absent", "checkpoint.kid_text", "checkpoint.kid_unprotected")
    bound_to_another = Keyring({b"another": KEY.public})
    assert code_of(verify_record, sealed(events(1)), bound_to_another) == FailureCode.SIGN_UNKNOWN_KEY
    bound_to_another.add_any_kid(KEY.public)
    assert code_of(verify_record, sealed(events(1)), bound_to_another) is None


def test_decision_5_containers_of_proofs() -> None:
    """A container that does not decode, one that is not canonical, and a node of another width."""
    holds("record.decode", "event_proof.trailing", "run.events_missing", "run.checkpoint_missing")
    holds("record.decode", "event_proof.field_missing", "consistency.field_missing", "consistency.trailing")
    holds("record.non_canonical", "event_proof.extra_field", "event_proof.index_long", "run.fields_swapped")
    holds("record.non_canonical", "consistency.extra_field")
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
    start, end = ("dispatch.start", {"call": 1}), ("dispatch.end", {"call": 1})
    assert kinds(steps(start, end, end)) == [FindingKind.REPEATED_END]
    failed, passed = (("check.recorded", {"check": 1, "passed": truth}) for truth in (False, True))
    success = ("outcome.recorded", {"result": "success", "check": 1})
    assert kinds(steps(failed, success, passed)) == [FindingKind.CONTRADICTING_CHECKS]


def test_decision_9_depth_and_sizes() -> None:
    """64 levels by default, more on demand, and lengths bounded by the bytes present."""
    holds(None, "events.depth_64")
    holds("enc.decode", "events.depth_65", "events.length_huge", "events.count_huge")
    deep = event(1).replace(b"\x67payload\xa0", b"\x67payload\xa1\x61a" + b"\x81" * 5000 + b"\x80")
    data = sealed([deep])
    assert code_of(verify_record, data, keyring()) == FailureCode.ENC_DECODE
    # Far beyond the interpreter's own limit of recursion.
    assert code_of(verify_record, data, keyring(), max_depth=6000) is None


# The encodings of small order that other libraries list as well, before their sign bits.
SMALL_ORDER = (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
)
# A second spelling of a point: the same y, plus the prime.
NOT_CANONICAL = tuple((2**255 - 19 + y).to_bytes(32, "little").hex() for y in (0, 1, 3, 18))


@pytest.mark.parametrize("text", SMALL_ORDER + NOT_CANONICAL)
@pytest.mark.parametrize("sign", [0, 0x80])
def test_decision_10_unsound_keys(text: str, sign: int) -> None:
    """A key of small order, and a second spelling, are refused when a keyring is loaded, and by themselves."""
    raw = bytes.fromhex(text)
    raw = raw[:31] + bytes((raw[31] | sign,))
    assert refusal(VerifyingKey.from_raw, raw) == "sign.bad_key"
    entry = {"key_id": "one", "public_key_hex": raw.hex()}
    assert refusal(parse_keyring, json.dumps({"keyring": [entry]}).encode()) == "sign.bad_key"


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


def test_decision_11_proofs_ignore_the_version_too() -> None:
    """A single event of an unknown version is proved like any other."""
    one = event(1, schema_version=9)
    proof = encode_event_proof(1, 0, one, [], checkpoint(tree([one])))
    assert verify_event_proof(proof, keyring()).envelope.schema_version == 9


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({"valid_until": TIME + 1}, [FindingKind.KEY_NO_LONGER_VALID]),
        ({"valid_until": TIME + 2}, []),
        ({"valid_from": TIME + 2}, []),
        ({"valid_from": TIME + 3}, [FindingKind.KEY_NOT_YET_VALID]),
        ({"valid_from": TIME + 2, "valid_until": TIME + 2}, []),
    ],
)
def test_decision_12_validity_is_compared_with_the_last_claimed_time(
    bounds: dict[str, int], found: list[FindingKind]
) -> None:
    """Outside its validity a key's record is accepted and reported, as claimed; both bounds are within it."""
    ring = Keyring()
    ring.add(KID, KEY.public, valid_from=bounds.get("valid_from"), valid_until=bounds.get("valid_until"))
    record = verify_record(sealed(events(2)), ring)
    assert record.chain.last_time == TIME + 2
    assert [finding.kind for finding in record.findings] == found
    assert all("claims" in finding.detail for finding in record.findings)


def test_decision_12_an_event_proof_tells_no_more_than_its_event() -> None:
    """An event later than its key's validity is reported; an earlier one is not, since the signature came after it."""
    one = event(1)
    proof = encode_event_proof(1, 0, one, [], checkpoint(tree([one])))
    for bounds, found in (
        ({"valid_until": TIME}, [FindingKind.KEY_NO_LONGER_VALID]),
        ({"valid_until": TIME + 1}, []),
        ({"valid_from": TIME + 2}, []),
    ):
        ring = Keyring()
        ring.add(KID, KEY.public, valid_from=bounds.get("valid_from"), valid_until=bounds.get("valid_until"))
        findings = verify_event_proof(proof, ring).findings
        assert [finding.kind for finding in findings] == found
        assert all("claims" in finding.detail for finding in findings)


def test_decision_12_revocation_is_absolute() -> None:
    """Under a revoked key nothing verifies, whatever time it claims, and the detail says that and why."""
    file = {"key_id": KID.decode(), "public_key_hex": KEY.public.hex, "revoked": "left on a train"}
    ring = parse_keyring(json.dumps({"keyring": [file]}).encode())
    signed = checkpoint(tree(events(1)))
    proof = encode_event_proof(1, 0, event(1), [], signed)
    for verify, data in (
        (verify_record, sealed([event(1, time=-1)])),
        (verify_checkpoint, signed),
        (verify_event_proof, proof),
        (verify_record, sealed(events(1), kid=KEY.public.did_key.encode())),
    ):
        with pytest.raises(VerificationError, match="revoked: left on a train") as refused:
            verify(data, ring)
        assert refused.value.code is FailureCode.SIGN_UNKNOWN_KEY


def test_keys_rotate() -> None:
    """Records of an earlier key verify while it is in the keyring, beside those of the next."""
    ring = keyring()
    ring.add(b"next", SigningKey.from_seed(bytes(32)).public)
    assert code_of(verify_record, sealed(events(2)), ring) is None
