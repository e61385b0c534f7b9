"""The secrets that were given to the runtime, and how they are kept out of everything that is recorded or shown.

A secret is looked for as it stands and in the forms that programs put texts into: JSON, Python, percent signs, base64, hex.
What is found is replaced whole. A secret that was cut in two, or changed in any other way, is not found: this is a net under a
mistake, and no defence against a tool that wants to give it away.
"""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Final, final
from urllib.parse import quote, quote_plus

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.events import Event
from affidavit.actors.models.files import read_operator_file
from affidavit.actors.models.keyrings import KEYRING_SUFFIX, read_keyring

REMOVED: Final = "[secret removed]"
SCRUBBED_MARK: Final = "scrubbed"
MIN_SECRET: Final = 8
# A line of a secret of many lines, such as a private key, is a secret of its own if it is long enough not to be an ordinary one.
_MIN_LINE: Final = 20
_MIN_PART: Final = 8
_MAX_FILE: Final = 64 * 1024
_MAX_DEPTH: Final = 32
# What names things for the runtime itself, and holds nothing from outside.
_STRUCTURAL: Final = frozenset({"kind", "actor", "goal", "child", "trust", "error_class"})
_TEXTS: Final = tuple(
    item.name for item in fields(Event) if item.type == "str" and item.name not in _STRUCTURAL
)
_READ_TEXTS: Final = attrgetter(*_TEXTS)
# The provider's content counts only whole and unaltered.
_WHOLE_OR_NOT_AT_ALL: Final = frozenset({"blocks"})


