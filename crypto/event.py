"""One event and its exact bytes, both ways: the envelope that is hashed, proved and carried.

A decoded event always encodes back to the bytes it came from. This module assigns no seq and no time, and
knows the meaning of no event type.
"""

from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter
from typing import Any, Final, NamedTuple

import cbor2

from affidavit.crypto import cbor
from affidavit.crypto.cbor_order import encoded_rank
from affidavit.crypto.cbor_parse import Parsed, parse
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError

# Guards memory: a decoded event can take seventy times the space of its bytes.
MAX_EVENT_BYTES: Final = 1 << 20
ACTORS: Final = frozenset({"agent", "human", "system"})

_REQUIRED: Final = ("stream", "seq", "time", "type", "actor", "payload", "schema_version")
_OPTIONAL: Final = ("causation_id", "origin_instance_id", "principal", "trace_id", "span_id")
_ORDER: Final = tuple(sorted(_REQUIRED + _OPTIONAL, key=encoded_rank))
_TYPES: Final[dict[str, type]] = {
    "stream": str,
    "seq": int,
    "time": int,
    "type": str,
    "actor": str,
    "payload": dict,
    "schema_version": int,
    **dict.fromkeys(_OPTIONAL, str),
}
_SHAPE: Final = tuple((name, _TYPES[name], name in _REQUIRED) for name in _ORDER)
_IN_ORDER: Final = attrgetter(*_ORDER)
_QUICK_TYPES: Final = (int, int, dict, int)
# Every legal key order of an envelope, with the optional keys it carries: one look-up judges keys and order.
_ENVELOPES: Final = {
    tuple(key for key in _ORDER if key not in absent): tuple(key for key in _OPTIONAL if key not in absent)
    for count in range(len(_OPTIONAL) + 1)
    for absent in combinations(_OPTIONAL, count)
}


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


class CheckedEvent(NamedTuple):
    """An event that passed the structure checks: its fields as decoded, and whether it holds a float."""

    fields: dict[str, Any]
    has_floats: bool


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
    fields = _fields_of(envelope)
    if envelope.actor not in ACTORS:
        raise ProducerError(FailureCode.ENC_INVALID_ACTOR, f"no actor {envelope.actor!r}")
    if not cbor.INT64_MIN <= envelope.time <= cbor.INT64_MAX:
        raise ProducerError(
            FailureCode.ENC_TIME_OUT_OF_RANGE, f"time {envelope.time} does not fit in 64 bits"
        )
    if envelope.seq < 1:
        raise ProducerError(FailureCode.CHAIN_NON_MONOTONIC_SEQ, f"seq {envelope.seq} is below 1")
    data = cbor.dump(fields, max_depth - 1)
    if len(data) > max_bytes:
        raise ProducerError(FailureCode.ENC_ENCODE, f"an event of {len(data)} bytes exceeds {max_bytes}")
    return data


def _fields_of(envelope: Envelope) -> dict[str, Any]:
    # In canonical order, those that are optional and empty left out.
    fields: dict[str, Any] = {}
    for (name, kind, required), value in zip(_SHAPE, _IN_ORDER(envelope), strict=True):
        if value.__class__ is not kind:
            raise ProducerError(FailureCode.ENC_ENCODE, f"{name} is a {value.__class__.__name__}")
        if required or value:
            fields[name] = value
    return fields


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


def check_event(
    data: bytes, *, max_bytes: int = MAX_EVENT_BYTES, max_depth: int = cbor.DEFAULT_MAX_DEPTH
) -> CheckedEvent:
    """Check one event's bytes as `decode_event` does, and return its fields without building an envelope.

    Raises:
        VerificationError: As `decode_event`.
    """
    if len(data) > max_bytes:
        raise VerificationError(FailureCode.ENC_DECODE, f"an event of {len(data)} bytes exceeds {max_bytes}")
    try:
        fields = cbor.strict_loads(data, max_depth)
        if _is_sound(fields) and cbor2.dumps(fields) == data:
            return CheckedEvent(fields, has_floats=False)
    except Exception:  # noqa: S110 - whatever went wrong, the strict parser below names it
        pass
    return _examine(parse(data, max_depth=max_depth))


def _is_sound(fields: Any) -> bool:  # noqa: ANN401 - whatever was decoded
    # Judges as `_examine` does, faster, and only ever says yes where that would accept.
    if fields.__class__ is not dict:
        return False
    optional = _ENVELOPES.get(tuple(fields))
    if optional is None:
        return False
    for name in optional:
        if fields[name].__class__ is not str or not fields[name]:
            return False
    seq, time, payload, version = fields["seq"], fields["time"], fields["payload"], fields["schema_version"]
    types = (seq.__class__, time.__class__, payload.__class__, version.__class__)
    return (
        types == _QUICK_TYPES
        and fields["type"].__class__ is str
        and fields["stream"].__class__ is str
        and fields["actor"] in ACTORS
        and seq >= 1
        and cbor.is_plain((seq, time, version, payload))
    )


def _examine(parsed: Parsed) -> CheckedEvent:
    # Content first, as a decoder into a typed structure would find it; then form; then meaning.
    fields = parsed.value
    if not isinstance(fields, dict):
        raise VerificationError(FailureCode.ENC_DECODE, "an event is a map")
    _require_types(fields)
    _require_form(fields, parsed.non_canonical)
    if fields["actor"] not in ACTORS:
        raise VerificationError(FailureCode.ENC_INVALID_ACTOR, f"no actor {fields['actor'][:80]!r}")
    if fields["seq"] < 1:
        raise VerificationError(FailureCode.CHAIN_NON_MONOTONIC_SEQ, f"seq {fields['seq']} is below 1")
    return CheckedEvent(fields, has_floats=parsed.floats > 0)


def _require_types(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        expected = _TYPES.get(name)
        if expected is not None and value.__class__ is not expected:
            raise VerificationError(
                FailureCode.ENC_DECODE, f"{name} is not of the type that an event has there"
            )
    time = fields.get("time", 0)
    if not cbor.INT64_MIN <= time <= cbor.INT64_MAX:
        raise VerificationError(FailureCode.ENC_TIME_OUT_OF_RANGE, f"time {time} does not fit in 64 bits")
    cbor.require_profile(fields)


def _require_form(fields: dict[str, Any], non_canonical: str | None) -> None:
    for name in _REQUIRED:
        if name not in fields:
            raise VerificationError(FailureCode.ENC_NON_CANONICAL_CBOR, f"an event without {name}")
    for name, value in fields.items():
        if name not in _TYPES:
            raise VerificationError(
                FailureCode.ENC_NON_CANONICAL_CBOR, f"an event has no field {name[:80]!r}"
            )
        if name in _OPTIONAL and value == "":
            raise VerificationError(FailureCode.ENC_NON_CANONICAL_CBOR, f"{name} is present but empty")
    if non_canonical is not None:
        raise VerificationError(FailureCode.ENC_NON_CANONICAL_CBOR, non_canonical)
