"""Deterministic CBOR: one encoding for each value, one value for each encoding, and a code for everything else."""

from collections import OrderedDict
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import FailureCode, ProducerError
from affidavit.crypto.cbor import MAX_ITEMS, decode, encode, quick_decode, require_profile
from affidavit.crypto.cbor_heads import read_head, skip_item, write_head
from affidavit.crypto.cbor_parse import parse
from tests.crypto.samples import code_of
from tests.crypto.strategies import NEARLY_CBOR, VALUES, shuffled


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    ONE = "one"


@given(VALUES, st.data())
def test_a_value_has_one_encoding(value: Any, data: st.DataObject) -> None:
    """Decoding gives the value back, and the order in which a map was built changes no byte."""
    encoded = encode(value)
    assert decode(encoded) == value
    assert encode(shuffled(value, data.draw)) == encoded
    assert cbor2.dumps(value, canonical=True) == encoded


@given(VALUES)
def test_encoding_leaves_the_callers_value_alone(value: Any) -> None:
    """The caller's maps keep the order in which they were built."""
    before = repr(value)
    encode(value)
    assert repr(value) == before


@given(NEARLY_CBOR | st.binary(max_size=40))
def test_whatever_decodes_encodes_back_to_the_same_bytes(data: bytes) -> None:
    """Any bytes are either the encoding of a value or refused with an encoding code, and nothing else."""
    code = code_of(decode, data)
    if code is None:
        assert encode(decode(data)) == data
    else:
        assert code.startswith("enc.")


@given(NEARLY_CBOR | st.binary(max_size=40) | VALUES.map(encode))
def test_the_quick_way_accepts_only_what_the_strict_parser_accepts(data: bytes) -> None:
    """The two decoders never disagree on a value that the quick one accepts."""
    quick = quick_decode(data, 8)
    if quick is None:
        return
    parsed = parse(data, max_depth=8)
    require_profile(parsed.value)
    assert (parsed.value, parsed.floats, parsed.non_canonical) == (quick, 0, None)


@pytest.mark.parametrize("depth", range(1, 9))
@pytest.mark.parametrize("core", [b"\x80", b"\xa0", b"\x81\x00", b"\xa1\x61a\x00"])
def test_depth_is_counted_alike_everywhere(depth: int, core: bytes) -> None:
    """Encoder, quick decoder and strict parser allow the same depth, an empty innermost container counted."""
    data = b"\x81" * (depth - 1) + core
    value = cbor2.loads(data)
    assert decode(data, max_depth=depth) == value
    assert encode(value, max_depth=depth) == data
    assert code_of(decode, data, max_depth=depth - 1) == FailureCode.ENC_DECODE
    with pytest.raises(ProducerError) as refusal:
        encode(value, max_depth=depth - 1)
    assert refusal.value.code is FailureCode.ENC_ENCODE


REFUSED_VALUES: dict[str, Any] = {
    "a float": 1.5,
    "an integral float": 1.0,
    "a tuple": (1, 2),
    "a set": {1},
    "a byte array": bytearray(b"x"),
    "a memory view": memoryview(b"x"),
    "a decimal": Decimal(1),
    "an int enum": Number.ONE,
    "a str enum": Word.ONE,
    "an ordered dict": OrderedDict(a=1),
    "2^63": 1 << 63,
    "-2^63-1": -(1 << 63) - 1,
    "a lone surrogate": "\ud800",
    "a surrogate key": {"\ud800": 1},
    "an int key": {1: 1},
    "a bytes key": {b"a": 1},
    "an object": object(),
}


@pytest.mark.parametrize("value", REFUSED_VALUES.values(), ids=REFUSED_VALUES.keys())
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"a": [value]}], ids=["bare", "nested"])
def test_a_value_outside_the_profile_is_not_encoded(value: Any, wrap: Any) -> None:
    """Nothing is silently turned into something that can be encoded."""
    with pytest.raises(ProducerError) as refusal:
        encode(wrap(value))
    assert refusal.value.code is FailureCode.ENC_ENCODE


def test_a_str_enum_key_is_refused_although_its_text_was_seen_before() -> None:
    """What was remembered of a key set never changes a verdict."""
    assert encode({"one": 1}) == b"\xa1\x63one\x01"
    with pytest.raises(ProducerError):
        encode({Word.ONE: 1})


def test_a_cycle_a_tower_and_a_doubling_are_refused() -> None:
    """Neither depth nor sharing makes the encoder run away, whatever the interpreter's recursion limit."""
    cycle: list[Any] = []
    cycle.append(cycle)
    tower: list[Any] = []
    for _ in range(100_000):
        tower = [tower]
    doubled: list[Any] = [0]
    for _ in range(60):
        doubled = [doubled, doubled]
    for value in (cycle, tower, doubled, [0] * (MAX_ITEMS + 1)):
        with pytest.raises(ProducerError) as refusal:
            encode(value)
        assert refusal.value.code is FailureCode.ENC_ENCODE


