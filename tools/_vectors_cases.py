"""The shape of a test vector, and the raw builders that can break every rule of the format on purpose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.checkpoint import CONTENT_TYPE, Checkpoint, sign_checkpoint
from affidavit.crypto.cose import protected_header, signature_input
from affidavit.crypto.event import Envelope, encode_event
from affidavit.crypto.failures import FailureCode
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keys import SigningKey
from affidavit.crypto.merkle import Tree

KID: Final = b"affidavit-vectors"
KEY: Final = SigningKey.from_seed(bytes(range(33, 65)))
ORIGIN: Final = "run/vectors"
TIME: Final = 1_700_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """One vector: what it is, what a verifier must say, and its bytes.

    Attributes:
        name: Dotted, ending in what is wrong or notable.
        kind: `events`, or the kind of artifact, as in the published manifests.
        tier: The tier whose check decides.
        code: The failure code; None where it must be accepted.
        description: One sentence.
        parts: The artifact, or the events of a stream.
    """

    name: str
    kind: str
    tier: str
    code: FailureCode | None
    description: str
    parts: tuple[bytes, ...]


def event(seq: int = 1, payload: dict[str, object] | None = None, **changes: object) -> bytes:
    """Return the canonical bytes of an event of these vectors' stream."""
    fields: dict[str, object] = {
        "stream": ORIGIN,
        "seq": seq,
        "time": TIME,
        "type": "note",
        "actor": "agent",
        "payload": payload or {},
    }
    return encode_event(Envelope(**(fields | changes)))  # type: ignore[arg-type]


def splice(data: bytes, old: bytes, new: bytes) -> bytes:
    """Return bytes with the one occurrence of a part replaced.

    Raises:
        ValueError: Where the part does not occur exactly once, so that no vector is made by accident.
    """
    if data.count(old) != 1:
        raise ValueError(f"{old.hex()} occurs {data.count(old)} times")
    return data.replace(old, new)


def payload_of(encoded: bytes) -> bytes:
    """Return an event whose payload is this encoded item, canonical or not."""
    return splice(event(), b"\x67payload\xa0", b"\x67payload" + encoded)


def tree_of(events: Sequence[bytes]) -> Tree:
    """Return the tree over events."""
    tree = Tree()
    for data in events:
        tree.append(leaf_hash(data))
    return tree


def signed(size: int, root: bytes, origin: str = ORIGIN) -> bytes:
    """Return a checkpoint under the vectors' key."""
    return sign_checkpoint(Checkpoint(origin, size, root), kid=KID, sign=KEY.sign)


def signed_tree(tree: Tree, size: int | None = None, origin: str = ORIGIN) -> bytes:
    """Return a checkpoint of a tree at a size."""
    return signed(tree.size if size is None else size, tree.root(size), origin)


def message(
    payload: bytes,
    *,
    protected: bytes | None = None,
    unprotected: bytes = b"\xa0",
    framed_payload: bytes | None = None,
    opening: bytes = b"\xd2\x84",
    closing: bytes = b"",
    sign: Callable[[bytes], bytes] = KEY.sign,
) -> bytes:
    """Return a COSE message whose parts are taken as given, signed over the protected header and payload."""
    protected = protected_header(CONTENT_TYPE, KID) if protected is None else protected
    signature = sign(signature_input(protected, payload))
    return b"".join(
        (
            opening,
            heads.write_bytes(protected),
            unprotected,
            heads.write_bytes(payload) if framed_payload is None else framed_payload,
            heads.write_bytes(signature),
            closing,
        )
    )


EVENTS: Final = tuple(event(seq) for seq in range(1, 6))
TREE: Final = tree_of(EVENTS)
SIGNED: Final = signed_tree(TREE)
