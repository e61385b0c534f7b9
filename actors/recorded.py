"""One event made ready for the log: its bytes, and the event as readers will see it.

What readers see is not decoded, since all of it is known without that; a test holds the two to be the same.
"""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from affidavit.actors.codec import encode_whole, kind_of
from affidavit.actors.events import NO_DETAIL, Event, Kind, Usage
from affidavit.crypto.shown_args import args_digest

# What a field may be so that it is read back as the very same.
_AS_READ: Final = frozenset({str, int, bool, type(None), Usage})
# `dataclasses.replace` costs as much as decoding: it checks by name, and a frozen class writes each field by way of `object`.
_PLACE: Final = ("kind", "seq", "time", "actor", "detail", "args_digest")
_SAME: Final = tuple(item.name for item in fields(Event) if item.name not in _PLACE)
_READ_SAME: Final = attrgetter(*_SAME)
_WRITE: Final = tuple(getattr(Event, name).__set__ for name in (*_SAME, *_PLACE))


def record(event: Event, *, stream: str, seq: int, time: int) -> tuple[bytes, Event]:
    """Return the canonical bytes of one event, and the event as readers will see it.

    Args:
        event: As for `codec.encode`.
        stream: As for `codec.encode`.
        seq: As for `codec.encode`.
        time: As for `codec.encode`.

    Raises:
        ProducerError: As `codec.encode`.
        ValueError: As `codec.encode`.
    """
    data, stored = encode_whole(event, stream=stream, seq=seq, time=time)
    payload: dict[str, object] = stored["payload"]
    given = event.detail
    detail = MappingProxyType({key: payload[key] for key in payload if key in given}) if given else NO_DETAIL
    seen: Event = object.__new__(Event)
    values = _READ_SAME(event)
    if not _AS_READ.issuperset(map(type, values)):
        # A member of a string enumeration is read back as the plain string it is.
        values = tuple(str(value) if isinstance(value, StrEnum) else value for value in values)
    kind = kind_of(stored["type"])
    # Bound to the salt that was just drawn.
    digest = args_digest(payload["salt"], event.input) if kind == Kind.TOOL_CALL else b""
    place = (kind, seq, time, stored["actor"], detail, digest)
    for write, value in zip(_WRITE, (*values, *place), strict=True):
        write(seen, value)
    return data, seen
