"""Events as JSON: the names of the contract, one line each, and the way back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.event_json import format_time, from_json, parse_time, to_json, to_json_line
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.text import clean
from tests import strategies

CONTRACT = {
    *(
        "seq",
        "time",
        "kind",
        "actor",
        "goal",
        "child",
        "turn",
        "text",
        "tool",
        "toolUseID",
        "input",
        "result",
    ),
    *("isError", "stopReason", "usage", "error", "action", "call", "trust", "fault", "host", "allowed"),
    "reason",
}
OURS = {"errorClass", "errorCode", "principal", "causationID", "detail"}

FULL = Event(
    kind="action.rejected",
    seq=7,
    time=1_700_000_000_000_000_001,
    actor="system",
    goal="c1",
    child="c2",
    turn=2,
    text="text",
    tool="pay",
    tool_use_id="t1",
    input='{"amount": 3}',
    result="refused",
    is_error=True,
    stop_reason="tool_use",
    usage=Usage(1, 2, 3, 0),
    err="no",
    action="pay",
    call=4,
    trust="untrusted",
    error_class="forbidden",
    error_code="capability_denied",
    host="10.0.0.1",
    allowed=True,
    reason="private",
    principal="ada",
    causation_id="run.inbox/1",
    detail=MappingProxyType({"args": b"\x00\xff", "n": 1}),
)


def test_every_name_is_the_contracts() -> None:
    """A full event has exactly the contract's names, and ours beside them."""
    assert to_json(FULL) == {
        "seq": 7,
        "time": "2023-11-14T22:13:20.000000001Z",
        "kind": "action.rejected",
        "actor": "system",
        "goal": "c1",
        "child": "c2",
        "turn": 2,
        "text": "text",
        "tool": "pay",
        "toolUseID": "t1",
        "input": {"amount": 3},
        "result": "refused",
        "isError": True,
        "stopReason": "tool_use",
        "usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3},
        "error": "no",
        "action": "pay",
        "call": 4,
        "trust": "untrusted",
        "fault": "capability_denied",
        "host": "10.0.0.1",
        "allowed": True,
        "reason": "private",
        "errorClass": "forbidden",
        "errorCode": "capability_denied",
        "principal": "ada",
        "causationID": "run.inbox/1",
        "detail": {"args": {"hex": "00ff"}, "n": 1},
    }
    assert to_json(FULL).keys() == CONTRACT | OURS


def test_what_is_empty_is_left_out() -> None:
    """Only seq, time, kind and actor always stand; a usage that was reported as nothing is still reported."""
    assert to_json(Event("x")) == {
        "seq": 0,
        "time": "1970-01-01T00:00:00.000000000Z",
        "kind": "x",
        "actor": "",
    }
    assert to_json(Event("turn.completed", usage=Usage()))["usage"] == {}


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (Event("action.rejected", error_class="forbidden", error_code="egress_denied"), "egress_denied"),
        (Event("action.completed", error_class="transient"), "transient"),
        (Event("action.completed"), None),
        (Event("session.stalled", error_class="cancelled"), None),
    ],
)
def test_fault_stands_on_actions_alone(event: Event, fault: str | None) -> None:
    """`fault` is the code where there is one, else the class, and only of action.* events."""
    assert to_json(event).get("fault") == fault


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}),
        ("null", None),
        ('"text"', "text"),
        ("12345678901234567890123456789", 12345678901234567890123456789),
        ("no json", "no json"),
        ("{", "{"),
        ("NaN", "NaN"),
        ("[-Infinity]", "[-Infinity]"),
        ("1e999", "1e999"),
        ('{"a":1,"a":2}', '{"a":1,"a":2}'),
        ('{"a":{"b":1,"b":1}}', '{"a":{"b":1,"b":1}}'),
        ("9" * 5000, "9" * 5000),
        ("[" * 100 + "]" * 100, json.loads("[" * 100 + "]" * 100)),
        ("[" * 100 + "1" + "]" * 100, json.loads("[" * 100 + "1" + "]" * 100)),
        ("[" * 101 + "]" * 101, "[" * 101 + "]" * 101),
        ('{"a":' * 101 + "1" + "}" * 101, '{"a":' * 101 + "1" + "}" * 101),
        ("[" * 100_000, "[" * 100_000),
        ("[" * 100_000 + "]" * 100_000, "[" * 100_000 + "]" * 100_000),
        (r'{"a": "\ud800"}', {"a": "\ufffd"}),
        (r'{"\ud800": 1, "\udfff": 2}', r'{"\ud800": 1, "\udfff": 2}'),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\ud800"', r"\ud800"),
        ('{"a": "\udfff"}', {"a": "\ufffd"}),
        ('"\x01"', '"\x01"'),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_input_is_its_json_value_or_its_text(text: str, shown: object) -> None:
    """What is JSON stands as its value; what is none, or would hide or break something, as its own text."""
    event = Event("tool.call", input=text)
    assert to_json(event)["input"] == shown
    assert json.loads(to_json_line(event))["input"] == shown


