"""Records beside provetrail 0.3.0, the published verifier of this format: signature, size and root (L2).

It accepts what we make, and on records of its tier its verdict and code are ours. Each place where it is laxer
than the text is a test of its own, which also shows that we refuse.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import provetrail
import pytest

from affidavit.crypto import Keyring, ProducerError, VerifyingKey, encode_record, parse_keyring, verify_record
from affidavit.crypto.record import record_tail
from tests.crypto.samples import KEY, KID, checkpoint, code_of, events, keyring, sealed, tree
from tests.crypto.test_tampering import CARRIED, CHECKPOINT, RECORD, flips
from tests.environment import ROOT, shared_dir

RECORD_KINDS = {"run", "governance", "ground_truth"}
OWN = ROOT / "tests" / "vectors"


def peer_says(data: bytes, keys: dict[str, bytes] | bytes | None = None) -> str:
    """What the published client says: accepted, a code, or the exception that it let out."""
    try:
        provetrail.verify_run(data, {KID.decode(): KEY.public.raw} if keys is None else keys)
    except provetrail.VerifyError as error:
        return str(error.code)
    except Exception as error:
        return type(error).__name__
    return "accepted"


@cache
def said_of_flips() -> list[tuple[bytes, str]]:
    """The sample record with each of its bits changed in turn, and what the peer says of each."""
    return [(data, peer_says(data)) for data in flips(RECORD)]


def manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of vectors."""
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return found


def differences(folder: Path) -> dict[str, str]:
    """The record vectors on which the peer's answer is not the manifest's, with what the peer says."""
    content = manifest(folder)
    keys = {key["key_id"]: bytes.fromhex(key["public_key_hex"]) for key in content["keyring"]}
    found = {}
    for vector in content["vectors"]:
        if vector["kind"] in RECORD_KINDS:
            said = peer_says((folder / vector["artifact"]).read_bytes(), keys)
            if said != vector.get("failure_code", "accepted"):
                found[vector["id"]] = said
    return found


def tier_of(folder: Path) -> dict[str, str]:
    """The tier of each vector."""
    return {vector["id"]: vector["tier"] for vector in manifest(folder)["vectors"]}


def wrapped() -> dict[str, tuple[str, str]]:
    """Our checkpoint vectors in records of five events: what we say of each, and what the peer says."""
    content = manifest(OWN)
    keys = {key["key_id"]: bytes.fromhex(key["public_key_hex"]) for key in content["keyring"]}
    ours = parse_keyring((OWN / "manifest.json").read_bytes())
    found = {}
    for vector in content["vectors"]:
        if vector["kind"] == "checkpoint":
            # Its signed root is over other events; a difference in the checkpoint is told before that.
            record = encode_record(events(5), (OWN / vector["artifact"]).read_bytes())
            said = (str(code_of(verify_record, record, ours) or "accepted"), peer_says(record, keys))
            found[vector["id"].removeprefix("checkpoint.")] = said
    return found


@pytest.mark.parametrize("count", [*range(1, 20), 255, 256, 257])
def test_it_accepts_what_we_make(count: int) -> None:
    """An independent verifier gives back our events, at sizes around each change of the tree and of the heads."""
    carried = events(count)
    assert provetrail.verify_run(sealed(carried), KEY.public.raw).events == carried
    assert provetrail.verify_run(sealed(carried), {KID.decode(): KEY.public.raw}).events == carried


def test_its_verdict_and_code_on_the_published_records_are_ours_within_its_tier() -> None:
    """It differs on the vectors of L4 alone, which it does not judge, and lets all of those pass."""
    folder = shared_dir("vectors", "provetrail", "crypto")
    found, tiers = differences(folder), tier_of(folder)
    assert {tiers[name] for name in found} == {"L4"}
    assert set(found.values()) == {"accepted"}


def test_its_verdict_and_code_on_our_records_are_ours_within_its_tier() -> None:
    """It differs only where an event or a rule is at fault, which it does not judge, and lets all of those pass."""
    found, tiers = differences(OWN), tier_of(OWN)
    assert {tiers[name] for name in found} == {"L1", "L4"}
    assert set(found.values()) == {"accepted"}


def test_it_agrees_on_every_cut_and_on_changed_events() -> None:
    """The same code for a record cut at any byte, and for any bit of any event."""
    for end in range(len(RECORD)):
        assert peer_says(RECORD[:end]) == code_of(verify_record, RECORD[:end], keyring()) == "record.decode"
    for data in CARRIED:
        start = RECORD.index(data)
        for changed, said in said_of_flips():
            if changed[start : start + len(data)] != data:
                assert said == "record.root_mismatch"
                assert code_of(verify_record, changed, keyring()) is not None


