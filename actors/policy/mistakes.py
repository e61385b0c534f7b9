"""What is wrong with a policy, in one sentence for whoever wrote it: where, what is asked for, what stands there instead. Pure.

Of what stands there only numbers are repeated. A text in the wrong place may be a password or a private key.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_BOUNDS: Final = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "greater_than": ("gt", "must be more than {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "decimal_max_places": ("decimal_places", "must have at most {} decimal places"),
    "decimal_max_digits": ("max_digits", "must have at most {} digits"),
    "string_too_long": ("max_length", "must have at most {} characters"),
    "literal_error": ("expected", "must be {}"),
}
_WORDS: Final = {
    "missing": "is missing",
    "string_type": "must be a text in quotes",
    "string_too_short": "must not be empty",
    "too_short": "must name at least one",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "decimal_type": "must be a number",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}
_LISTS: Final = {
    "agent": "must be a list of tables, each under [[agent]]",
    "approval": "must be a list of tables, each under [[approval]]",
    "check": "must be a list of tables, each under [[check]]",
}
_PATTERNS: Final = {
    "name": "must be 1 to 64 letters, digits, spaces, '_', '.' or '-', and begin with a letter or a digit",
    "command": "must hold no NUL character",
    "description": "must hold no NUL character",
    "system": "must hold no NUL character",
    "model": "must hold no NUL character",
    "approval": "must be a tool's name (letters, digits, '_', '-'), or the beginning of some followed by '*'",
}
_SHOWN: Final = 40
_TOOL: Final = "must be a tool's name: 1 to 64 letters, digits, '_' or '-'"


def sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong; the first mistake, and how many more there are.

    Args:
        error: What pydantic found.
        model: What was to be read.
    """
    found = error.errors(include_url=False)
    places = [each["loc"] for each in found]
    # A list that is too short because its one item was wrong is no mistake of its own.
    sound = [each for each in found if each["type"] != "too_short" or not _within(each["loc"], places)]
    # A name that is not known comes first: what else is missing was probably meant by it.
    first, *others = sorted(sound, key=lambda each: each["type"] != "extra_forbidden")
    more = "" if not others else f" (and {len(others)} more mistake{'s' if len(others) > 1 else ''})"
    return f"{_said(first, model)}{more}"


def _within(place: tuple[int | str, ...], places: list[tuple[int | str, ...]]) -> bool:
    """Tell whether one of some places is below another."""
    return any(len(each) > len(place) and each[: len(place)] == place for each in places)


def _said(error: ErrorDetails, model: type[BaseModel]) -> str:
    place = error["loc"]
    if error["type"] == "extra_forbidden":
        return _unknown(place, model)
    return f"{_place(place)} {_what(error)}{_instead(error)}".strip()


def _what(error: ErrorDetails) -> str:
    kind, place, context = error["type"], error["loc"], error.get("ctx", {})
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return words.format(context[key])
    if kind == "value_error":
        return str(context["error"])
    if kind == "tuple_type":
        return _LISTS.get(str(place[-1]), "must be a list in square brackets")
    if kind == "string_pattern_mismatch":
        return next((_PATTERNS[str(each)] for each in reversed(place) if each in _PATTERNS), _TOOL)
    return _WORDS.get(kind, f"cannot be used: {error['msg'][:1].lower()}{error['msg'][1:]}")


def _instead(error: ErrorDetails) -> str:
    value = error["input"]
    if isinstance(value, bool):
        return f", not {str(value).lower()}"
    return f", not {str(value)[:_SHOWN]}" if isinstance(value, int | float | Decimal) else ""


def _unknown(place: tuple[int | str, ...], model: type[BaseModel]) -> str:
    *table, name = place
    known = list(_table(model, table).model_fields)
    near = get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"{_place(place)} is not known; {hint}"


def _table(model: type[BaseModel], place: list[int | str]) -> type[BaseModel]:
    """Return the part of a model that stands at a place."""
    for name in place:
        if isinstance(name, str):
            model = next(_models(model.model_fields[name].annotation), model)
    return model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401  # a type of types
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif isinstance(annotation, UnionType) or get_args(annotation):
        for each in get_args(annotation):
            yield from _models(each)


def _place(place: tuple[int | str, ...]) -> str:
    """Return a place as people count: `approval[1].tools` is in the first [[approval]]."""
    text = ""
    for each in place:
        if each != "[key]":  # pydantic's mark of a name in a table of free names
            text += f"[{each + 1}]" if isinstance(each, int) else f".{each[:_SHOWN]}"
    return text.removeprefix(".")
