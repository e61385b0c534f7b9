"""One event's bytes judged: canonical, of the closed form, with nothing that the format does not have.

Most of a full verification is spent here. The quick way lets cbor2 decode and encode again, and looks at types
and order in between; it only ever says yes, and only where the strict parser would. Every refusal, and every
event with a float, is the strict parser's.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import cbor2

from affidavit.crypto import cbor
from affidavit.crypto.cbor_heads import has_more_items
from affidavit.crypto.cbor_order import reorder
from affidavit.crypto.cbor_parse import Parsed, parse
from affidavit.crypto.event_form import ACTORS, ENVELOPES, MAX_EVENT_BYTES, OPTIONAL, REQUIRED, TYPES
from affidavit.crypto.failures import FailureCode, VerificationError

Loads = Callable[[bytes], Any]

# Bytes that no event of so few can spend on more items than are allowed.
_MOST_HEADS: Final = 2 * cbor.MAX_ITEMS + 1


class CheckedEvent(NamedTuple):
    """An event that passed the structure checks: its fields as decoded, and whether it holds a float."""

    fields: dict[str, Any]
    has_floats: bool


def check_event(
    data: bytes, *, max_bytes: int = MAX_EVENT_BYTES, max_depth: int = cbor.DEFAULT_MAX_DEPTH
) -> CheckedEvent:
    """Check one event's bytes as `event.decode_event` does, and return its fields without building an envelope.

    Args:
        data: The bytes of one event, and nothing more.
        max_bytes: The longest encoding accepted, in bytes.
        max_depth: How many containers may be nested, the envelope included.

    Raises:
        VerificationError: With the `enc.*` code of the fault, or `chain.non_monotonic_seq` for a seq below 1.
    """
    if len(data) <= max_bytes:
        fields = quick_fields(data, cbor.strict_loader(max_depth))
        if fields is not None:
            return CheckedEvent(fields, has_floats=False)
    return examine_event(data, max_bytes=max_bytes, max_depth=max_depth)


def quick_fields(data: bytes, loads: Loads) -> dict[str, Any] | None:
    """Return the fields of an event that is beyond doubt; None says nothing yet.

    Args:
        data: The bytes of one event, no longer than is allowed.
        loads: What `cbor.strict_loader` gives.
    """
    if len(data) > _MOST_HEADS and has_more_items(data, _MOST_HEADS):
        return None
    try:
        fields: dict[str, Any] = loads(data)
        # A key that is absent, unknown or out of place finds no types here.
        if ENVELOPES[tuple(fields)] != tuple(map(type, fields.values())) or "" in fields.values():
            return None
        payload = fields["payload"]
        if not (
            1 <= fields["seq"] <= cbor.INT64_MAX
            and cbor.INT64_MIN <= fields["time"] <= cbor.INT64_MAX
            and cbor.INT64_MIN <= fields["schema_version"] <= cbor.INT64_MAX
            and fields["actor"] in ACTORS
            and reorder(tuple(payload)) is None
            and cbor.is_plain(payload.values())
        ):
            return None
        # Unequal bytes show longer heads, keys that stand twice and bytes left over, which cbor2 lets pass.
        return fields if cbor2.dumps(fields) == data else None
    except Exception:  # whatever went wrong, the strict parser names it
        return None


def examine_event(data: bytes, *, max_bytes: int, max_depth: int) -> CheckedEvent:
    """Judge an event by the strict parser alone: slow, exact, and the authority on the code of every fault.

    Raises:
        VerificationError: As `check_event`.
    """
    if len(data) > max_bytes:
        raise too_long(len(data), max_bytes)
    if len(data) > _MOST_HEADS and has_more_items(data, _MOST_HEADS):
        raise VerificationError(FailureCode.ENC_DECODE, f"an event of more than {cbor.MAX_ITEMS} items")
    return _judge(parse(data, max_depth=max_depth))


def too_long(length: int, max_bytes: int) -> VerificationError:
    """Return the refusal of an event that is longer than allowed."""
    return VerificationError(
        FailureCode.ENC_DECODE,
        f"an event of {length} bytes exceeds {max_bytes}",
        expected=max_bytes,
        actual=length,
    )


def _judge(parsed: Parsed) -> CheckedEvent:
    # Content first, as a decoder into a typed structure would find it; then form; then meaning.
    fields = parsed.value
    if not isinstance(fields, dict):
        raise VerificationError(FailureCode.ENC_DECODE, "an event is a map")
    _require_types(fields)
    _require_form(fields, parsed.non_canonical)
    if fields["actor"] not in ACTORS:
        raise VerificationError(FailureCode.ENC_INVALID_ACTOR, f"no actor {fields['actor'][:80]!r}")
    if fields["seq"] < 1:
        raise VerificationError(
            FailureCode.CHAIN_NON_MONOTONIC_SEQ,
            f"seq {fields['seq']} is below 1",
            expected="1 or above",
            actual=fields["seq"],
        )
    return CheckedEvent(fields, has_floats=parsed.floats > 0)


def _require_types(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        expected = TYPES.get(name)
        if expected is not None and value.__class__ is not expected:
            raise VerificationError(
                FailureCode.ENC_DECODE, f"{name} is not of the type that an event has there"
            )
    time = fields.get("time", 0)
    if not cbor.INT64_MIN <= time <= cbor.INT64_MAX:
        raise VerificationError(FailureCode.ENC_TIME_OUT_OF_RANGE, f"time {time} does not fit in 64 bits")
    cbor.require_profile(fields)


def _require_form(fields: dict[str, Any], non_canonical: str | None) -> None:
    for name in REQUIRED:
        if name not in fields:
            raise VerificationError(FailureCode.ENC_NON_CANONICAL_CBOR, f"an event without {name}")
    for name, value in fields.items():
        if name not in TYPES:
            raise VerificationError(
                FailureCode.ENC_NON_CANONICAL_CBOR, f"an event has no field {name[:80]!r}"
            )
        if name in OPTIONAL and value == "":
            raise VerificationError(FailureCode.ENC_NON_CANONICAL_CBOR, f"{name} is present but empty")
    if non_canonical is not None:
        raise VerificationError(FailureCode.ENC_NON_CANONICAL_CBOR, non_canonical)
