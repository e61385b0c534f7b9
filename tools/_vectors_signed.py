"""Vectors of checkpoints and records (L2): one fault each, beyond the published suite."""

from collections.abc import Iterator

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.checkpoint import CONTENT_TYPE, Checkpoint, encode_payload
from affidavit.crypto.failures import FailureCode as Code
from affidavit.crypto.hashing import EMPTY_ROOT
from affidavit.crypto.record import encode_record, record_tail
from affidavit.tools._vectors_cases import (
    EVENTS,
    KEY,
    KID,
    ORIGIN,
    SIGNED,
    TREE,
    Case,
    event,
    message,
    payload_of,
    signed,
    signed_tree,
    splice,
    tree_of,
)

_PAYLOAD = encode_payload(Checkpoint(ORIGIN, 5, TREE.root()))
_ALG = b"\x01\x32"
_TYPE = b"\x03" + heads.write_text(CONTENT_TYPE)
_KID = b"\x04" + heads.write_bytes(KID)


def cases() -> Iterator[Case]:
    """Yield the vectors."""
    yield from _framing_cases()
    yield from _header_cases()
    yield from _payload_cases()
    yield from _record_cases()


def _checkpoint(name: str, code: Code | None, description: str, data: bytes) -> Case:
    return Case(f"checkpoint.{name}", "checkpoint", "L2", code, description, (data,))


def _framing_cases() -> Iterator[Case]:
    def bad(name: str, description: str, data: bytes) -> Case:
        return _checkpoint(name, Code.SIGN_SIGNATURE_INVALID, description, data)

    yield bad("untagged", "No tag before the array.", message(_PAYLOAD, opening=b"\x84"))
    yield bad("tag_other", "Tag 98, COSE_Sign, instead of 18.", message(_PAYLOAD, opening=b"\xd8\x62\x84"))
    yield bad("tag_long", "Tag 18 in a longer head.", message(_PAYLOAD, opening=b"\xd8\x12\x84"))
    yield bad("array_long", "The array in a longer head.", message(_PAYLOAD, opening=b"\xd2\x98\x04"))
    yield bad(
        "array_indefinite", "An indefinite array.", message(_PAYLOAD, opening=b"\xd2\x9f", closing=b"\xff")
    )
    yield bad("trailing", "A byte after the message.", message(_PAYLOAD, closing=b"\x00"))
    yield bad("payload_nil", "A detached payload.", message(_PAYLOAD, framed_payload=b"\xf6"))
    yield bad("payload_map", "The payload as a map.", message(_PAYLOAD, framed_payload=_PAYLOAD))
    yield bad("payload_text", "The payload as a text.", message(b"text", framed_payload=b"\x64text"))
    yield bad(
        "unprotected_full",
        "An entry in the unprotected header.",
        message(_PAYLOAD, unprotected=b"\xa1\x05\x41\x00"),
    )
    yield bad("unprotected_array", "An array as unprotected header.", message(_PAYLOAD, unprotected=b"\x80"))
    yield bad(
        "signature_short",
        "A signature of 63 bytes.",
        message(_PAYLOAD, sign=lambda data: KEY.sign(data)[:63]),
    )


def _header_cases() -> Iterator[Case]:
    def header(
        name: str, code: Code, description: str, protected: bytes, unprotected: bytes = b"\xa0"
    ) -> Case:
        data = message(_PAYLOAD, protected=protected, unprotected=unprotected)
        return _checkpoint(name, code, description, data)

    invalid, unknown = Code.SIGN_SIGNATURE_INVALID, Code.SIGN_UNKNOWN_KEY
    yield header("alg_eddsa", invalid, "Algorithm -8 instead of -19.", b"\xa3\x01\x27" + _TYPE + _KID)
    yield header("label_extra", invalid, "A fourth label.", b"\xa4" + _ALG + _TYPE + _KID + b"\x05\x00")
    yield header("label_double", invalid, "The algorithm twice.", b"\xa4" + _ALG + _ALG + _TYPE + _KID)
    yield header("labels_unsorted", invalid, "Labels out of order.", b"\xa3" + _TYPE + _ALG + _KID)
    yield header("label_long", invalid, "A label in a longer head.", b"\xa3\x18" + _ALG + _TYPE + _KID)
    yield header(
        "content_type_unprotected",
        Code.SIGN_BAD_CONTENT_TYPE,
        "The content type outside the signature.",
        b"\xa2" + _ALG + _KID,
        b"\xa1" + _TYPE,
    )
    untyped = Code.SIGN_BAD_CONTENT_TYPE
    yield header("content_type_absent", untyped, "No content type.", b"\xa2" + _ALG + _KID)
    foreign = b"\x03" + heads.write_text("application/cbor")
    yield header("content_type_other", untyped, "Another content type.", b"\xa3" + _ALG + foreign + _KID)
    yield header("alg_absent", invalid, "No algorithm.", b"\xa2" + _TYPE + _KID)
    yield header("kid_absent", unknown, "No key id.", b"\xa2" + _ALG + _TYPE)
    yield header("kid_text", unknown, "The key id as a text.", b"\xa3" + _ALG + _TYPE + b"\x04\x61k")
    yield header("kid_unprotected", unknown, "The key id unsigned.", b"\xa2" + _ALG + _TYPE, b"\xa1" + _KID)


