"""One event made ready for the log: its bytes, and the event as readers will see it.

What readers see is not decoded where it is known without that: most events are recorded exactly as they were given.
"""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from affidavit.actors.codec import actor_of, decode, encode, kind_of, stored_type
from affidavit.actors.events import NO_DETAIL, Detail, Event, Kind, Usage
from affidavit.crypto.cbor_order import reorder

# What a payload value may be so that it is certainly read back as the very same.
_SCALARS: Final = frozenset({str, bytes, int, bool, type(None)})
_AS_READ: Final = _SCALARS | {Usage}
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
    data = encode(event, stream=stream, seq=seq, time=time)
    detail = _same_detail(event.detail)
    if detail is None or event.kind == Kind.TOOL_CALL:  # whose digest needs the salt
        return data, decode(data)
    seen: Event = object.__new__(Event)
    values = _READ_SAME(event)
    if not _AS_READ.issuperset(map(type, values)):
        # A member of a string enumeration is read back as the plain string it is.
        values = tuple(str(value) if isinstance(value, StrEnum) else value for value in values)
    kind = kind_of(stored_type(event.kind))
    place = (kind, seq, time, str(actor_of(event.kind, event.principal)), detail, b"")
    for write, value in zip(_WRITE, (*values, *place), strict=True):
        write(seen, value)
    return data, seen


def _same_detail(detail: Detail) -> Detail | None:
    """Return a detail as it will be read back, in canonical order and apart from the caller's own; None if that is not plain."""
    if not detail:
        return NO_DETAIL
    found: dict[str, object] = {}
    for key in reorder(tuple(detail)) or detail:
        value = detail[key]
        if type(value) is dict:
            if not _SCALARS.issuperset(map(type, value.values())):
                return None
            value = {inner: value[inner] for inner in reorder(tuple(value)) or value}
        elif type(value) not in _SCALARS:
            return None
        found[key] = value
    return MappingProxyType(found)