HOSTILE = {
    "a million arrays": b"\x81" * 1_000_000,
    "a million maps": b"\xa1\x61a" * 1_000_000,
    "a million tags": b"\xc1" * 1_000_000,
    "a string of 2^62": b"\x5b\x40" + bytes(7),
    "a text of 2^64-1": b"\x7b" + b"\xff" * 8,
    "an array of 2^62": b"\x9b\x40" + bytes(7),
    "a map of 2^63": b"\xbb\x80" + bytes(7),
    "a regular expression": b"\xd8\x23\x63(a+",
    "a shared reference": b"\xd8\x1c\x81\xd8\x1d\x00",
    "a bignum": b"\xc2\x58\x40" + b"\xff" * 64,
    "half a head": b"\x19\x01",
    "a break": b"\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_get_a_code(data: bytes) -> None:
    """Depth, lengths, tags and cuts give a verification error and nothing else."""
    assert code_of(decode, data) in {FailureCode.ENC_DECODE, FailureCode.ENC_INDEFINITE_LENGTH}
    assert code_of(skip_item, data[:-1], 0, 64) is not None


def test_a_deeper_limit_is_an_option() -> None:
    """A deeper value decodes where it is allowed, beyond what cbor2 would be asked to follow too."""
    data = b"\x81" * 4_999 + b"\x80"
    assert code_of(decode, data) == FailureCode.ENC_DECODE
    value, depth = decode(data, max_depth=5_000), 1
    while value:
        value, depth = value[0], depth + 1
    assert depth == 5_000


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xf9\x3c\x00", 1.0),
        (b"\xf9\x80\x00", -0.0),
        (b"\xf9\x7c\x00", float("inf")),
        (b"\xfa\x47\xc3\x50\x00", 100_000.0),
        (b"\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", 1.1),
    ],
)
def test_a_float_is_read_in_its_shortest_form_where_it_is_allowed(data: bytes, value: float) -> None:
    """Shortest floats decode on demand; by default they are refused."""
    assert decode(data, allow_floats=True) == value
    assert code_of(decode, data) == FailureCode.ENC_DECODE


@pytest.mark.parametrize(
    "data", [b"\xfa\x3f\x80\x00\x00", b"\xfb\x3f\xf0" + bytes(6), b"\xfb\x40\xf8\x6a" + bytes(5)]
)
def test_a_longer_float_is_not_canonical(data: bytes) -> None:
    """A float that a shorter form carries exactly is not canonical."""
    assert code_of(decode, data, allow_floats=True) == FailureCode.ENC_NON_CANONICAL_CBOR


@given(st.integers(0, 7), st.integers(0, (1 << 64) - 1))
def test_a_head_is_read_as_it_was_written(major: int, arg: int) -> None:
    """Writing gives the shortest head, and reading finds it minimal."""
    data = write_head(major, arg)
    head = read_head(data, 0)
    if not (major == 7 and arg in range(24, 32)):
        assert (head.major, head.arg, head.end, head.minimal) == (major, arg, len(data), True)


@pytest.mark.parametrize(("width", "least"), [(1, 24), (2, 1 << 8), (4, 1 << 16), (8, 1 << 32)])
def test_each_width_of_head_has_its_least_number(width: int, least: int) -> None:
    """The least number that needs a width is read in it; one less in it is not canonical."""
    first = bytes(({1: 0x18, 2: 0x19, 4: 0x1A, 8: 0x1B}[width],))
    assert decode(first + least.to_bytes(width, "big")) == least
    shorter = first + (least - 1).to_bytes(width, "big")
    assert code_of(decode, shorter) == FailureCode.ENC_NON_CANONICAL_CBOR


def test_faults_rank_form_before_content_before_canonical_order() -> None:
    """One input with several faults is named by the first kind that a decoder would meet."""
    unsorted_twice = b"\xa3\x61b\x00\x61a\x00\x61a\x00"
    assert code_of(decode, unsorted_twice) == FailureCode.ENC_DUPLICATE_MAP_KEY
    assert code_of(decode, unsorted_twice + b"\x00") == FailureCode.ENC_TRAILING_BYTES
    assert code_of(decode, unsorted_twice[:-1]) == FailureCode.ENC_DECODE
    assert code_of(decode, b"\xa2\x61b\x00\x61a\x61\xff") == FailureCode.ENC_INVALID_UTF8
    assert code_of(decode, b"\xa2\x61b\x00\x61a\x7f\xff") == FailureCode.ENC_INDEFINITE_LENGTH
    assert code_of(decode, b"\xa2\x61b\x00\x61a\x00") == FailureCode.ENC_NON_CANONICAL_CBOR