def _payload_cases() -> Iterator[Case]:
    decode = Code.SIGN_CHECKPOINT_DECODE
    yield _checkpoint(
        "size_0_other_root",
        Code.RECORD_ROOT_MISMATCH,
        "No events, and a root of some.",
        signed(0, TREE.root()),
    )
    yield _checkpoint("size_0_empty_root", None, "No events and the empty root.", signed(0, EMPTY_ROOT))
    negative = splice(_PAYLOAD, b"\x64size\x05", b"\x64size\x24")
    yield _checkpoint("size_negative", decode, "A size of -5.", message(negative))
    floating = splice(_PAYLOAD, b"\x64size\x05", b"\x64size\xf9\x45\x00")
    yield _checkpoint("size_float", decode, "A size of 5.0.", message(floating))
    yield _checkpoint(
        "payload_trailing", decode, "A byte after the payload's map.", message(_PAYLOAD + b"\x00")
    )


def _record_cases() -> Iterator[Case]:
    def record(name: str, code: Code | None, description: str, data: bytes, tier: str = "L2") -> Case:
        return Case(f"run.{name}", "run", tier, code, description, (data,))

    whole = encode_record(EVENTS, SIGNED)
    head, tail = whole[1 : whole.index(b"\x6acheckpoint")], whole[whole.index(b"\x6acheckpoint") :]
    yield record("window", None, "A window of a stream: seq 3 to 5.", _sealed(EVENTS[2:]))
    yield record("fields_swapped", Code.RECORD_NON_CANONICAL, "The checkpoint first.", b"\xa2" + tail + head)
    yield record("events_missing", Code.RECORD_DECODE, "No events field.", b"\xa1" + tail)
    yield record("checkpoint_missing", Code.RECORD_DECODE, "No checkpoint field.", b"\xa1" + head)
    long_head = splice(whole, b"\x66events\x85", b"\x66events\x98\x05")
    yield record("array_long", Code.RECORD_NON_CANONICAL, "The events in a longer head.", long_head)
    yield record("swapped", Code.CHAIN_NON_MONOTONIC_SEQ, "Two events swapped.", _sealed(_swap(EVENTS)), "L1")
    odd = payload_of(b"\xa2\x61c\x01\x61b\x02")
    yield record(
        "event_unsorted", Code.ENC_NON_CANONICAL_CBOR, "Signed, but not canonical.", _sealed((odd,)), "L1"
    )
    floating = payload_of(b"\xa1\x61a\xf9\x3e\x00")
    yield record("event_float", None, "A float in its shortest form.", _sealed((floating,)), "L1")
    empty = b"\xa2\x66events\x80" + record_tail(signed_tree(tree_of(())))
    yield record("events_none", Code.RECORD_EMPTY, "No events, under a signature over none.", empty)
    changed = (*EVENTS[:4], event(5, {"a": 1}))
    for name, code, description, carried in (
        ("event_changed", Code.RECORD_ROOT_MISMATCH, "The last event is another.", changed),
        (
            "event_dropped",
            Code.RECORD_SIZE_MISMATCH,
            "The third event is missing.",
            EVENTS[:2] + EVENTS[3:],
        ),
        ("event_added", Code.RECORD_SIZE_MISMATCH, "A sixth event.", (*EVENTS, event(6))),
        ("tail_cut", Code.RECORD_SIZE_MISMATCH, "The last event is missing.", EVENTS[:4]),
    ):
        yield record(name, code, description, encode_record(carried, SIGNED))
    other = encode_record(EVENTS, signed_tree(TREE, origin="run/elsewhere"))
    yield record("origin_other", None, "An origin that is not the stream: said, not refused.", other)


def _sealed(events: tuple[bytes, ...]) -> bytes:
    return encode_record(events, signed_tree(tree_of(events)))


def _swap(events: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return (events[1], events[0], *events[2:])
