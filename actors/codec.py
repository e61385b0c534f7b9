"""Turns an `Event` into the payload that is stored and sealed, and a stored row back into an `Event`.

Encoding is strict: what cannot be represented is an error of the caller, after outside text was made valid (see `text`).
Decoding is total: any canonical event becomes an `Event`, and a payload value of an unexpected type lands in `detail` instead of
failing the reader. The salt that blinds each leaf is added here and never shown.
"""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, cast

from affidavit.actors.events import NO_DETAIL, SCHEMA_VERSION, ActorType, Detail, Event, Kind, Usage
from affidavit.actors.ids import new_salt
from affidavit.crypto.event import Envelope, decode_event, encode_fields
from affidavit.crypto.shown_args import args_digest

STORED_TYPES: Final[dict[str, str]] = {
    Kind.ACTION_ADMITTED: "dispatch.start",
    Kind.ACTION_COMPLETED: "dispatch.end",
    Kind.ACTION_REJECTED: "dispatch.rejected",
    Kind.RECORD_SEALED: "spine.record",
    Kind.CHECK: "check.recorded",
    Kind.OUTCOME: "outcome.recorded",
}
_KINDS: Final = {stored: kind for kind, stored in STORED_TYPES.items()}

# Stored types are one-to-one with kinds; a program that reports a kind named like another kind's stored type would make two
# kinds share one type, so such names are refused.
_RESERVED: Final = frozenset(STORED_TYPES.values())

_SYSTEM_KINDS: Final = frozenset(
    {
        Kind.SESSION_STARTED,
        Kind.STALLED,
        Kind.ACTION_REJECTED,
        Kind.EGRESS_DECISION,
        Kind.REQUEST_ANSWERED,
    }
)
_SYSTEM_PREFIXES: Final = ("goal.", "record.")
_HUMAN_KINDS: Final = frozenset(
    {
        Kind.USER_MESSAGE,
        Kind.REQUEST_CANCEL,
        Kind.REQUEST_SEAL,
        Kind.REQUEST_DECIDE,
        Kind.REQUEST_BRAKE,
    }
)
_RULINGS: Final = frozenset({Kind.APPROVAL_DECIDED, Kind.BRAKE_ENGAGED, Kind.BRAKE_RELEASED})

# attribute -> payload key, for plain text fields left out when empty
_TEXT_KEYS: Final = {
    "goal": "goal",
    "child": "child",
    "text": "text",
    "tool": "tool",
    "tool_use_id": "toolUseID",
    "input": "input",
    "result": "result",
    "stop_reason": "stopReason",
    "err": "error",
    "action": "action",
    "trust": "trust",
    "error_class": "error_class",
    "error_code": "error_code",
    "host": "host",
    "reason": "reason",
}
_INT_KEYS: Final = {"turn": "turn", "call": "call"}
_BOOL_KEYS: Final = {"is_error": "isError", "allowed": "allowed"}
_USAGE_KEYS: Final = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadTokens",
    "cache_write_tokens": "cacheWriteTokens",
}
# Written even when empty or false, because their absence would say something else.
_ALWAYS: Final[dict[str, tuple[tuple[str, object], ...]]] = {
    Kind.ASSISTANT: (("text", ""),),
    Kind.CONVERGED: (("text", ""),),
    Kind.EGRESS_DECISION: (("allowed", False),),
}

_NAMED: Final[tuple[tuple[dict[str, str], type], ...]] = (
    (_TEXT_KEYS, str),
    (_INT_KEYS, int),
    (_BOOL_KEYS, bool),
)
_TYPE_OF_KEY: Final[dict[str, type]] = {key: plain for names, plain in _NAMED for key in names.values()}
_VALUES: Final = attrgetter(*(name for names, _ in _NAMED for name in names))
# What `detail` may not hold without a closer look.
_OWNED: Final = frozenset({"salt", "usage", *_TYPE_OF_KEY})


def actor_of(kind: str, principal: str = "") -> ActorType:
    """Return who an event speaks for.

    Args:
        kind: What it says.
        principal: Who asked; a ruling that names nobody, such as the expiry of a request, is the system's own.
    """
    if kind in _SYSTEM_KINDS or kind.startswith(_SYSTEM_PREFIXES):
        return ActorType.SYSTEM
    if kind in _RULINGS:
        return ActorType.HUMAN if principal else ActorType.SYSTEM
    return ActorType.HUMAN if kind in _HUMAN_KINDS else ActorType.AGENT


def stored_type(kind: str) -> str:
    """Return the type under which a kind is stored.

    Raises:
        ValueError: The kind is the stored type of another kind, or empty.
    """
    if not kind or kind in _RESERVED:
        raise ValueError(f"{kind!r} cannot be reported as a kind")
    return str(STORED_TYPES.get(kind, kind))


