"""Vectors of single events and streams (L1): one fault each, in what the published suite leaves out."""

from collections.abc import Iterator

from affidavit.crypto.failures import FailureCode as Code
from affidavit.tools._vectors_cases import Case, event, payload_of, splice

_SEQ_1 = b"\x63seq\x01"
_TIME = b"\x64time\x1b\x17\x97\x9c\xfe\x36\x2a\x00\x00"
_SMALL = "a nested value of the payload"


def _case(name: str, code: Code | None, description: str, *events: bytes) -> Case:
    return Case(f"events.{name}", "events", "L1", code, description, events)


def cases() -> Iterator[Case]:
    """Yield the vectors."""
    yield from _envelope_cases()
    yield from _payload_cases()
    yield from _form_cases()


def _envelope_cases() -> Iterator[Case]:
    base = event()
    yield _case(
        "seq_zero", Code.CHAIN_NON_MONOTONIC_SEQ, "A seq below 1.", splice(base, _SEQ_1, b"\x63seq\x00")
    )
    yield _case(
        "seq_beyond_int64",
        Code.ENC_DECODE,
        "A seq of 2^63.",
        splice(base, _SEQ_1, b"\x63seq\x1b\x80" + bytes(7)),
    )
    yield _case(
        "time_beyond_int64",
        Code.ENC_TIME_OUT_OF_RANGE,
        "A time of 2^63 nanoseconds.",
        splice(base, _TIME, b"\x64time\x1b\x80" + bytes(7)),
    )
    yield _case(
        "time_below_int64",
        Code.ENC_TIME_OUT_OF_RANGE,
        "A time of -2^63-1 nanoseconds.",
        splice(base, _TIME, b"\x64time\x3b\x80" + bytes(7)),
    )
    yield _case(
        "time_absent",
        Code.ENC_NON_CANONICAL_CBOR,
        "An envelope without time.",
        b"\xa6" + splice(base, _TIME, b"")[1:],
    )
    yield _case(
        "optional_empty",
        Code.ENC_NON_CANONICAL_CBOR,
        "An optional field that is present and empty.",
        b"\xa8" + splice(base, b"\x67payload\xa0", b"\x67payload\xa0\x67span_id\x60")[1:],
    )
    yield _case("schema_version_unknown", None, "Structure does not look at it.", event(schema_version=7))
    yield _case(
        "actor_unknown",
        Code.ENC_INVALID_ACTOR,
        "An actor that is none of the three.",
        splice(base, b"\x65actor\x65agent", b"\x65actor\x65robot"),
    )
    yield _case("type_number", Code.ENC_DECODE, "A type that is 1.", splice(base, b"\x64note", b"\x01"))
    yield _case("array", Code.ENC_DECODE, "An event that is an array.", b"\x81\x01")
    yield _case("nothing", Code.ENC_DECODE, "An event of no bytes.", b"")


def _payload_cases() -> Iterator[Case]:
    def inside(name: str, code: Code | None, description: str, item: bytes) -> Case:
        return _case(name, code, description, payload_of(b"\xa1\x61a" + item))

    yield inside(
        "float_shortest", None, "A float in its shortest form is a deviation, not a fault.", b"\xf9\x3e\x00"
    )
    yield inside("float_long", Code.ENC_NON_CANONICAL_CBOR, "1.5 in four bytes.", b"\xfa\x3f\xc0\x00\x00")
    yield inside("float_nan", Code.ENC_DECODE, "A float that is not a number.", b"\xf9\x7e\x00")
    yield inside("int_above", Code.ENC_DECODE, f"2^63 as {_SMALL}.", b"\x1b\x80" + bytes(7))
    yield inside("int_below", Code.ENC_DECODE, f"-2^63-1 as {_SMALL}.", b"\x3b\x80" + bytes(7))
    yield inside("tag_date", Code.ENC_DECODE, "A tagged date.", b"\xc0\x74" + b"2027-01-01T00:00:00Z")
    yield inside("tag_bignum", Code.ENC_DECODE, "A bignum of one byte.", b"\xc2\x41\x01")
    yield inside("undefined", Code.ENC_DECODE, "The value undefined.", b"\xf7")
    yield inside("simple_value", Code.ENC_DECODE, "Simple value 32.", b"\xf8\x20")
    yield inside("key_int", Code.ENC_DECODE, "An integer as a key.", b"\xa1\x01\x01")
    yield inside("key_bytes", Code.ENC_DECODE, "A byte string as a key.", b"\xa1\x41\x01\x01")
    yield inside("key_duplicate", Code.ENC_DUPLICATE_MAP_KEY, "A key twice.", b"\xa2\x61b\x01\x61b\x02")
    yield inside(
        "keys_unsorted", Code.ENC_NON_CANONICAL_CBOR, "Keys out of order.", b"\xa2\x61c\x01\x61b\x02"
    )
    yield inside("text_indefinite", Code.ENC_INDEFINITE_LENGTH, "A text in chunks.", b"\x7f\x61a\xff")
    yield inside("text_surrogate", Code.ENC_INVALID_UTF8, "A surrogate as UTF-8.", b"\x63\xed\xa0\x80")
    yield inside("text_overlong", Code.ENC_INVALID_UTF8, "A slash in two bytes.", b"\x62\xc0\xaf")
    yield inside("depth_64", None, "As deep as allowed, the envelope counted.", b"\x81" * 61 + b"\x80")
    yield inside("depth_65", Code.ENC_DECODE, "One level too deep.", b"\x81" * 62 + b"\x80")
    yield inside("length_huge", Code.ENC_DECODE, "A string that declares 2^62 bytes.", b"\x5b\x40" + bytes(7))
    yield inside(
        "count_huge", Code.ENC_DECODE, "An array that declares 2^62 entries.", b"\x9b\x40" + bytes(7)
    )
    yield inside("head_reserved", Code.ENC_DECODE, "A reserved head.", b"\x1c")


def _form_cases() -> Iterator[Case]:
    base = event()
    yield _case("cut", Code.ENC_DECODE, "The last byte is missing.", base[:-1])
    yield _case(
        "text_head_long",
        Code.ENC_NON_CANONICAL_CBOR,
        "A longer head.",
        splice(base, b"\x64note", b"\x78\x04note"),
    )
    yield _case(
        "streams_two",
        Code.CHAIN_STREAM_MISMATCH,
        "Two events of two streams.",
        base,
        event(2, stream="run/other"),
    )
    yield _case("seq_repeated", Code.CHAIN_NON_MONOTONIC_SEQ, "A seq twice.", base, base)
    yield _case("none", Code.CHAIN_EMPTY, "A stream without events.")
    yield _case("seq_falls", Code.CHAIN_NON_MONOTONIC_SEQ, "A seq that falls.", event(2), event(1))
