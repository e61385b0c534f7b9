"""What tier L4 reads of an event: a step, small enough to be kept, sent and judged apart from the event.

Reading needs one event alone, so parts of a record can be read anywhere; judging needs their order, and is
`governance`'s.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Any, Final

KNOWN_SCHEMA_VERSIONS: Final = frozenset({1})

START, REJECT, END, CHECK, CLAIM, NOT_JUDGED, FAILURE = range(7)

# Which rule, the event's index and seq, the number that it names (None for none, or none well-formed), and
# what else the rule asks: whether an end was an interruption, whether a check passed.
Step = tuple[int, int, int, int | None, bool]

_RULES: Final = {
    "dispatch.start": START,
    "dispatch.rejected": REJECT,
    "dispatch.end": END,
    "check.recorded": CHECK,
    "outcome.recorded": CLAIM,
}
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_FLAG, _NUMBERED, _RULE_BITS = 8, 16, 7
_PACKED: Final = Struct("<4q")


def read_step(fields: dict[str, Any], index: int) -> Step | None:
    """Return what L4 has to know of an event; None for most events.

    Args:
        fields: The event's fields, which passed L1.
        index: Its zero-based position in the record.
    """
    version = fields["schema_version"]
    rule = _RULES.get(fields["type"])
    if version not in KNOWN_SCHEMA_VERSIONS:
        return NOT_JUDGED, index, fields["seq"], version, False
    if rule is None:
        return None
    payload = fields["payload"]
    if rule == END:
        interrupted = payload.get("error_class") == "interrupted"
        return END, index, fields["seq"], _whole(payload.get("call")), interrupted
    if rule == CLAIM:
        kind = CLAIM if payload.get("result") == "success" else FAILURE
        return kind, index, fields["seq"], _whole(payload.get("check")), False
    # A start, a refusal or a check without a well-formed number is inert.
    number = _whole(payload.get("check" if rule == CHECK else "call"))
    if number is None:
        return None
    return rule, index, fields["seq"], number, rule == CHECK and payload.get("passed") is True


def pack_steps(steps: Iterable[Step], first_index: int) -> bytes:
    """Return steps as bytes, 32 for each; their indexes count from `first_index`."""
    pack = _PACKED.pack
    return b"".join(
        [
            pack(
                rule | _FLAG * flag | _NUMBERED * (number is not None), index - first_index, seq, number or 0
            )
            for rule, index, seq, number, flag in steps
        ]
    )


def unpack_steps(data: bytes, first_index: int) -> list[Step]:
    """Return the steps of what `pack_steps` made.

    Raises:
        ValueError: It made no such bytes.
    """
    if len(data) % _PACKED.size:
        raise ValueError("steps that are cut off")
    return [
        (
            kind & _RULE_BITS,
            first_index + index,
            seq,
            number if kind & _NUMBERED else None,
            kind & _FLAG > 0,
        )
        for kind, index, seq, number in _PACKED.iter_unpack(data)
    ]


def _whole(value: object) -> int | None:
    # Producers that pass through JSON write 1.0 for 1; both mean the same call.
    if value.__class__ is int:
        number: int = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    else:
        return None
    return number if _LOWEST <= number <= _HIGHEST else None