def test_it_misses_flips_of_the_unprotected_header() -> None:
    """It accepts an array, a negative number or a simple value where the empty header stands.

    Nothing signs the unprotected header, so only its form can be checked. We refuse every flip of it.
    """
    place = RECORD.index(CHECKPOINT) + CHECKPOINT.index(b"\xa0")
    missed = [data for data, said in said_of_flips() if said == "accepted"]
    assert RECORD[place] == 0xA0
    assert {data[place] for data in missed} == {0x80, 0xE0, 0x20}
    assert all(data[:place] == RECORD[:place] for data in missed)
    assert all(code_of(verify_record, data, keyring()) is not None for data in missed)


def test_it_lets_other_errors_out_where_the_framing_is_broken() -> None:
    """A TypeError or ValueError for some flips of the message's three string heads, which carry no code."""
    answers = {said for _, said in said_of_flips()}
    assert {answer for answer in answers if "." not in answer} == {"accepted", "TypeError", "ValueError"}


def test_it_lets_a_type_error_out_for_a_payload_that_is_not_bytes() -> None:
    """A payload that is a text or a map."""
    found = wrapped()
    for name in ("payload_text", "payload_map"):
        assert found[name] == ("sign.signature_invalid", "TypeError")


def test_it_is_laxer_about_the_framing_of_a_checkpoint() -> None:
    """Longer heads, an indefinite array, and bytes after the message go on to the next check."""
    past_the_checkpoint = ("sign.signature_invalid", "record.root_mismatch")
    found = wrapped()
    for name in ("tag_long", "array_long", "array_indefinite", "trailing"):
        assert found[name] == past_the_checkpoint


def test_it_is_laxer_about_the_headers_of_a_checkpoint() -> None:
    """Further, doubled, unsorted and long labels, and an unprotected header that holds something, likewise."""
    past_the_checkpoint = ("sign.signature_invalid", "record.root_mismatch")
    found = wrapped()
    for name in (
        *("label_extra", "label_double", "labels_unsorted", "label_long"),
        *("unprotected_full", "unprotected_array"),
    ):
        assert found[name] == past_the_checkpoint


def test_it_is_laxer_about_checkpoints_nowhere_else() -> None:
    """On every other checkpoint of our vectors the two codes are one."""
    named = {
        *("tag_long", "array_long", "array_indefinite", "trailing", "payload_text", "payload_map"),
        *("label_extra", "label_double", "labels_unsorted", "label_long"),
        *("unprotected_full", "unprotected_array"),
    }
    assert {name for name, (ours, theirs) in wrapped().items() if ours != theirs} == named


def test_it_looks_at_no_event() -> None:
    """Repeated, foreign and malformed events pass if they were sealed so."""
    for carried in ([CARRIED[0], CARRIED[0]], [CARRIED[1], CARRIED[0]], [b"\xa0"], [CARRIED[0] + b"\x00"]):
        data = sealed(carried)
        assert peer_says(data) == "accepted"
        assert code_of(verify_record, data, keyring()) is not None


def test_it_finds_a_key_for_a_key_id_that_is_no_text() -> None:
    """It reads every byte that is not UTF-8 as one replacement character; we compare the bytes."""
    record = sealed(CARRIED, kid=b"\xfe")
    assert peer_says(record, {"\ufffd": KEY.public.raw}) == "accepted"
    assert code_of(verify_record, record, Keyring({"\ufffd".encode(): KEY.public})) == "sign.unknown_key"


def test_it_takes_a_lone_key_for_every_key_id() -> None:
    """We do so only where it is asked for."""
    assert peer_says(sealed(CARRIED, kid=b"whoever"), KEY.public.raw) == "accepted"
    assert code_of(verify_record, sealed(CARRIED, kid=b"whoever"), keyring()) == "sign.unknown_key"


def test_it_takes_a_key_of_small_order() -> None:
    """Under such a key one signature holds for any message, so anyone can seal anything; we refuse to load it."""
    identity = b"\x01" + bytes(31)
    forged = encode_record(CARRIED, CHECKPOINT[:-64] + identity + bytes(32))
    assert peer_says(forged, identity) == "accepted"
    with pytest.raises(ProducerError):
        VerifyingKey.from_raw(identity)


def test_it_looks_for_events_before_it_looks_at_the_signature() -> None:
    """Of a record with neither, it names the lack of events; the text puts the signature first, and so do we."""
    empty = b"\xa2\x66events\x80" + record_tail(checkpoint(tree([]))[:-1] + b"\x00")
    assert peer_says(empty) == "record.empty"
    assert code_of(verify_record, empty, keyring()) == "sign.signature_invalid"
