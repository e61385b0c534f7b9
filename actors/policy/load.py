"""Reads a policy from a TOML file, or says in one sentence which file, which place and what is wrong with it."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.files import read_operator_file
from affidavit.actors.policy.mistakes import sentence
from affidavit.actors.policy.model import Policy

MAX_POLICY_BYTES: Final = 64 * 1024
# The parser's time and memory grow with the square of the parts of one dotted key.
_MAX_DOTS: Final = 64
_QUOTED: Final = re.compile(r"""\"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")


def load_policy(path: Path) -> Policy:
    """Return the policy that a file lays down.

    Args:
        path: A TOML file of at most `MAX_POLICY_BYTES`.

    Raises:
        ConfigurationError: It cannot be read, or it is no policy.
    """
    return parse_policy(read_operator_file(path, "policy", MAX_POLICY_BYTES), str(path))


def parse_policy(data: bytes, name: str) -> Policy:
    """Return the policy that TOML text lays down. An empty one lays down that nothing may be used.

    Args:
        data: The text, in UTF-8.
        name: Where it comes from, for the sentence.

    Raises:
        ConfigurationError: It is no policy.
    """
    try:
        # Decimal, so that an amount of money is what was written and not the nearest binary number.
        tables = tomllib.loads(_bounded(data.decode()), parse_float=Decimal)
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name}: this is not a text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name}: this is not TOML: {_lower(str(error))}") from None
    except (RecursionError, ValueError, ArithmeticError):
        # What the parser passes on of numbers that are too long, and of brackets within brackets without end.
        raise ConfigurationError(f"{name}: this is not TOML that anybody would write by hand") from None
    try:
        return Policy.model_validate(tables)
    except ValidationError as error:
        raise ConfigurationError(f"{name}: {sentence(error, Policy)}") from None


def _bounded(text: str) -> str:
    """Return the text.

    Raises:
        ValueError: A line has a key of very many parts.
    """
    for line in text.splitlines():
        if line.count(".") > _MAX_DOTS and _QUOTED.sub("", line).count(".") > _MAX_DOTS:
            raise ValueError("a key of very many parts")
    return text


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
