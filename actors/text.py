"""Makes text from outside fit to be recorded: valid UTF-8, bounded, and marked wherever it was altered.

A model or a tool may hand over anything. What is recorded here is also exactly what the model is shown, so both see the same
repaired text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from affidavit.actors.events import Event

DEFAULT_TEXT_LIMIT: Final = 256 * 1024
REPLACED_MARK: Final = "replaced"
_MAX_DEPTH: Final = 32
_INT64: Final = range(-(2**63), 2**63)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Cut:
    """What a shortened text was before.

    Attributes:
        length: Its whole length in UTF-8 bytes.
        sha256: The digest of the whole text's UTF-8 bytes.
    """

    length: int
    sha256: bytes

    def as_detail(self) -> dict[str, object]:
        """Return it as the payload value of `cut`."""
        return {"bytes": self.length, "sha256": self.sha256}


def clean(text: str) -> str:
    """Return the text with each lone surrogate, which has no UTF-8 form, as U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def fit(text: str, limit: int = DEFAULT_TEXT_LIMIT) -> tuple[str, Cut | None]:
    """Return clean text of at most `limit` UTF-8 bytes, and what it was if it had to be cut.

    Args:
        text: Any text.
        limit: The most bytes to keep; the cut falls between characters.
    """
    whole = clean(text).encode()
    if len(whole) <= limit:
        return whole.decode(), None
    return whole[:limit].decode("utf-8", "ignore"), Cut(len(whole), sha256(whole).digest())


def recordable(event: Event) -> Event:
    """Return the event with every value made recordable, marked in `detail` if anything had to be changed.

    The last defence of the stream: lone surrogates become U+FFFD, numbers that the format has no form for become text, and
    what nests too deeply is dropped.
    """
    changes: dict[str, object] = {}
    for item in fields(event):
        value = getattr(event, item.name)
        if isinstance(value, str) and clean(value) != value:
            changes[item.name] = clean(value)
        elif type(value) is int and value not in _INT64:
            changes[item.name] = 0
    detail = {clean(str(key)): _value(value, 0) for key, value in event.detail.items()}
    detail[REPLACED_MARK] = True
    usage = event.usage
    if usage is not None and any(getattr(usage, item.name) not in _INT64 for item in fields(usage)):
        changes["usage"] = None
    return replace(event, detail=MappingProxyType(detail), **changes)  # type: ignore[arg-type]  # same types as before


def _value(value: object, depth: int) -> object:
    if value is None or isinstance(value, bool | bytes):
        return value
    if isinstance(value, str):
        return clean(str(value))
    if isinstance(value, int):
        return int(value) if value in _INT64 else str(value)
    if depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            return {clean(str(key)): _value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [_value(item, depth + 1) for item in value]
    return clean(str(value)) if depth < _MAX_DEPTH else None
