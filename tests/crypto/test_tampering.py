"""A sealed record after a change: nothing that differs from what was sealed is ever accepted."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import (
    Keyring,
    encode_consistency_proof,
    encode_event_proof,
    encode_record,
    verify_checkpoint,
    verify_consistency,
    verify_event_proof,
    verify_record,
)
from tests.crypto.samples import KEY, checkpoint, code_of, events, keyring, sealed, tree

CARRIED = events(3)
RECORD = sealed(CARRIED)
CHECKPOINT = checkpoint(tree(CARRIED))
SELF_NAMED = sealed(CARRIED, kid=KEY.public.did_key.encode())


def flips(data: bytes) -> list[bytes]:
    """The data with each of its bits changed in turn."""
    return [
        data[:place] + bytes((data[place] ^ 1 << bit,)) + data[place + 1 :]
        for place in range(len(data))
        for bit in range(8)
    ]


def event_proof(index: int) -> bytes:
    """The proof of one of the sample record's events."""
    return encode_event_proof(3, index, CARRIED[index], tree(CARRIED).inclusion(index), CHECKPOINT)


def any_kid() -> Keyring:
    """A keyring that takes the sample key for every key id."""
    ring = Keyring()
    ring.add_any_kid(KEY.public)
    return ring


@pytest.mark.parametrize("ring", [keyring, any_kid], ids=["by key id", "any key id"])
def test_every_single_bit_flip_of_a_record_is_refused(ring: Callable[[], Keyring]) -> None:
    """No bit of a sealed record is free, the container's and the header's included."""
    assert code_of(verify_record, RECORD, ring()) is None
    assert [
        index for index, data in enumerate(flips(RECORD)) if code_of(verify_record, data, ring()) is None
    ] == []


def test_every_single_bit_flip_of_a_record_that_names_its_key_is_refused() -> None:
    """A key id that certifies itself leaves no bit free either."""
    ring = Keyring()
    assert code_of(verify_record, SELF_NAMED, ring) is None
    assert all(code_of(verify_record, data, ring) for data in flips(SELF_NAMED))


@pytest.mark.parametrize("ring", [keyring, any_kid], ids=["by key id", "any key id"])
def test_every_single_bit_flip_of_a_checkpoint_is_refused(ring: Callable[[], Keyring]) -> None:
    """The same holds for a checkpoint alone."""
    assert code_of(verify_checkpoint, CHECKPOINT, ring()) is None
    assert all(code_of(verify_checkpoint, data, ring()) for data in flips(CHECKPOINT))


@pytest.mark.parametrize("index", [0, 2])
def test_every_single_bit_flip_of_an_event_proof_is_refused(index: int) -> None:
    """Whether the event stands in a full or at the ragged edge of the tree."""
    proof = event_proof(index)
    assert code_of(verify_event_proof, proof, keyring()) is None
    assert all(code_of(verify_event_proof, data, keyring()) for data in flips(proof))


def test_every_single_bit_flip_of_a_consistency_proof_is_refused() -> None:
    """Both signed checkpoints, every node, and the container."""
    built = tree(events(5))
    proof = encode_consistency_proof(checkpoint(built), built.consistency(3, 5), checkpoint(built, 3))
    assert code_of(verify_consistency, proof, keyring()) is None
    assert all(code_of(verify_consistency, data, keyring()) for data in flips(proof))


def test_parts_of_two_proofs_do_not_mix() -> None:
    """An event, a path, an index or a checkpoint of one proof in place of another's is refused."""
    path = tree(CARRIED).inclusion
    other = checkpoint(tree(events(4)))
    for mixed in (
        encode_event_proof(3, 1, CARRIED[0], path(1), CHECKPOINT),
        encode_event_proof(3, 1, CARRIED[1], path(0), CHECKPOINT),
        encode_event_proof(3, 0, CARRIED[1], path(1), CHECKPOINT),
        encode_event_proof(4, 1, CARRIED[1], path(1), CHECKPOINT),
        encode_event_proof(4, 1, CARRIED[1], path(1), other),
        encode_event_proof(3, 1, CARRIED[1], path(1), other),
    ):
        assert code_of(verify_event_proof, mixed, keyring()) is not None


SEVEN = events(7)
SIGNED_SEVEN = checkpoint(tree(SEVEN))


@given(st.lists(st.sampled_from(SEVEN), max_size=9))
def test_any_other_sequence_of_the_same_events_is_refused(carried: list[bytes]) -> None:
    """Under one signature, reordered, dropped, repeated, swapped and cut events are refused; only the whole holds."""
    accepted = code_of(verify_record, encode_record(carried or [b""], SIGNED_SEVEN), keyring()) is None
    assert accepted == (carried == SEVEN)


@given(st.data())
def test_any_cut_and_any_added_tail_is_refused(data: st.DataObject) -> None:
    """A record cut anywhere, or with anything after it, is refused."""
    cut = data.draw(st.integers(0, len(RECORD) - 1))
    tail = data.draw(st.binary(min_size=1, max_size=4))
    assert code_of(verify_record, RECORD[:cut], keyring()) == "record.decode"
    assert code_of(verify_record, RECORD + tail, keyring()) == "record.decode"


@given(st.binary(max_size=80) | st.binary(max_size=30).map(lambda tail: RECORD[:20] + tail))
def test_any_bytes_get_a_code(data: bytes) -> None:
    """Only verification errors come out of a verifier, whatever the bytes."""
    for verify in (verify_record, verify_checkpoint, verify_event_proof):
        assert code_of(verify, data, keyring()) is not None
