"""Turns the text a model wrote as a tool's arguments into values, or says what is wrong with it.

Total towards bad text: the only error that comes out is `ToolFailed`, whose sentence is shown to the model.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn, cast

from affidavit.actors.errors import ToolFailed
from affidavit.actors.models.port import ToolSpec

MAX_ARGUMENT_CHARS: Final = 1024 * 1024

_JSON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def parse_arguments(text: str) -> dict[str, object]:
    """Return the JSON object that a model wrote; text of white space alone counts as no arguments.

    Raises:
        ToolFailed: The text is no JSON object, names a key twice, or is too long or too deep.
    """
    if len(text) > MAX_ARGUMENT_CHARS:
        raise ToolFailed(f"the arguments are longer than {MAX_ARGUMENT_CHARS} characters")
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as error:
        raise ToolFailed("the arguments are nested too deeply") from error
    except ValueError as error:
        raise ToolFailed(f"the arguments are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ToolFailed("the arguments must be a JSON object, such as {}")
    return cast("dict[str, object]", value)


def validate_arguments(spec: ToolSpec, text: str) -> dict[str, object]:
    """Return the arguments of a call, checked against the outline of the tool's schema.

    The outline is: required keys, unknown keys where the schema forbids them, and the plain JSON type of
    each value. What the schema says beyond that is the tool's own to check.

    Args:
        spec: The tool that was called.
        text: The arguments as the model wrote them.

    Raises:
        ToolFailed: The text is no JSON object, or does not fit the outline.
    """
    arguments = parse_arguments(text)
    schema = json.loads(spec.input_schema)
    known = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in arguments:
            raise ToolFailed(f"{spec.name} needs the argument {key!r}")
    for key, value in arguments.items():
        if key in known:
            _check_type(spec.name, key, value, known[key])
        elif schema.get("additionalProperties") is False:
            names = ", ".join(known) or "none"
            raise ToolFailed(f"{spec.name} has no argument {key!r}; it has: {names}")
    return arguments


def _check_type(tool: str, key: str, value: object, schema: object) -> None:
    wanted = schema.get("type") if isinstance(schema, dict) else None
    names = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(names, list):
        return
    # A type that this table does not know is the tool's own to check.
    if all(name in _JSON_TYPES for name in names) and not any(_is(value, name) for name in names):
        raise ToolFailed(f"{tool}: argument {key!r} must be of type {' or '.join(names)}")


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _JSON_TYPES[name])


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
