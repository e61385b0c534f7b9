"""A sealed record after a change: nothing that differs from what was sealed is ever accepted."""

import provetrail
import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import Keyring, encode_record, verify_checkpoint, verify_event_proof, verify_record
from affidavit.crypto.event_proof import encode_event_proof
from tests.crypto.samples import KEY, KID, checkpoint, code_of, events, keyring, sealed, tree
from tests.environment import SOAK

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


def any_kid() -> Keyring:
    """A keyring that takes the sample key for every key id."""
    ring = Keyring()
    ring.add_any_kid(KEY.public)
    return ring


@pytest.mark.parametrize("ring", [keyring, any_kid], ids=["by key id", "any key id"])
def test_every_single_bit_flip_of_a_record_is_refused(ring: type[Keyring]) -> None:
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


def test_every_single_bit_flip_of_a_checkpoint_and_of_a_proof_is_refused() -> None:
    """The same holds for a checkpoint alone and for an event's proof."""
    proof = encode_event_proof(3, 1, CARRIED[1], tree(CARRIED).inclusion(1), CHECKPOINT)
    assert code_of(verify_event_proof, proof, keyring()) is None
    assert all(code_of(verify_event_proof, data, keyring()) for data in flips(proof))
    assert all(code_of(verify_checkpoint, data, keyring()) for data in flips(CHECKPOINT))


def peer_says(data: bytes) -> str:
    """What the published client says: accepted, refused, or the exception that it let out."""
    try:
        provetrail.verify_run(data, {KID.decode(): KEY.public.raw})
    except provetrail.VerifyError:
        return "refused"
    except Exception as error:
        return type(error).__name__
    return "accepted"


def test_the_published_client_accepts_what_we_make() -> None:
    """An independent verifier agrees on records of many sizes."""
    for count in range(1, 20):
        carried = events(count)
        assert provetrail.verify_run(sealed(carried), KEY.public.raw).events == carried
    assert peer_says(RECORD) == "accepted"


def test_the_published_client_misses_flips_of_the_unprotected_header() -> None:
    """Version 0.3.0 accepts an array, a negative number or a simple value where the empty header stands.

    Nothing signs the unprotected header, so only its form can be checked. We refuse every flip of it.
    """
    place = RECORD.index(CHECKPOINT) + CHECKPOINT.index(b"\xa0")
    missed = {data[place] for data in flips(RECORD) if peer_says(data) == "accepted"}
    assert RECORD[place] == 0xA0
    assert missed == {0x80, 0xE0, 0x20}
    assert all(data[:place] == RECORD[:place] for data in flips(RECORD) if peer_says(data) == "accepted")


def test_the_published_client_lets_other_errors_out_where_the_framing_is_broken() -> None:
    """Version 0.3.0 ends in a TypeError or ValueError for some flips of the message's three string heads."""
    escaped = {peer_says(data) for data in flips(RECORD)} - {"accepted", "refused"}
    assert escaped == {"TypeError", "ValueError"}


def test_the_published_client_misses_events_that_are_not_canonical_or_not_in_order() -> None:
    """Version 0.3.0 looks at no event: repeated, foreign and malformed ones pass if they were sealed so."""
    for carried in ([CARRIED[0], CARRIED[0]], [CARRIED[1], CARRIED[0]], [b"\xa0"], [CARRIED[0] + b"\x00"]):
        data = sealed(carried)
        assert peer_says(data) == "accepted"
        assert code_of(verify_record, data, keyring()) is not None


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


@pytest.mark.parametrize("size", range(1, 301 if SOAK else 71))
def test_made_then_verified_for_every_size_and_index(size: int) -> None:
    """Record and every event's proof of a run of this size verify, and give back the exact bytes."""
    carried = events(size)
    built = tree(carried)
    signed = checkpoint(built)
    assert verify_record(encode_record(carried, signed), keyring()).events == tuple(carried)
    for index, data in enumerate(carried):
        found = verify_event_proof(
            encode_event_proof(size, index, data, built.inclusion(index), signed), keyring()
        )
        assert (found.canonical, found.index, found.size) == (data, index, size)
