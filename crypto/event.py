"""One event and its exact bytes, both ways: the envelope that is hashed, proved and carried.

A decoded event always encodes back to the bytes it came from. This module assigns no seq and no time, and
knows the meaning of no event type.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from affidavit.crypto import cbor
from affidavit.crypto.event_check import check_event
from affidavit.crypto.event_form import ACTORS, ENVELOPES, MAX_EVENT_BYTES, ORDER, REQUIRED
from affidavit.crypto.failures import FailureCode, ProducerError

_SHAPE: Final = tuple((name, name in REQUIRED) for name in ORDER)
_IN_ORDER: Final = attrgetter(*ORDER)


@dataclass(frozen=True, slots=True)
class Envelope:
    """One event.

    Attributes:
        stream: Id of the stream it belongs to.
        seq: Its position in the stream, from 1.
        time: When it happened by the writer's clock, in Unix nanoseconds; advisory.
        type: What happened, such as `dispatch.start`.
        actor: Who acted: `agent`, `human` or `system`.
        payload: Text keys to text, bytes, integers, booleans, None, and lists and dicts of these.
        schema_version: Version of the payload's shape.
        causation_id: What caused it; empty when nothing is named, as for the fields below.
        origin_instance_id: The installation that wrote it.
        principal: On whose behalf.
        trace_id: Id of the trace it belongs to.
        span_id: Id of the span it belongs to.
    """

    stream: str
    seq: int
    time: int
    type: str
    actor: str
    payload: dict[str, Any]
    schema_version: int = 1
    causation_id: str = ""
    origin_instance_id: str = ""
    principal: str = ""
    trace_id: str = ""
    span_id: str = ""


def encode_event(
    envelope: Envelope, *, max_bytes: int = MAX_EVENT_BYTES, max_depth: int = cbor.DEFAULT_MAX_DEPTH
) -> bytes:
    """Return the canonical bytes of an event, whatever the order of its payload's keys.

    Args:
        envelope: The event.
        max_bytes: The longest encoding allowed, in bytes.
        max_depth: How many containers may be nested, the envelope included.

    Raises:
        ProducerError: `enc.invalid_actor`, `enc.time_out_of_range`, `chain.non_monotonic_seq` for a seq below
            1, and `enc.encode` for everything else that has no canonical encoding or is too long.
    """
    values = zip(_SHAPE, _IN_ORDER(envelope), strict=True)
    fields = {
        name: value for (name, required), value in values if required or value or value.__class__ is not str
    }
    return encode_fields(fields, max_bytes=max_bytes, max_depth=max_depth)


def encode_fields(
    fields: dict[str, Any], *, max_bytes: int = MAX_EVENT_BYTES, max_depth: int = cbor.DEFAULT_MAX_DEPTH
) -> bytes:
    """Return the canonical bytes of an event given as its map: for whoever writes many, without an `Envelope` each.

    Args:
        fields: The envelope's fields in canonical order, optional ones that are empty left out. It is changed: what it holds
            is replaced by copies in order.
        max_bytes: As for `encode_event`.
        max_depth: As for `encode_event`.

    Raises:
        ProducerError: As `encode_event`.
        ValueError: The fields are not those of an event, or not in this order.
    """
    kinds = ENVELOPES.get(tuple(fields))
    if kinds is None:
        raise ValueError(f"{list(fields)} are not the fields of an event in order")
    if kinds != tuple(map(type, fields.values())):
        name, value = next(
            item for item, kind in zip(fields.items(), kinds, strict=True) if type(item[1]) is not kind
        )
        raise ProducerError(FailureCode.ENC_ENCODE, f"{name} is a {type(value).__name__}")
    if fields["actor"] not in ACTORS:
        raise ProducerError(FailureCode.ENC_INVALID_ACTOR, f"no actor {fields['actor']!r}")
    if not cbor.INT64_MIN <= fields["time"] <= cbor.INT64_MAX:
        raise ProducerError(
            FailureCode.ENC_TIME_OUT_OF_RANGE, f"time {fields['time']} does not fit in 64 bits"
        )
    if fields["seq"] < 1:
        raise ProducerError(FailureCode.CHAIN_NON_MONOTONIC_SEQ, f"seq {fields['seq']} is below 1")
    data = cbor.dump(fields, max_depth - 1)
    if len(data) > max_bytes:
        raise ProducerError(FailureCode.ENC_ENCODE, f"an event of {len(data)} bytes exceeds {max_bytes}")
    return data


def decode_event(
    data: bytes, *, max_bytes: int = MAX_EVENT_BYTES, max_depth: int = cbor.DEFAULT_MAX_DEPTH
) -> Envelope:
    """Return the event that canonical bytes encode.

    Args:
        data: The bytes of one event, and nothing more.
        max_bytes: The longest encoding accepted, in bytes.
        max_depth: How many containers may be nested, the envelope included.

    Raises:
        VerificationError: With the `enc.*` code of the fault, or `chain.non_monotonic_seq` for a seq below 1.
    """
    return Envelope(**check_event(data, max_bytes=max_bytes, max_depth=max_depth).fields)
