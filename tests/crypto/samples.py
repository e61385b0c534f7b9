"""Small sealed records and what they are made of, from fixed keys."""

from collections.abc import Callable, Sequence
from typing import Any

from affidavit.crypto import (
    Checkpoint,
    Envelope,
    FailureCode,
    Keyring,
    SigningKey,
    Tree,
    VerificationError,
    encode_event,
    encode_record,
    leaf_hash,
    sign_checkpoint,
    verify_checkpoint,
    verify_consistency,
    verify_event_proof,
    verify_record,
)

KEY = SigningKey.from_seed(bytes(range(64, 96)))
KID = b"sample-key"
STREAM = "run/sample"
TIME = 1_700_000_000_000_000_000
# What checks each kind of artifact in a manifest of vectors.
VERIFIERS: dict[str, Callable[[bytes, Keyring], object]] = {
    "run": verify_record,
    "governance": verify_record,
    "ground_truth": verify_record,
    "checkpoint": verify_checkpoint,
    "event_proof": verify_event_proof,
    "consistency": verify_consistency,
}


def by_id(vector: dict[str, Any]) -> str:
    """The id of a case in a manifest."""
    return str(vector["id"])


def keyring() -> Keyring:
    """A keyring with the sample key under the sample key id."""
    return Keyring({KID: KEY.public})


def event(seq: int, kind: str = "note", payload: dict[str, Any] | None = None, **changes: Any) -> bytes:
    """The bytes of one event of the sample stream."""
    fields: dict[str, Any] = {
        "stream": STREAM,
        "seq": seq,
        "time": TIME + seq,
        "type": kind,
        "actor": "agent",
    }
    return encode_event(Envelope(**(fields | {"payload": payload or {}} | changes)))


def events(count: int) -> list[bytes]:
    """The bytes of a dense run of events."""
    return [event(seq) for seq in range(1, count + 1)]


def tree(leaves: Sequence[bytes]) -> Tree:
    """The tree over some events."""
    built = Tree()
    for data in leaves:
        built.append(leaf_hash(data))
    return built


def checkpoint(built: Tree, size: int | None = None, *, kid: bytes = KID, origin: str = STREAM) -> bytes:
    """A signed checkpoint of a tree."""
    size = built.size if size is None else size
    return sign_checkpoint(Checkpoint(origin, size, built.root(size)), kid=kid, sign=KEY.sign)


def sealed(carried: Sequence[bytes], *, kid: bytes = KID, origin: str = STREAM) -> bytes:
    """A record whose signature and root are right, whatever the events are."""
    return encode_record(carried, checkpoint(tree(carried), kid=kid, origin=origin))


def steps(*kinds_and_payloads: tuple[str, dict[str, Any]]) -> bytes:
    """A sealed record of events with these types and payloads, in order."""
    carried = [event(seq, kind, payload) for seq, (kind, payload) in enumerate(kinds_and_payloads, 1)]
    return sealed(carried)


def code_of(check: Any, *arguments: Any, **options: Any) -> FailureCode | None:
    """The code with which a check refuses; None where it accepts. Any other exception comes out."""
    try:
        check(*arguments, **options)
    except VerificationError as error:
        return error.code
    return None
