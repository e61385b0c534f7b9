"""Deterministic CBOR of the record format: encode exactly, decode strictly.

The profile is text, bytes, integers of 64 bits with sign, booleans, null, arrays, and maps with text keys: no
floats and no tags. Encoding accepts these exact classes alone, so that nothing is silently turned into
something else. Decoding accepts only bytes that encoding would give back. Neither recurses.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NoReturn

import cbor2

from affidavit.crypto.cbor_order import reorder
from affidavit.crypto.cbor_parse import parse
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
DEFAULT_MAX_DEPTH: Final = 64
# cbor2 recurses in C: well below the depth at which it has been seen to overflow the stack.
MAX_SUPPORTED_DEPTH: Final = 1000
# Bounds what decoding builds: an item takes a byte on the wire, and up to seventy in memory.
MAX_ITEMS: Final = 1 << 17
_TEXT: Final = frozenset({str})


class _NoTags(dict[int, Any]):
    """Refuses every tag before cbor2 runs the decoder it has for it."""

    def __missing__(self, tag: int) -> NoReturn:
        raise cbor2.CBORDecodeError(f"tag {tag} is not allowed")


_LOADS: Final = partial(
    cbor2.loads,
    allow_indefinite=False,
    allow_duplicate_keys=False,
    strict_hashable_types=True,
    # cbor2 does not count an innermost container that is empty: one level less never accepts one too many.
    max_depth=DEFAULT_MAX_DEPTH - 1,
    semantic_decoders=_NoTags(),
)


def encode(value: object, *, max_depth: int = DEFAULT_MAX_DEPTH) -> bytes:
    """Return the canonical encoding of a value, whatever the order of its maps' keys.

    Args:
        value: Nested str, bytes, int, bool, None, list and dict with str keys: these classes, no subclass.
        max_depth: How many containers may be nested, at most 1000.

    Raises:
        ProducerError: `enc.encode` where the value has no canonical encoding.
    """
    return dump({"": value}, max_depth)[2:]


def dump(mapping: dict[str, Any], max_depth: int) -> bytes:
    """Return the encoding of a map whose own keys are text and stand in canonical order already.

    Args:
        mapping: The map; its values are replaced by copies that are in order, and are checked.
        max_depth: How many containers may be nested below it, at most 1000.

    Raises:
        ProducerError: `enc.encode` where a value has no canonical encoding.
    """
    try:
        _normalise(mapping, min(max_depth, MAX_SUPPORTED_DEPTH))
        return cbor2.dumps(mapping)
    except UnicodeEncodeError as error:
        raise ProducerError(FailureCode.ENC_ENCODE, "a text string holds a lone surrogate") from error
    except TypeError as error:
        raise ProducerError(FailureCode.ENC_ENCODE, "a map key is not a text string") from error


def _normalise(top: dict[str, Any], max_depth: int) -> None:
    # Copies every container, since the caller's own must keep their order, and follows none deeper than
    # allowed: a cycle ends at the depth limit, a part that is shared again and again at the item limit.
    level: list[Any] = [top]
    depth = items = 0
    while level:
        below: list[Any] = []
        for node in level:
            items += len(node)
            if items > MAX_ITEMS:
                raise ProducerError(FailureCode.ENC_ENCODE, f"a value has more than {MAX_ITEMS} items")
            for place, item in node.items() if node.__class__ is dict else enumerate(node):
                kind = item.__class__
                if kind is str or kind is bytes or kind is bool or item is None:
                    continue
                if kind is int and INT64_MIN <= item <= INT64_MAX:
                    continue
                node[place] = copied = _sorted_copy(item) if kind is dict else _checked_copy(item)
                below.append(copied)
        level = below
        depth += bool(level)
        if depth > max_depth:
            raise ProducerError(FailureCode.ENC_ENCODE, f"a value is nested deeper than {max_depth} levels")


def _checked_copy(item: Any) -> list[Any]:  # noqa: ANN401 - judged here
    kind = item.__class__
    if kind is list:
        copied: list[Any] = item.copy()
        return copied
    if kind is int:
        raise ProducerError(FailureCode.ENC_ENCODE, "an integer does not fit in 64 bits")
    raise ProducerError(FailureCode.ENC_ENCODE, f"a {kind.__name__} has no canonical encoding")


def _sorted_copy(mapping: dict[Any, Any]) -> dict[str, Any]:
    keys = tuple(mapping)
    if not _TEXT.issuperset(map(type, keys)):
        raise TypeError("a map key is not a text string")
    ordered = reorder(keys)
    return mapping.copy() if ordered is None else {key: mapping[key] for key in ordered}


def decode(data: bytes, *, max_depth: int = DEFAULT_MAX_DEPTH, allow_floats: bool = False) -> Any:  # noqa: ANN401 - what was encoded
    """Return the value of a canonical encoding that fills `data`.

    Args:
        data: The encoding.
        max_depth: How many containers may be nested.
        allow_floats: Accept a float in its shortest form.

    Raises:
        VerificationError: With the `enc.*` code of the fault.
    """
    value = quick_decode(data, max_depth)
    if value is not None:
        return value
    parsed = parse(data, max_depth=max_depth)
    require_profile(parsed.value)
    if parsed.floats and not allow_floats:
        raise VerificationError(FailureCode.ENC_DECODE, "a float is not allowed")
    if parsed.non_canonical is not None:
        raise VerificationError(FailureCode.ENC_NON_CANONICAL_CBOR, parsed.non_canonical)
    return parsed.value


def quick_decode(data: bytes, max_depth: int) -> Any:  # noqa: ANN401 - what was encoded
    """Return the value where cbor2 shows it to be canonical and of the profile; None says nothing yet."""
    try:
        value = strict_loader(max_depth)(data)
        # Unequal bytes catch longer heads and bytes left over, which cbor2 lets pass; the walk the rest.
        if is_plain((value,)) and cbor2.dumps(value) == data:
            return value
    except Exception:  # whatever went wrong, the strict parser names it
        return None
    return None


def strict_loader(max_depth: int) -> Callable[[bytes], Any]:
    """Return cbor2's decoder with every check that it has; what it gives is not yet canonical, nor of the profile.

    The decoder raises exceptions of many classes; the strict parser is to be asked for the fault.
    """
    if max_depth == DEFAULT_MAX_DEPTH:
        return _LOADS
    if max_depth > MAX_SUPPORTED_DEPTH:
        return _refuse
    return partial(_LOADS, max_depth=max_depth - 1)


def _refuse(_: bytes) -> NoReturn:
    raise ValueError("deeper than cbor2 is asked to go")


def is_plain(items: Iterable[Any]) -> bool:
    """Say whether decoded items are of the profile, without floats and with maps in canonical order.

    Raises:
        TypeError: For a map key that is not a text string.
    """
    pending: list[Any] = []
    while True:
        for item in items:
            kind = item.__class__
            if kind is str or kind is bytes or kind is bool or item is None:
                continue
            if kind is int:
                if not INT64_MIN <= item <= INT64_MAX:
                    return False
            elif kind is dict or kind is list:
                pending.append(item)
            else:
                return False
        if not pending:
            return True
        items = pending.pop()
        if items.__class__ is dict:
            if reorder(tuple(items)) is not None:
                return False
            items = items.values()


def require_profile(value: object) -> None:
    """Check that every integer of a parsed value fits in 64 bits with sign.

    Raises:
        VerificationError: `enc.decode`.
    """
    pending: list[Any] = [(value,)]
    while pending:
        node = pending.pop()
        for item in node.values() if node.__class__ is dict else node:
            kind = item.__class__
            if kind is int and not INT64_MIN <= item <= INT64_MAX:
                raise VerificationError(FailureCode.ENC_DECODE, "an integer does not fit in 64 bits")
            if kind is dict or kind is list:
                pending.append(item)
