"""What is made verifies: records and proofs of every small size, for every event, against the RFC's own words."""

import pytest

from affidavit.crypto import (
    FailureCode,
    ProducerError,
    encode_consistency_proof,
    encode_event_proof,
    encode_record,
    leaf_hash,
    verify_checkpoint,
    verify_consistency,
    verify_event_proof,
    verify_record,
)
from affidavit.crypto.hashing import EMPTY_ROOT
from tests.crypto.oracles.rfc9162 import Reference
from tests.crypto.samples import checkpoint, events, keyring, tree
from tests.environment import SOAK

LARGEST = 300 if SOAK else 128
EVENTS = events(LARGEST)
WHOLE = tree(EVENTS)
REFERENCE = Reference([leaf_hash(data) for data in EVENTS])


def test_nothing_can_be_signed_and_not_recorded() -> None:
    """A checkpoint over no events verifies alone, with the RFC's empty root; no record of it can be made."""
    signed = checkpoint(tree([]))
    assert verify_checkpoint(signed, keyring()).checkpoint.root == EMPTY_ROOT == REFERENCE.root(0)
    with pytest.raises(ProducerError) as refusal:
        encode_record([], signed)
    assert refusal.value.code is FailureCode.RECORD_EMPTY


@pytest.mark.parametrize("size", range(1, LARGEST + 1))
def test_made_then_verified_for_every_size_and_index(size: int) -> None:
    """Record and every event's proof of a run of this size verify, and give back the exact bytes and the RFC's root."""
    carried, signed = EVENTS[:size], checkpoint(WHOLE, size)
    record = verify_record(encode_record(carried, signed), keyring())
    assert record.checkpoint is not None
    assert (record.checkpoint.size, record.checkpoint.root) == (size, REFERENCE.root(size))
    for index, data in enumerate(carried):
        path = REFERENCE.path(index, size)
        found = verify_event_proof(encode_event_proof(size, index, data, path, signed), keyring())
        assert (found.canonical, found.index, found.size) == (data, index, size)
        assert list(WHOLE.inclusion(index, size)) == path


@pytest.mark.parametrize("size", range(1, LARGEST + 1))
def test_each_size_extends_those_before_it(size: int) -> None:
    """The proof between two signed sizes is the RFC's, and verifies, at the ends and in the middle."""
    after = checkpoint(WHOLE, size)
    for old in sorted({1, size // 3, size // 2, size - 1, size} - {0}):
        path = REFERENCE.proof(old, size)
        proof = encode_consistency_proof(after, path, checkpoint(WHOLE, old))
        found = verify_consistency(proof, keyring())
        assert (found.before.checkpoint.size, found.after.checkpoint.size) == (old, size)
        assert list(WHOLE.consistency(old, size)) == path
