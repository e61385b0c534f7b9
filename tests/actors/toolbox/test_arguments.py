"""Arguments as a model writes them: read strictly, checked against the schema, total towards bad text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.errors import ToolFailed
from affidavit.actors.models.port import ToolSpec
from affidavit.actors.toolbox.arguments import MAX_ARGUMENT_CHARS, parse_arguments, validate_arguments

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": ["array", "null"]},
        "open": {},
        "odd": {"type": "no-such-type"},
    },
}
SPEC = ToolSpec("look", "Looks.", json.dumps(SCHEMA))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON))
def test_any_json_object_is_read_as_it_is(value: dict[str, object]) -> None:
    """What a well-behaved model writes comes out equal."""
    assert parse_arguments(json.dumps(value)) == value


@given(st.text() | JSON.map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes anything but a dict or a ToolFailed come out, of either function."""
    for read in (parse_arguments, lambda words: validate_arguments(SPEC, words)):
        try:
            assert isinstance(read(text), dict)
        except ToolFailed as refused:
            assert str(refused)  # noqa: PT017  # either end is right; each is checked


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_text_is_no_arguments(text: str) -> None:
    """Some models send nothing at all for a tool without arguments."""
    assert parse_arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
        ('{"a": ' + "[" * 100_000, "deep"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        (" " * (MAX_ARGUMENT_CHARS + 1), "longer than"),
    ],
    ids=lambda value: value[:20],
)
def test_text_that_is_no_object_is_refused(text: str, said: str) -> None:
    """Each kind of bad text is named in the sentence the model is shown."""
    with pytest.raises(ToolFailed, match=said):
        parse_arguments(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "look needs the argument 'path'"),
        ({"path": "a", "pth": 1}, "look has no argument 'pth'; it has: path, count"),
        ({"path": 1}, "'path' must be of type string"),
        ({"path": "a", "count": True}, "'count' must be of type integer"),
        ({"path": "a", "count": 1.5}, "'count' must be of type integer"),
        ({"path": "a", "ratio": "1"}, "'ratio' must be of type number"),
        ({"path": "a", "deep": {}}, "'deep' must be of type array or null"),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, object], said: str) -> None:
    """A missing, unknown or mistyped argument is named."""
    with pytest.raises(ToolFailed, match=said):
        validate_arguments(SPEC, json.dumps(arguments))


def test_arguments_that_fit_are_returned() -> None:
    """A whole number is a number, null may be allowed, and what the outline does not know passes."""
    arguments = {"path": "a", "count": 1, "ratio": 2, "deep": None, "open": {"x": 1}, "odd": 3}
    assert validate_arguments(SPEC, json.dumps(arguments)) == arguments