def test_numbers_in_an_input_keep_their_type() -> None:
    """An integral float does not turn into an integer, nor a boolean into a number."""
    shown = to_json(Event("tool.call", input="[1.0, 1, true]"))["input"]
    assert [type(item) for item in shown] == [float, int, bool]  # type: ignore[attr-defined]  # it is a list


def _normal(event: Event) -> Event:
    """The event with its input as reading back spells it."""
    return replace(event, input=from_json(to_json(event)).input)


@given(strategies.recorded_events())
def test_reading_back_gives_the_same_event(event: Event) -> None:
    """Whatever was recorded comes back the same, bytes and look-alikes of tags in `detail` included."""
    back = from_json(json.loads(to_json_line(event)))
    assert back == _normal(event)
    assert to_json(back) == to_json(event)


@given(st.sampled_from(["", "{", "no json", "NaN", '{"a":1}', "[1,2.5]", '{"a":1,"a":1}', "0", "é"]))
def test_a_compact_input_comes_back_as_it_was(text: str) -> None:
    """Text that is no JSON, and JSON without spaces, come back letter by letter."""
    assert from_json(to_json(Event("tool.call", input=text))).input == text


@pytest.mark.parametrize("text", ['"null"', '"12"', '"{}"', '"\\"a\\""', '" "'])
def test_a_string_that_looks_like_json_stays_a_string(text: str) -> None:
    """An input that is one JSON string does not turn into what that string spells."""
    shown = to_json(Event("tool.call", input=text))
    assert isinstance(shown["input"], str)
    assert to_json(from_json(shown)) == shown


@given(strategies.garbage_events())
def test_a_line_is_one_line_of_ascii_json(event: Event) -> None:
    """Any event is one line of ASCII that strict parsers take, and says what `to_json` says."""
    line = to_json_line(event)
    assert line.isascii()
    assert line.isprintable()

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    parsed = json.loads(line, parse_constant=refuse)
    assert parsed == to_json(event)
    json.dumps(parsed, ensure_ascii=False).encode()
    assert parsed.keys() <= CONTRACT | OURS
    assert parsed.get("text", "") == clean(event.text)


def test_floats_of_a_foreign_record_come_back() -> None:
    """A float in a payload is a number, one that is none a tag, and both come back as they were."""
    event = Event("x", detail=MappingProxyType({"a": 1.0, "b": float("inf"), "c": [float("-inf")]}))
    assert to_json(event)["detail"] == {"a": 1.0, "b": {"float": "inf"}, "c": [{"float": "-inf"}]}
    assert from_json(json.loads(to_json_line(event))) == event


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"hex": "00"}, {"map": {"hex": "00"}}),
        ({"map": {"hex": b"\x01"}}, {"map": {"map": {"map": {"hex": {"hex": "01"}}}}}),
        ({"hex": "00", "n": 1}, {"hex": "00", "n": 1}),
        ({"float": 1}, {"map": {"float": 1}}),
    ],
)
def test_a_map_that_looks_like_a_tag_is_wrapped(value: object, shown: object) -> None:
    """A payload cannot pass its own map off as bytes, and it comes back as the map it was."""
    event = Event("x", detail=MappingProxyType({"v": value}))
    assert to_json(event)["detail"] == {"v": shown}
    assert from_json(to_json(event)) == event


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (0, "1970-01-01T00:00:00.000000000Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        ((1 << 63) - 1, "2262-04-11T23:47:16.854775807Z"),
        (-(1 << 63), "1677-09-21T00:12:43.145224192Z"),
    ],
)
def test_times_to_the_nanosecond(time: int, text: str) -> None:
    """The whole range of 64 bits is written to the nanosecond and read back."""
    assert format_time(time) == text
    assert parse_time(text) == time


