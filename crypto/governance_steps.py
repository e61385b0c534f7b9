"""What tier L4 reads of an event: a step, small enough to be kept, sent and judged apart from the event.

Reading needs one event alone, so parts of a record can be read anywhere; judging needs their order, and is
`governance`'s.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final

from affidavit.crypto.failures import FailureCode, VerificationError

KNOWN_SCHEMA_VERSIONS: Final = frozenset({1})

START, REJECT, END, CHECK, CLAIM, NOT_JUDGED = range(6)

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
_WORDS: Final = 4
_WORD_BYTES: Final = 8


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
        is_claim = payload.get("result") == "success"
        return (CLAIM, index, fields["seq"], _whole(payload.get("check")), False) if is_claim else None
    # A start, a refusal or a check without a well-formed number is inert.
    number = _whole(payload.get("check" if rule == CHECK else "call"))
    if number is None:
        return None
    return rule, index, fields["seq"], number, rule == CHECK and payload.get("passed") is True


def pack_steps(steps: Iterable[Step], first_index: int) -> bytes:
    """Return steps as bytes, 32 for each; their indexes count from `first_index`."""
    words = array("q")
    for rule, index, seq, number, flag in steps:
        kind = rule | _FLAG * flag | _NUMBERED * (number is not None)
        words.extend((kind, index - first_index, seq, number or 0))
    return words.tobytes()


def unpack_steps(data: bytes, first_index: int) -> Iterator[Step]:
    """Yield the steps of what `pack_steps` made, on the same machine.

    Raises:
        VerificationError: `enc.decode` where it made no such bytes.
    """
    if len(data) % (_WORDS * _WORD_BYTES):
        raise VerificationError(FailureCode.ENC_DECODE, "steps that are cut off")
    words = array("q", data)
    for at in range(0, len(words), _WORDS):
        kind, index, seq, number = words[at : at + _WORDS]
        numbered = number if kind & _NUMBERED else None
        yield kind & _RULE_BITS, first_index + index, seq, numbered, bool(kind & _FLAG)


def _whole(value: object) -> int | None:
    # Producers that pass through JSON write 1.0 for 1; both mean the same call.
    if value.__class__ is int:
        number: int = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    else:
        return None
    return number if _LOWEST <= number <= _HIGHEST else None
