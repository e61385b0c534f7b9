"""A consistency proof (tier L3): two signed checkpoints, and a path that shows one to extend the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.crypto.checkpoint import VerifiedCheckpoint, open_checkpoint
from affidavit.crypto.container import FieldType, read_closed_map, write_closed_map
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.keyring import Keyring, Trust
from affidavit.crypto.proofs import verify_consistency_path

_FIELDS: Final = {"after": FieldType.BYTES, "proof": FieldType.BYTES_LIST, "before": FieldType.BYTES}


@dataclass(frozen=True, slots=True)
class VerifiedConsistency:
    """Two signed checkpoints of one origin, the later an extension of the earlier."""

    before: VerifiedCheckpoint
    after: VerifiedCheckpoint

    @property
    def trust(self) -> Trust:
        """The lesser trust of the two signatures."""
        return Trust.KEYRING if self.before.trust is self.after.trust is Trust.KEYRING else Trust.SELF


def encode_consistency_proof(after: bytes, proof: Sequence[bytes], before: bytes) -> bytes:
    """Return the proof that one signed checkpoint extends another.

    Args:
        after: The later signed checkpoint.
        proof: The path, as `merkle.Tree.consistency` gives it.
        before: The earlier signed checkpoint.
    """
    return write_closed_map({"after": after, "proof": proof, "before": before})


def verify_consistency(data: bytes, keyring: Keyring) -> VerifiedConsistency:
    """Verify that a later checkpoint extends an earlier one.

    Args:
        data: The proof, and nothing more.
        keyring: The keys trusted.

    Raises:
        VerificationError: `record.*` for the container, `sign.*` for either checkpoint,
            `merkle.consistency_invalid` for everything between them.
    """
    fields = read_closed_map(data, _FIELDS)
    after, path, before = fields.octets("after"), fields.octet_strings("proof"), fields.octets("before")
    old, new = open_checkpoint(before, keyring), open_checkpoint(after, keyring)
    if old.checkpoint.origin != new.checkpoint.origin:
        raise VerificationError(
            FailureCode.MERKLE_CONSISTENCY_INVALID,
            "the two checkpoints are of different origins",
            expected=old.checkpoint.origin,
            actual=new.checkpoint.origin,
        )
    verify_consistency_path(
        old.checkpoint.size, old.checkpoint.root, new.checkpoint.size, new.checkpoint.root, path
    )
    return VerifiedConsistency(old, new)
