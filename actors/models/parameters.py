"""The parameters of generation that an operator may choose, read from behind a `?` in a model's name. Pure.

`openai:NAME?temperature=0.2&seed=7`, `anthropic:NAME?thinking=2048`, `local?tools=schema`. They are part of what makes it this
model, so a resumed run notices when they change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import Final
from urllib.parse import parse_qsl

from affidavit.actors.errors import ConfigurationError

ADAPTIVE: Final = "adaptive"
SCHEMA: Final = "schema"
_WORDS: Final = frozenset({("thinking", ADAPTIVE), ("tools", SCHEMA)})
_MAX_INT: Final = 2**53


@dataclass(frozen=True, slots=True)
class Parameters:
    """Chosen parameters; None leaves each to the endpoint.

    Attributes:
        temperature: How much chance there is in the choice of words, 0 to 2.
        top_p: The share of likely words that is chosen from, 0 to 1.
        seed: Where chance begins, for endpoints that know of it.
        max_output_tokens: Lowers every turn's own limit of tokens to this.
        context_tokens: How many tokens the model's context holds, so that old turns are left out where they no longer fit.
        thinking: The most tokens of thinking, out of those that a turn may write; or `adaptive`, which leaves that to the
            model. For Anthropic models alone.
        tools: `schema` has the server hold a model that knows of no tools to a JSON schema with them. For others than
            Anthropic models.
    """

    temperature: Decimal | None = None
    top_p: Decimal | None = None
    seed: int | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    thinking: int | str | None = None
    tools: str | None = None

    def chosen(self) -> dict[str, object]:
        """Return those that were chosen, decimal numbers as text, since a record has no form for them."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {
            name: str(value) if isinstance(value, Decimal) else value
            for name, value in values
            if value is not None
        }

    def sampling(self) -> dict[str, object]:
        """Return those that every wire format calls by the same name, as JSON values."""
        chosen = (("temperature", self.temperature), ("top_p", self.top_p))
        return {name: float(value) for name, value in chosen if value is not None}

    def of_chat(self) -> dict[str, object]:
        """Return those that a request of the chat-completions protocol carries.

        Raises:
            ConfigurationError: Thinking was chosen, which that protocol has no word for.
        """
        if self.thinking is not None:
            raise ConfigurationError("thinking is a parameter of Anthropic models alone")
        return {**self.sampling(), **({} if self.seed is None else {"seed": self.seed})}


NO_CHOICE: Final = Parameters()
_Range = tuple[Decimal, Decimal]
_DECIMALS: Final[Mapping[str, _Range]] = {
    "temperature": (Decimal(0), Decimal(2)),
    "top_p": (Decimal(0), Decimal(1)),
}
_INTEGERS: Final[Mapping[str, range]] = {
    "seed": range(_MAX_INT),
    "max_output_tokens": range(1, _MAX_INT),
    "context_tokens": range(1024, _MAX_INT),
    "thinking": range(1024, _MAX_INT),
}


def split_name(text: str) -> tuple[str, Parameters]:
    """Return a model's name and the parameters behind it.

    Args:
        text: `NAME` or `NAME?temperature=0.2&seed=7`.

    Raises:
        ConfigurationError: A parameter is unknown, given twice, or out of range.
    """
    name, mark, query = text.partition("?")
    if not mark:
        return name, NO_CHOICE
    try:
        if not query:
            raise ValueError("nothing behind the mark")
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError as error:
        raise ConfigurationError(f"parameters look like ?temperature=0.2&seed=7, not ?{query}") from error
    values: dict[str, Decimal | int | str] = {}
    for key, value in pairs:
        if key in values:
            raise ConfigurationError(f"the parameter {key} is given twice")
        values[key] = _read(key, value)
    return name, Parameters(**values)  # type: ignore[arg-type]  # each is read by its own name


def _read(key: str, value: str) -> Decimal | int | str:
    if (key, value) in _WORDS:
        return value
    if key == "tools":
        raise ConfigurationError(f"tools can be {SCHEMA!r}, not {value!r}")
    if key in _INTEGERS:
        allowed = _INTEGERS[key]
        if value.isascii() and value.isdigit() and int(value[:20]) in allowed:
            return int(value)
        raise ConfigurationError(f"{key} is a whole number from {allowed.start}, not {value!r}")
    if key in _DECIMALS:
        low, high = _DECIMALS[key]
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite() and low <= number <= high:
            # One spelling for one number, since it is part of a digest.
            return number.normalize() + 0
        raise ConfigurationError(f"{key} is a number from {low} to {high}, not {value!r}")
    known = ", ".join([*_DECIMALS, *_INTEGERS, "tools"])
    raise ConfigurationError(f"no parameter {key!r}: there are {known}")