def usage_payload(usage: Usage) -> dict[str, int]:
    """Return a usage as its payload map, zero fields left out."""
    pairs = ((key, getattr(usage, name)) for name, key in _USAGE_KEYS.items())
    return {key: value for key, value in pairs if value}


def payload_of(event: Event) -> dict[str, object]:
    """Return the payload of an event, without its salt.

    Raises:
        ValueError: `detail` holds a key and value that a reader would take for a field of the event.
    """
    payload: dict[str, object] = {
        key: value for key, value in zip(_TYPE_OF_KEY, _VALUES(event), strict=True) if value
    }
    for key, value in payload.items():
        plain = _TYPE_OF_KEY[key]
        if value.__class__ is not plain:
            # The encoder takes exact types alone; a member of a string enumeration is a plain string here.
            payload[key] = plain(value)
    for key, empty in _ALWAYS.get(event.kind, ()):
        payload.setdefault(key, empty)
    if event.usage is not None:
        payload["usage"] = usage_payload(event.usage)
    if event.detail:
        if not _OWNED.isdisjoint(event.detail):
            _check_detail(event.detail, payload)
        payload.update(event.detail)
    return payload


def encode(event: Event, *, stream: str, seq: int, time: int) -> bytes:
    """Return the canonical bytes of one event as it will be stored and sealed; `encode_whole` says how."""
    return encode_whole(event, stream=stream, seq=seq, time=time)[0]


def encode_whole(event: Event, *, stream: str, seq: int, time: int) -> tuple[bytes, dict[str, Any]]:
    """Return the canonical bytes of one event as it will be stored and sealed, and what they hold.

    Args:
        event: The event to record; its own seq, time and actor are not read.
        stream: The stream it belongs to.
        seq: Its position.
        time: Unix nanoseconds.

    Returns:
        The bytes; and the fields of the envelope as decoding would give them again. The payload, with its salt, is in order, and
        apart from what was given.

    Raises:
        ProducerError: A value has no canonical form (`enc.encode`).
        ValueError: The kind or a detail key may not be used.
    """
    payload = payload_of(event)
    payload["salt"] = new_salt()
    fields: dict[str, Any] = {
        "seq": seq,
        "time": time,
        "type": stored_type(event.kind),
        "actor": str(actor_of(event.kind, event.principal)),
        "stream": stream,
        "payload": payload,
    }
    # Compared, so that what is no text is refused as such.
    if event.principal != "":
        fields["principal"] = event.principal
    if event.causation_id != "":
        fields["causation_id"] = event.causation_id
    fields["schema_version"] = SCHEMA_VERSION
    return encode_fields(fields), fields


def decode(data: bytes) -> Event:
    """Return the event that a stored row holds.

    Raises:
        VerificationError: The bytes are not one canonical event.
    """
    return view(decode_event(data))


def view(envelope: Envelope) -> Event:
    """Return an envelope as an `Event`. Total: no payload makes it fail."""
    rest = dict(envelope.payload)
    salt = rest.pop("salt", None)
    fields: dict[str, object] = {}
    for names, wanted in _NAMED:
        for name, key in names.items():
            if type(rest.get(key)) is wanted:
                fields[name] = rest.pop(key)
    usage = _usage(rest.get("usage"))
    if usage is not None:
        del rest["usage"]
    return Event(
        kind=kind_of(envelope.type),
        seq=envelope.seq,
        time=envelope.time,
        actor=envelope.actor,
        usage=usage,
        principal=envelope.principal,
        causation_id=envelope.causation_id,
        detail=MappingProxyType(rest) if rest else NO_DETAIL,
        schema_version=envelope.schema_version,
        args_digest=args_digest(salt, fields.get("input", "")) if envelope.type == Kind.TOOL_CALL else b"",
        **fields,  # type: ignore[arg-type]  # each value was checked against its field's own type above
    )


def kind_of(stored: str) -> str:
    """Return the kind of a stored type.

    A foreign store may hold a type named like one of our kinds that is stored under another name; L4 does not read it as that
    kind, so neither does a reader here.
    """
    return f"unmapped.{stored}" if stored in STORED_TYPES else _KINDS.get(stored, stored)


def _check_detail(detail: Detail, payload: dict[str, object]) -> None:
    clash = sorted(key for key, value in detail.items() if key in payload or _is_owned(key, value))
    if clash:
        raise ValueError(f"detail repeats the payload keys {clash}")


def _is_owned(key: str, value: object) -> bool:
    """Tell whether a reader would not find this pair in `detail` again, because a field of the event takes it."""
    if key == "salt":
        return True
    if key == "usage":
        return _usage(value) is not None
    return _TYPE_OF_KEY.get(key) is type(value)


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    if not all(type(item) is int and key in _USAGE_KEYS.values() for key, item in fields.items()):
        return None
    return Usage(**{name: cast("int", fields.get(key, 0)) for name, key in _USAGE_KEYS.items()})
