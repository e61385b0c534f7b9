"""Hypothesis strategies for values, CBOR bytes and events of the record format. They import nothing but crypto."""

from typing import Any

from hypothesis import strategies as st

from affidavit.crypto import Envelope

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
ATOMS = st.none() | st.booleans() | INT64 | TEXTS | st.binary(max_size=10)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
PAYLOADS = st.dictionaries(TEXTS, VALUES, max_size=4)
# Bytes that are often nearly CBOR: heads and small contents strung together.
NEARLY_CBOR = st.lists(
    st.sampled_from(
        [b"\xa1", b"\xa2", b"\x61a", b"\x61b", b"\x81", b"\x80", b"\xa0", b"\x00", b"\x18\x18", b"\xf6"]
    )
    | st.sampled_from(
        [b"\xf9\x3c\x00", b"\xfa\x3f\x80\x00\x00", b"\xfb" + bytes(8), b"\xc1", b"\x9f", b"\xff"]
    )
    | st.sampled_from(
        [b"\x1b\x7f" + b"\xff" * 7, b"\x3b\x80" + bytes(7), b"\x41\x00", b"\x62\xc3\x28", b"\xf5"]
    )
    | st.binary(min_size=1, max_size=2),
    max_size=8,
).map(b"".join)


def envelopes() -> st.SearchStrategy[Envelope]:
    """Any event that has an encoding."""
    return st.builds(
        Envelope,
        stream=TEXTS,
        seq=st.integers(1, (1 << 63) - 1),
        time=INT64,
        type=TEXTS,
        actor=st.sampled_from(["agent", "human", "system"]),
        payload=PAYLOADS,
        schema_version=INT64,
        causation_id=TEXTS,
        origin_instance_id=TEXTS,
        principal=TEXTS,
        trace_id=TEXTS,
        span_id=TEXTS,
    )


def shuffled(value: Any, draw: Any) -> Any:
    """The same value with the keys of each map in another order."""
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        return {key: shuffled(value[key], draw) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, draw) for item in value]
    return value
