"""A verifier of records and proofs composed of cwt and scitt-cose alone: none of our code takes part in its verdict."""

import pytest

from affidavit.crypto import (
    encode_consistency_proof,
    encode_event_proof,
    encode_record,
    verify_consistency,
    verify_event_proof,
    verify_record,
)
from tests.crypto.samples import KEY, KID, checkpoint, code_of, events, keyring, tree
from tests.environment import SOAK
from tests.peers.peer import Peer, accepts

LARGEST = 64 if SOAK else 17
EVENTS = events(LARGEST)
WHOLE = tree(EVENTS)
SIGNER = (KEY.public.hex, KID.hex())


def event_proof(index: int, size: int) -> bytes:
    """The proof of one event in a tree of some size."""
    return encode_event_proof(
        size, index, EVENTS[index], WHOLE.inclusion(index, size), checkpoint(WHOLE, size)
    )


def extension(old: int, new: int) -> bytes:
    """The proof that one size extends another."""
    return encode_consistency_proof(
        checkpoint(WHOLE, new), WHOLE.consistency(old, new), checkpoint(WHOLE, old)
    )


@pytest.mark.parametrize("size", range(1, LARGEST + 1))
def test_everything_we_emit_is_accepted(peer: Peer, size: int) -> None:
    """The record, every event's proof, and the proof from every earlier size."""
    record = encode_record(EVENTS[:size], checkpoint(WHOLE, size))
    assert accepts(peer, "record", record.hex(), *SIGNER)
    for index in range(size):
        assert accepts(peer, "event_proof", event_proof(index, size).hex(), *SIGNER)
    for old in range(1, size + 1):
        assert accepts(peer, "extension", extension(old, size).hex(), *SIGNER)


def test_what_is_signed_or_hashed_cannot_change_unnoticed_by_either(peer: Peer) -> None:
    """One bit of each byte of the event, the paths and the signatures."""
    signature = slice(-64, None)
    proof, path = event_proof(3, 7), b"".join(WHOLE.inclusion(3, 7)[:1])
    for part in (EVENTS[3], path, checkpoint(WHOLE, 7)[signature]):
        for changed in changes(proof, part):
            assert not accepts(peer, "event_proof", changed.hex(), *SIGNER)
            assert code_of(verify_event_proof, changed, keyring()) is not None
    proof = extension(3, 7)
    for part in (
        WHOLE.consistency(3, 7)[0],
        checkpoint(WHOLE, 3)[signature],
        checkpoint(WHOLE, 7)[signature],
    ):
        for changed in changes(proof, part):
            assert not accepts(peer, "extension", changed.hex(), *SIGNER)
            assert code_of(verify_consistency, changed, keyring()) is not None
    record = encode_record(EVENTS[:2], checkpoint(WHOLE, 2))
    for part in (*EVENTS[:2], checkpoint(WHOLE, 2)[signature]):
        for changed in changes(record, part):
            assert not accepts(peer, "record", changed.hex(), *SIGNER)
            assert code_of(verify_record, changed, keyring()) is not None


def changes(data: bytes, part: bytes) -> list[bytes]:
    """The data with one bit of each byte of a part changed in turn."""
    assert data.count(part) == 1
    start = data.index(part)
    return [
        data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :]
        for place in range(start, start + len(part))
    ]
