"""An event proof: one event, its path, and the signed checkpoint it leads to (tier L3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor
from affidavit.crypto.checkpoint import Checkpoint, open_checkpoint
from affidavit.crypto.container import FieldType, read_closed_map, write_closed_map
from affidavit.crypto.event import Envelope, decode_event
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.findings import Finding
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import Keyring, Trust
from affidavit.crypto.proofs import require_path_shape, verify_inclusion
from affidavit.crypto.validity import of_event

_FIELDS: Final = {
    "size": FieldType.UINT,
    "index": FieldType.UINT,
    "canonical": FieldType.BYTES,
    "inclusion": FieldType.BYTES_LIST,
    "checkpoint": FieldType.BYTES,
}


@dataclass(frozen=True, slots=True)
class VerifiedEventProof:
    """One event that stands under a signed root.

    Attributes:
        envelope: The event.
        canonical: Its exact bytes.
        index: Its zero-based position in the tree.
        checkpoint: The signed origin, size and root.
        kid: The key id that signed.
        trust: Where trust in the key comes from.
        findings: What was noticed without refusing.
    """

    envelope: Envelope
    canonical: bytes
    index: int
    checkpoint: Checkpoint
    kid: bytes
    trust: Trust
    findings: tuple[Finding, ...] = ()

    @property
    def size(self) -> int:
        """How many events the signed tree has."""
        return self.checkpoint.size


def encode_event_proof(
    size: int, index: int, canonical: bytes, inclusion: Sequence[bytes], checkpoint: bytes
) -> bytes:
    """Return the proof of one event.

    Args:
        size: How many events the signed tree has.
        index: The event's zero-based position.
        canonical: Its exact bytes.
        inclusion: Its path, as `merkle.Tree.inclusion` gives it.
        checkpoint: The signed checkpoint of that size.
    """
    return write_closed_map(
        {
            "size": size,
            "index": index,
            "canonical": canonical,
            "inclusion": inclusion,
            "checkpoint": checkpoint,
        }
    )


def verify_event_proof(
    data: bytes, keyring: Keyring, *, max_depth: int = cbor.DEFAULT_MAX_DEPTH
) -> VerifiedEventProof:
    """Verify the proof of one event: container, checkpoint, size, index, path length, event, path.

    Args:
        data: The proof, and nothing more.
        keyring: The keys trusted.
        max_depth: How many containers the event may nest.

    Raises:
        VerificationError: With the code of the first check that fails.
    """
    fields = read_closed_map(data, _FIELDS)
    size, index, canonical = fields.uint("size"), fields.uint("index"), fields.octets("canonical")
    path, signed = fields.octet_strings("inclusion"), fields.octets("checkpoint")
    opened = open_checkpoint(signed, keyring)
    if size != opened.checkpoint.size:
        raise VerificationError(
            FailureCode.RECORD_SIZE_MISMATCH,
            f"the proof is for {size} events, {opened.checkpoint.size} are signed",
            expected=opened.checkpoint.size,
            actual=size,
        )
    require_path_shape(index, size, path)
    envelope = decode_event(canonical, max_depth=max_depth)
    verify_inclusion(leaf_hash(canonical), index, size, path, opened.checkpoint.root)
    return VerifiedEventProof(
        envelope,
        canonical,
        index,
        opened.checkpoint,
        opened.kid,
        opened.trust,
        of_event(keyring, opened.kid, envelope.time),
    )
