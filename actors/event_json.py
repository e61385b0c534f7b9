"""An event as JSON for `--json`, sockets and browsers: the names of the session contract, and our own.

Contract: `seq`, `time`, `kind` and `actor` always stand; every other key is left out when empty. `time`
is RFC 3339 in UTC with nine decimals. `input` is the JSON value of a tool call's arguments, or a string
where they are none. `fault` stands on action.* events only. Ours: `errorClass`, `errorCode`, `principal`,
`causationID`, and `detail`, whose bytes are `{"hex": "..."}` (see `json_values`). Reading back gives the
same event, except that an `input` may be spaced otherwise and a lone surrogate has become U+FFFD. No salt
is ever shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, TypeVar

from affidavit.actors.clock import NANOSECONDS
from affidavit.actors.codec import usage_payload
from affidavit.actors.events import ACTION_KINDS, NO_DETAIL, Detail, Event, FaultClass, Usage
from affidavit.actors.json_values import read_input, read_map, show_input, show_map, show_text

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INT64: Final = range(-(1 << 63), 1 << 63)
_RFC3339: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def to_json(event: Event) -> dict[str, object]:
    """Return the event as a JSON object.

    Raises:
        ValueError: Its time is not of 64 bits, or its detail holds what no payload can.
    """
    shown: dict[str, object] = {
        "seq": event.seq,
        "time": format_time(event.time),
        "kind": show_text(event.kind),
        "actor": show_text(event.actor),
    }
    for each in _OPTIONAL:
        value = getattr(event, each.attribute)
        if value:
            shown[each.key] = each.show(value)
    if event.kind in ACTION_KINDS and event.fault:
        shown["fault"] = show_text(event.fault)
    return shown


def to_json_line(event: Event) -> str:
    """Return the event as one line of ASCII JSON, without its line end.

    Raises:
        ValueError: As `to_json`.
    """
    return json.dumps(to_json(event), allow_nan=False, separators=(",", ":"))


def from_json(data: Mapping[str, object]) -> Event:
    """Return the event that a JSON object of `to_json` stands for; keys it does not know are ignored.

    Raises:
        ValueError: `kind` is missing, or a key holds a value of another type than it should.
    """
    if not data.get("kind"):
        raise ValueError("an event names its kind")
    fields: dict[str, Any] = {}
    for each in (*_REQUIRED, *_OPTIONAL):
        if each.key in data:
            try:
                fields[each.attribute] = each.read(data[each.key])
            except ValueError as error:
                raise ValueError(f"an event's {each.key}: {error}") from error
    # Written by a program that knows the contract alone: its one name may be a class or a finer code.
    fault = _text(data.get("fault", ""))
    if fault and not data.keys() & {"errorClass", "errorCode"}:
        fields["error_class" if fault in _CLASSES else "error_code"] = fault
    return Event(**fields)


def format_time(time: int) -> str:
    """Return Unix nanoseconds as RFC 3339 in UTC with nine decimals.

    Raises:
        ValueError: It is not of 64 bits.
    """
    if time not in _INT64:
        raise ValueError(f"time {time} does not fit in 64 bits")
    seconds, nanoseconds = divmod(time, NANOSECONDS)
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]}.{nanoseconds:09}Z"


def parse_time(text: str) -> int:
    """Return the Unix nanoseconds of an RFC 3339 time in any zone.

    Raises:
        ValueError: It is not one, or has no place in 64 bits.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no RFC 3339 time")
    whole, decimals, zone = match.groups()
    since = datetime.fromisoformat(whole.upper() + zone.upper().replace("Z", "+00:00")) - _EPOCH
    time = since // timedelta(seconds=1) * NANOSECONDS + int((decimals or "").ljust(9, "0"))
    if time not in _INT64:
        raise ValueError(f"{text!r} is out of range")
    return time


@dataclass(frozen=True, slots=True)
class _Field:
    """How one attribute of an event stands in JSON."""

    attribute: str
    key: str
    show: Callable[[Any], object]
    read: Callable[[object], object]


_T = TypeVar("_T")


def _expect(kind: type[_T], value: object) -> _T:
    # A boolean is an int to Python, but not in JSON.
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ValueError(f"a {type(value).__name__} where {_NAMES[kind]} should stand")


def _text(value: object) -> str:
    return _expect(str, value)


def _integer(value: object) -> int:
    return _expect(int, value)


def _boolean(value: object) -> bool:
    return _expect(bool, value)


def _detail(value: object) -> Detail:
    read = read_map(_expect(dict, value))
    return MappingProxyType(read) if read else NO_DETAIL


def _usage(value: object) -> Usage:
    counts = _expect(dict, value)
    return Usage(*(_integer(counts.get(key, 0)) for key in _USAGE_KEYS))


def _time(value: object) -> int:
    return parse_time(_text(value))


def _texts(**keys: str) -> tuple[_Field, ...]:
    return tuple(_Field(attribute, key, show_text, _text) for attribute, key in keys.items())


_NAMES: Final[dict[type, str]] = {str: "text", int: "an integer", bool: "true or false", dict: "an object"}
_CLASSES: Final = frozenset(FaultClass)
_USAGE_KEYS: Final = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_REQUIRED: Final = (
    _Field("seq", "seq", int, _integer),
    _Field("time", "time", format_time, _time),
    *_texts(kind="kind", actor="actor"),
)
_OPTIONAL: Final = (
    *_texts(goal="goal", child="child"),
    _Field("turn", "turn", int, _integer),
    *_texts(text="text", tool="tool", tool_use_id="toolUseID"),
    _Field("input", "input", show_input, read_input),
    *_texts(result="result"),
    _Field("is_error", "isError", bool, _boolean),
    *_texts(stop_reason="stopReason"),
    _Field("usage", "usage", usage_payload, _usage),
    *_texts(err="error", action="action"),
    _Field("call", "call", int, _integer),
    *_texts(trust="trust", host="host"),
    _Field("allowed", "allowed", bool, _boolean),
    *_texts(reason="reason", error_class="errorClass", error_code="errorCode"),
    *_texts(principal="principal", causation_id="causationID"),
    _Field("detail", "detail", show_map, _detail),
)
