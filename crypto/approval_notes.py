"""What tier L4 reads of the events that are about approvals: a note, small whatever the event holds.

Reading needs one event alone. A signed statement is checked here, against the event that carries it and the key that its key id
spells out; what needs the events before it is `approval_fold`'s to judge.
"""

from hashlib import sha256
from typing import Any, Final, NamedTuple

from affidavit.crypto import cbor
from affidavit.crypto.approval import APPROVED, REFUSED, ApprovalStatement, require_statement, verify_approval
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.governance_steps import KNOWN_SCHEMA_VERSIONS
from affidavit.crypto.keyring import Keyring

ASKED, DECIDED, USED = range(3)
GIVEN, DENIED, LAPSED = range(3)
MOST_KEYS: Final = 16
_KEY_BYTES: Final = 32
_SHOWN: Final = 64
NOTED: Final = {"approval.requested": ASKED, "approval.decided": DECIDED, "dispatch.start": USED}
_DECISIONS: Final = {APPROVED: GIVEN, REFUSED: DENIED}
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


class ApprovalNote(NamedTuple):
    """What one event says about an approval.

    Attributes:
        kind: `ASKED`, `DECIDED` or `USED`.
        place: The event's zero-based position in the record.
        seq: Its seq.
        call: The call that it is about.
        bind: Commits to the tool and the digest of its arguments.
        answer: `GIVEN`, `DENIED` or `LAPSED` for a decision; the seq of the decision for a use.
        expires: When the request expires, as the request or the signed statement says; None where neither is.
        signed: Whether the request asks for a signature; whether a decision carries one.
        keys: For a request, whose keys count: the name's SHA-256 and the raw key, at most sixteen of them.
        who: For a decision, the SHA-256 of the name of who made it; empty for nobody.
        shown: The beginning of that name.
        signer: The raw key that the statement is signed with; empty where its key id spells out none.
        trouble: Why the statement does not hold; empty where it does.
        named: For a request, who may decide: the SHA-256 of each name, one behind the other; empty for anyone, or for more than
            sixteen.
        time: When a decision or a use is said to have been, in Unix nanoseconds.
    """

    kind: int
    place: int
    seq: int
    call: int
    bind: bytes
    answer: int = 0
    expires: int | None = None
    signed: bool = False
    keys: tuple[tuple[bytes, bytes], ...] = ()
    who: bytes = b""
    shown: str = ""
    signer: bytes = b""
    trouble: str = ""
    named: bytes = b""
    time: int = 0


def read_note(fields: dict[str, Any], index: int) -> ApprovalNote | None:
    """Return what an event says about an approval; None for most events.

    Args:
        fields: The event's fields, which passed L1.
        index: Its zero-based position in the record.
    """
    kind = NOTED.get(fields["type"])
    if kind is None or fields["schema_version"] not in KNOWN_SCHEMA_VERSIONS:
        return None
    payload = fields["payload"]
    if kind == USED and "approval" not in payload:
        return None
    call = _number(payload.get("call"))
    if call is None:
        return None
    bind = sha256(cbor.encode([payload.get("action"), payload.get("args")])).digest()
    note = ApprovalNote(kind, index, fields["seq"], call, bind)
    if kind == ASKED:
        expires, signed = _number(payload.get("expires")), payload.get("signed") is True
        named = _named(payload.get("approvers"))
        return note._replace(expires=expires, signed=signed, keys=_keys(payload.get("keys")), named=named)
    note = note._replace(time=fields["time"])
    if kind == USED:
        return note._replace(answer=_number(payload["approval"]) or 0)
    return _decision(note, fields, payload)


def _decision(note: ApprovalNote, fields: dict[str, Any], payload: dict[str, Any]) -> ApprovalNote:
    principal, statement = fields.get("principal", ""), payload.get("statement")
    decision = payload.get("decision")
    note = note._replace(
        answer=_DECISIONS.get(decision, LAPSED) if isinstance(decision, str) else LAPSED,
        who=sha256(principal.encode()).digest() if principal else b"",
        shown=principal[:_SHOWN],
    )
    if statement is None:
        return note
    note = note._replace(signed=True)
    if not isinstance(statement, bytes):
        return note._replace(trouble="the signed statement is no message")
    try:
        found = verify_approval(statement, Keyring())
        require_statement(found, _expected(fields, payload, found.statement.expires))
    except VerificationError as error:
        # A key id that spells out no key is no fault: only whoever has the key can check the statement.
        unknown = error.code is FailureCode.SIGN_UNKNOWN_KEY
        return note if unknown else note._replace(trouble=error.detail)
    key = Keyring().lookup(found.kid)[0]
    return note._replace(signer=key.raw, expires=found.statement.expires)


def _expected(fields: dict[str, Any], payload: dict[str, Any], expires: int) -> ApprovalStatement:
    """Return what a statement must say to be about this event; the request that it answers says when it expires."""
    return ApprovalStatement(
        run=fields["stream"],
        call=payload["call"],
        action=payload.get("action", ""),
        args=payload.get("args", b""),
        decision=payload.get("decision", ""),
        principal=fields.get("principal", ""),
        reason=payload.get("reason", ""),
        request=payload.get("request", 0),
        expires=expires,
    )


def pack_notes(notes: tuple[ApprovalNote, ...], first_index: int) -> list[Any]:
    """Return notes as a value of plain lists; their indexes count from `first_index`."""
    return [
        [*note._replace(place=note.place - first_index)[:8], [list(pair) for pair in note.keys], *note[9:]]
        for note in notes
    ]


def unpack_notes(value: list[Any], first_index: int) -> tuple[ApprovalNote, ...]:
    """Return the notes of what `pack_notes` made.

    Raises:
        TypeError: It made no such value.
        ValueError: Nor such.
    """
    notes = (ApprovalNote(*item) for item in value)
    return tuple(
        note._replace(place=first_index + note.place, keys=tuple((name, key) for name, key in note.keys))
        for note in notes
    )


def _keys(value: object) -> tuple[tuple[bytes, bytes], ...]:
    if not isinstance(value, dict) or len(value) > MOST_KEYS:
        return ()
    return tuple(
        (sha256(name.encode()).digest(), key)
        for name, key in value.items()
        if isinstance(name, str) and isinstance(key, bytes) and len(key) == _KEY_BYTES
    )


def _named(value: object) -> bytes:
    if not isinstance(value, list) or len(value) > MOST_KEYS:
        return b""
    return b"".join(sha256(name.encode()).digest() for name in value if isinstance(name, str))


def _number(value: object) -> int | None:
    return value if value.__class__ is int and _LOWEST <= value <= _HIGHEST else None