@given(strategies.INT64)
def test_any_time_comes_back(time: int) -> None:
    """Writing loses no nanosecond, in a fixed width that sorts as text."""
    text = format_time(time)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", text)
    assert parse_time(text) == time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T00:00:00.5Z", 5 * 10**8),
        ("1970-01-01t02:00:00.000000001+02:00", 1),
        ("1969-12-31T22:30:00-01:30", 0),
    ],
)
def test_times_that_others_write_are_read(text: str, time: int) -> None:
    """Fewer decimals and other zones are RFC 3339 too."""
    assert parse_time(text) == time


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": None}, "kind"),
        ({"kind": 5}, "kind"),
        ({"seq": "7"}, "seq"),
        ({"seq": True}, "seq"),
        ({"turn": 1.0}, "turn"),
        ({"isError": 1}, "isError"),
        ({"usage": []}, "usage"),
        ({"usage": {"inputTokens": "1"}}, "usage"),
        ({"detail": [1]}, "detail"),
        ({"detail": {"a": {"hex": "zz"}}}, "detail"),
        ({"fault": 3}, "text"),
        ({"time": "yesterday"}, "time"),
        ({"time": "1970-13-01T00:00:00Z"}, "time"),
        ({"time": "9999-01-01T00:00:00Z"}, "time"),
        ({"time": 5}, "time"),
        ({"input": float("nan")}, "input"),
        ({"input": {1}}, "input"),
    ],
)
def test_bad_json_is_one_value_error(change: dict[str, object], word: str) -> None:
    """A value of the wrong type is refused with the key's name, never read as something else."""
    with pytest.raises(ValueError, match=word):
        from_json({"seq": 1, "kind": "x", **change})


@pytest.mark.parametrize(
    "event",
    [Event("x", time=1 << 63), Event("x", detail=MappingProxyType({"a": object()}))],
)
def test_what_no_stream_records_is_refused(event: Event) -> None:
    """A time beyond 64 bits and a value without a payload form are errors of the caller."""
    with pytest.raises(ValueError, match=r"64 bits|payload"):
        to_json(event)


def test_too_deep_a_detail_is_refused() -> None:
    """Nesting far beyond the record format's own limit is an error, not an exhausted stack."""
    value: object = 1
    for _ in range(2000):
        value = [value]
    with pytest.raises(ValueError, match="levels"):
        to_json(Event("x", detail=MappingProxyType({"a": value})))


@pytest.mark.parametrize(
    ("fault", "error_class", "error_code"),
    [("transient", "transient", ""), ("capability_denied", "", "capability_denied")],
)
def test_a_program_that_knows_the_contract_alone(fault: str, error_class: str, error_code: str) -> None:
    """Its one `fault` is a class where it names one, else a code; keys it added are ignored."""
    event = from_json({"kind": "action.rejected", "fault": fault, "novel": 1})
    assert event == Event("action.rejected", error_class=error_class, error_code=error_code)
    assert event.fault == fault


def test_a_kind_constant_is_shown_as_plain_text() -> None:
    """An event built from `Kind` members shows plain strings."""
    shown = to_json(Event(Kind.STALLED, actor="system"))
    assert [type(shown["kind"]), type(shown["actor"])] == [str, str]
