"""Events: the bytes of an envelope, both ways, and every fault of either."""

import tracemalloc
from dataclasses import replace
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import Envelope, FailureCode, ProducerError, decode_event, encode_event
from affidavit.crypto.cbor import MAX_ITEMS
from affidavit.crypto.cbor_heads import ARRAY, write_head
from affidavit.crypto.event_check import check_event
from affidavit.crypto.event_form import MAX_EVENT_BYTES, MIN_EVENT_BYTES
from tests.crypto.samples import code_of, event
from tests.crypto.strategies import NEARLY_CBOR, envelopes, shuffled

PLAIN = Envelope("run/x", 1, 5, "note", "agent", {})


@given(envelopes(), st.data())
def test_an_event_has_one_encoding(envelope: Envelope, data: st.DataObject) -> None:
    """Decoding gives the event back, the order of payload keys changes no byte, and the check agrees."""
    encoded = encode_event(envelope)
    assert decode_event(encoded) == envelope
    assert encode_event(replace(envelope, payload=shuffled(envelope.payload, data.draw))) == encoded
    assert check_event(encoded).has_floats is False


def test_keys_stand_in_the_order_of_the_published_vectors() -> None:
    """All twelve keys, shorter first and then bytewise."""
    full = replace(PLAIN, causation_id="c", origin_instance_id="o", principal="p", trace_id="t", span_id="s")
    assert list(cbor2.loads(encode_event(full))) == [
        *("seq", "time", "type", "actor", "stream", "payload", "span_id", "trace_id", "principal"),
        *("causation_id", "schema_version", "origin_instance_id"),
    ]


def test_empty_optional_fields_are_left_out() -> None:
    """An optional field without a value takes no key; a required text may be empty."""
    assert len(cbor2.loads(encode_event(PLAIN))) == 7
    assert decode_event(encode_event(replace(PLAIN, stream="", type=""))).stream == ""


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"actor": "robot"}, FailureCode.ENC_INVALID_ACTOR),
        ({"time": 1 << 63}, FailureCode.ENC_TIME_OUT_OF_RANGE),
        ({"time": -(1 << 63) - 1}, FailureCode.ENC_TIME_OUT_OF_RANGE),
        ({"seq": 0}, FailureCode.CHAIN_NON_MONOTONIC_SEQ),
        ({"seq": 1 << 63}, FailureCode.ENC_ENCODE),
        ({"seq": True}, FailureCode.ENC_ENCODE),
        ({"seq": "1"}, FailureCode.ENC_ENCODE),
        ({"stream": b"run"}, FailureCode.ENC_ENCODE),
        ({"payload": [1]}, FailureCode.ENC_ENCODE),
        ({"payload": {"a": 1.5}}, FailureCode.ENC_ENCODE),
        ({"principal": None}, FailureCode.ENC_ENCODE),
        ({"type": "\udfff"}, FailureCode.ENC_ENCODE),
        ({"payload": {"a": "x" * MAX_EVENT_BYTES}}, FailureCode.ENC_ENCODE),
    ],
)
def test_what_has_no_encoding_is_refused(changes: dict[str, Any], code: FailureCode) -> None:
    """A producer learns by code what is wrong with an event."""
    with pytest.raises(ProducerError) as refusal:
        encode_event(replace(PLAIN, **changes))
    assert refusal.value.code is code


@given(NEARLY_CBOR | st.binary(max_size=60))
def test_any_bytes_are_an_event_or_get_a_code(data: bytes) -> None:
    """Only verification errors come out, and what is accepted encodes back to the same bytes."""
    if code_of(decode_event, data) is None:
        assert encode_event(decode_event(data)) == data


@given(envelopes(), st.data())
def test_a_changed_event_is_another_event_or_none(envelope: Envelope, data: st.DataObject) -> None:
    """After any change of one byte, the bytes are refused or are the canonical bytes of what they decode to."""
    original = encode_event(envelope)
    place = data.draw(st.integers(0, len(original) - 1))
    value = data.draw(st.integers(0, 255))
    changed = original[:place] + bytes((value,)) + original[place + 1 :]
    if code_of(check_event, changed) is None and not check_event(changed).has_floats:
        assert encode_event(decode_event(changed)) == changed


@given(envelopes(), st.sampled_from([1.0, -0.5, 1e10, 1.1]))
def test_a_float_is_noted_and_only_in_its_shortest_form(envelope: Envelope, number: float) -> None:
    """An event with a float is checked as strictly as any other, and says that it has one."""
    fields = check_event(encode_event(replace(envelope, payload={"x": 0}))).fields
    fields["payload"]["x"] = number
    shortest = cbor2.dumps(fields, canonical=True)
    assert check_event(shortest).has_floats
    longest = cbor2.dumps(fields)
    if longest != shortest:
        assert code_of(check_event, longest) == FailureCode.ENC_NON_CANONICAL_CBOR
    assert code_of(check_event, shortest + b"\x00") == FailureCode.ENC_TRAILING_BYTES


def test_an_event_over_the_limit_is_refused_unless_the_limit_is_raised() -> None:
    """The size limit guards the reader's memory and is an option."""
    data = event(1, payload={"text": "x" * 100})
    assert code_of(decode_event, data, max_bytes=100) == FailureCode.ENC_DECODE
    assert code_of(decode_event, data, max_bytes=len(data)) is None


def wide(items: int) -> bytes:
    """An event whose payload is one list of so many empty lists, which cost a byte each on the wire and many in memory."""
    base = encode_event(Envelope("s", 1, 0, "t", "agent", {"x": []}))
    return base.replace(b"\x61x\x80", b"\x61x" + write_head(ARRAY, items) + b"\x80" * items)


def test_an_event_of_too_many_items_is_refused_before_it_is_built() -> None:
    """What a megabyte of empty lists would take in memory is never taken, and no producer makes such an event."""
    assert code_of(check_event, wide(MAX_ITEMS)) is None
    for items in (2 * MAX_ITEMS + 1, MAX_EVENT_BYTES - 100):
        data = wide(items)
        tracemalloc.start()
        try:
            assert code_of(check_event, data) == FailureCode.ENC_DECODE
            assert tracemalloc.get_traced_memory()[1] < 2_000_000
        finally:
            tracemalloc.stop()
    with pytest.raises(ProducerError):
        encode_event(Envelope("s", 1, 0, "t", "agent", {"x": [[]] * (MAX_ITEMS + 1)}))


def test_a_long_text_is_no_crowd_of_items() -> None:
    """The longest event allowed is accepted where its bytes are one text, and refused where they are not well-formed."""
    longest = encode_event(Envelope("s", 1, 0, "t", "agent", {"x": "y" * (MAX_EVENT_BYTES - 100)}))
    assert code_of(check_event, longest) is None
    assert code_of(check_event, longest[:-40] + bytes(40)) is not None


def test_no_event_is_shorter_than_the_shortest() -> None:
    """The bound by which a record of too many events is refused is that of a real event."""
    assert len(encode_event(Envelope("", 1, 0, "", "agent", {}, schema_version=0))) == MIN_EVENT_BYTES
