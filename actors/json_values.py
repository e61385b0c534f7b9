"""Payload values and tool inputs as plain JSON values, and back.

The rule: what comes out always passes `json.dumps(..., allow_nan=False)` and is valid Unicode, and
payload values come back exactly. JSON has no bytes and no NaN, so these stand as maps of one key:
`{"hex": "00ff"}` for bytes and `{"float": "nan"}` for a float that is no number; a payload map that looks
like one of these is wrapped as `{"map": {...}}`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from affidavit.actors.text import clean

# The record format nests 64 levels by default. A fixed limit, since Python's own depends on who is calling.
MAX_DEPTH: Final = 100

_TAGS: Final = frozenset({"hex", "float", "map"})
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def show_text(text: str) -> str:
    """Return the text as a plain `str` of valid Unicode."""
    return clean(str(text))


def show_value(value: object, depth: int = 0) -> object:
    """Return one payload value as a JSON value.

    Args:
        value: Text, bytes, an integer, a float, a boolean, None, or a sequence or map of these.
        depth: How many containers it stands in.

    Raises:
        ValueError: It nests beyond `MAX_DEPTH`, or is of another type.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"a value nests beyond {MAX_DEPTH} levels")
    match value:
        case None | bool() | int():
            return value
        case str():
            return show_text(value)
        case bytes():
            return {"hex": value.hex()}
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case Mapping():
            shown = show_map(cast("Mapping[str, object]", value), depth)
            return {"map": shown} if len(shown) == 1 and shown.keys() <= _TAGS else shown
        case Sequence():
            return [show_value(item, depth + 1) for item in value]
    raise ValueError(f"a {type(value).__name__} has no place in a payload")


def show_map(values: Mapping[str, object], depth: int = 0) -> dict[str, object]:
    """Return a map with each value as `show_value` has it; the map itself is never wrapped.

    Raises:
        ValueError: As `show_value`.
    """
    return {show_text(key): show_value(value, depth + 1) for key, value in values.items()}


def read_value(value: object) -> object:
    """Return the payload value that a JSON value of `show_value` stands for.

    Raises:
        ValueError: What a tag holds is not of its form.
    """
    if isinstance(value, list):
        return [read_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"hex": str(digits)} if len(value) == 1:
            return bytes.fromhex(digits)
        case {"float": str(name)} if len(value) == 1:
            return float(name)
        case {"map": dict(inner)} if len(value) == 1:
            return read_map(inner)
    return read_map(value)


def read_map(values: Mapping[str, object]) -> dict[str, object]:
    """Return a map with each value as `read_value` has it.

    Raises:
        ValueError: As `read_value`.
    """
    return {key: read_value(value) for key, value in values.items()}


def show_input(text: str) -> object:
    """Return a tool call's arguments as the JSON value they are, else as their own text.

    The text also stands where the value would not show all that the model wrote, or not be JSON again: a
    repeated key, a number beyond a float (`1e999`) or of thousands of digits, `NaN`, nesting beyond
    `MAX_DEPTH`.
    """
    try:
        value = _DECODER.decode(clean(text))
        if _ESCAPED_SURROGATE.search(text):
            value = _DECODER.decode(clean(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return clean(text)
    return clean(text) if _nests_beyond(value, MAX_DEPTH) else value


def read_input(value: object) -> str:
    """Return a text that `show_input` shows as this JSON value.

    Raises:
        ValueError: It is no JSON value, or nests too deeply.
    """
    if isinstance(value, str) and show_input(value) == value:
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"an input is no JSON value: {error}") from error


def same_input(text: str) -> bytes:
    """Return bytes that are the same for two inputs if they mean the same.

    White space, escapes, the order of keys, and whether it is 1 or 1.0 make no difference. An input that is no JSON value is the
    same as its own text alone.
    """
    value = show_input(text)
    if value == text:
        return text.strip().encode("utf-8", "replace")
    return json.dumps(_even(value), sort_keys=True, separators=(",", ":")).encode()


def _even(value: object) -> object:
    """Return a JSON value with each whole number as an integer; it nests no deeper than `MAX_DEPTH`."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _even(item) for key, item in value.items()}
        case list():
            return [_even(item) for item in value]
    return value


def _nests_beyond(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [item for node in level for item in _items(node)]
    return any(isinstance(item, dict | list) for item in level)


def _items(node: object) -> Sequence[object]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else ()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a repeated key")
    return values


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is beyond a float")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite)