@final
@dataclass(frozen=True, slots=True)
class Secrets:
    """Some secrets. Its `repr` holds none of them.

    Attributes:
        values: The secrets as they stand.
        forms: All forms in which they are looked for, the longest first.

    Raises:
        ConfigurationError: One is too short to be told from other text.
    """

    values: frozenset[str] = field(default=frozenset(), repr=False)
    forms: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out the forms."""
        if any(len(value) < MIN_SECRET for value in self.values):
            raise ConfigurationError(
                f"a secret has at least {MIN_SECRET} characters: a shorter one cannot be told from other text"
            )
        found = {form for value in self.values for part in _parts(value) for form in _forms(part)}
        forms = tuple(sorted(found, key=lambda form: (-len(form), form)))
        pattern = re.compile("|".join(map(re.escape, forms))) if forms else None
        object.__setattr__(self, "forms", forms)
        object.__setattr__(self, "_pattern", pattern)

    @classmethod
    def of(cls, values: Iterable[str]) -> Secrets:
        """Return the secrets among these values, those left aside that are too short to be any."""
        return cls(frozenset(value for value in values if len(value) >= MIN_SECRET))

    def __or__(self, other: Secrets) -> Secrets:
        """Return the secrets of both."""
        if other.values <= self.values:
            return self
        return Secrets(self.values | other.values)

    def scrub(self, text: str) -> str:
        """Return the text with every secret in it replaced."""
        # Most texts hold none, and to look for one fixed form is far cheaper than a pattern of all.
        if self._pattern is None or not any(form in text for form in self.forms):
            return text
        return self._pattern.sub(REMOVED, text)

    def scrub_event(self, event: Event) -> Event:
        """Return the event with every secret in its texts replaced, and marked in `detail` if there was any."""
        if self._pattern is None:
            return event
        changes: dict[str, str] = {}
        for name, value in zip(_TEXTS, _READ_TEXTS(event), strict=True):
            clean = self.scrub(value) if value else value
            if clean != value:
                changes[name] = clean
        detail = {key: self._value(value, 0) for key, value in event.detail.items()}
        altered = {key for key, value in event.detail.items() if detail[key] != value}
        if not changes and not altered:
            return event
        kept = {key: value for key, value in detail.items() if key not in altered & _WHOLE_OR_NOT_AT_ALL}
        return replace(event, detail=MappingProxyType({**kept, SCRUBBED_MARK: True}), **changes)  # type: ignore[arg-type]

    def _value(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self.scrub(value)
        if depth < _MAX_DEPTH:
            if isinstance(value, Mapping):
                return {key: self._value(item, depth + 1) for key, item in value.items()}
            if isinstance(value, list | tuple):
                return [self._value(item, depth + 1) for item in value]
        return value


NO_SECRETS: Final = Secrets()


@final
class StreamScrubber:
    """Scrubs a text that comes in pieces: it holds back what may be the beginning of a secret until that is decided."""

    def __init__(self, secrets: Secrets) -> None:
        """Begin a text."""
        self._secrets = secrets
        self._held = ""
        self._longest = max(map(len, secrets.forms), default=1) - 1
        self._starts = frozenset(form[0] for form in secrets.forms)

    def feed(self, piece: str) -> str:
        """Return what is certain by now."""
        text = self._secrets.scrub(self._held + piece)
        keep = self._possible_start(text)
        self._held = text[keep:]
        return text[:keep]

    def end(self) -> str:
        """Return what was held back: no secret has come of it."""
        held, self._held = self._held, ""
        return held

    def _possible_start(self, text: str) -> int:
        """Return where the longest ending of the text begins that some form begins with."""
        for at in range(max(0, len(text) - self._longest), len(text)):
            # Most letters begin no form, and that is told at once.
            if text[at] in self._starts and any(form.startswith(text[at:]) for form in self._secrets.forms):
                return at
        return len(text)


def secret_of_environment(name: str) -> str:
    """Return a secret from the environment: the variable's value, or what its `_FILE` or `_KEYRING` names.

    It blocks for the file, and for a keyring of the operating system that asks its owner to unlock it.

    Args:
        name: The variable, such as `SEARCH_API_KEY`.

    Raises:
        ConfigurationError: None of them is set, or the file or the keyring cannot be read.
    """
    value, path = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    place = os.environ.get(f"{name}{KEYRING_SUFFIX}", "")
    if value.strip():
        return value.strip()
    if not path and place:
        return read_keyring(place, f"{name}{KEYRING_SUFFIX}").strip()
    if not path:
        raise ConfigurationError(f"neither {name} nor {name}_FILE nor {name}{KEYRING_SUFFIX} is set")
    return read_operator_file(path, f"file of {name}_FILE", _MAX_FILE).decode("utf-8", "replace").strip()


def secrets_of_file(path: str | os.PathLike[str]) -> Secrets:
    """Return the secrets that a file holds, one a line; empty lines do not count.

    Raises:
        ConfigurationError: The file cannot be read, is no UTF-8, or a line is too short to be told from other text.
    """
    try:
        text = read_operator_file(os.fspath(path), "file of secrets", _MAX_FILE).decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the file of secrets {path} is not UTF-8") from error
    return Secrets(frozenset(line.strip() for line in text.splitlines() if line.strip()))


def _parts(value: str) -> Iterator[str]:
    yield value
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _MIN_LINE)


def _forms(value: str) -> Iterator[str]:
    data = value.encode("utf-8", "replace")
    yield value
    for escaped in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield escaped
        yield json.dumps(escaped)[1:-1]
    # As it comes out of Python's own messages.
    yield from (repr(value)[1:-1], ascii(value)[1:-1], repr(data)[2:-1])
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted
        yield re.sub("%..", lambda match: match[0].lower(), quoted)
    yield html.escape(value)
    yield data.hex()
    yield data.hex().upper()
    for encode in (b64encode, urlsafe_b64encode):
        whole = encode(data).decode()
        yield whole
        yield whole.rstrip("=")
        # Within a longer text its letters depend on where it begins: three ways, without those shared with its neighbours.
        for before in range(3):
            shared = -(-before * 8 // 6)
            part = encode(bytes(before) + data).decode()[shared : (before + len(data)) * 8 // 6]
            if len(part) >= _MIN_PART:
                yield part
