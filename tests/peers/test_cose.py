"""Checkpoints beside cwt 3.3.0, a COSE library that knows nothing of this format.

It accepts what we sign and we accept what it signs. It refuses what no COSE_Sign1 signature covers; what only
this format's profile forbids is beyond its tier, and each such place is named here.
"""

import json

import pytest

from affidavit.crypto import Checkpoint, Keyring, VerifyingKey, verify_checkpoint
from affidavit.crypto.checkpoint import CONTENT_TYPE, encode_payload
from affidavit.crypto.key_forms import read_public_key
from tests.crypto.samples import KEY, KID, STREAM, checkpoint, code_of, events, keyring, tree
from tests.environment import ROOT
from tests.peers.peer import Peer, accepts

FOLDER = ROOT / "tests" / "vectors"
MANIFEST = json.loads((FOLDER / "manifest.json").read_bytes())
(VECTORS_KEY,) = MANIFEST["keyring"]
VECTORS = {
    vector["id"].removeprefix("checkpoint."): (FOLDER / vector["artifact"]).read_bytes()
    for vector in MANIFEST["vectors"]
    if vector["kind"] == "checkpoint"
}
SIGNED = checkpoint(tree(events(3)))
# Forms that deterministic CBOR has no room for: the library decodes them, and the signature still covers the parts.
FRAMING = {"tag_long", "array_long", "array_indefinite", "trailing"}
# Labels that are not this format's: COSE allows them, or leaves their number and order to the application.
HEADERS = {"label_extra", "label_double", "labels_unsorted", "label_long", "unprotected_full"}
# What is or is not covered by the signature is the application's business.
UNSIGNED_CLAIMS = {"content_type_unprotected", "kid_absent", "kid_unprotected"}
CONTENT_TYPES = {"content_type_absent", "content_type_other"}
# The payload is opaque bytes to COSE.
PAYLOADS = {"size_negative", "size_float", "payload_trailing", "size_0_other_root"}
# The key says which algorithm it is for, and that is believed over the message.
ALGORITHM = {"alg_eddsa", "alg_absent"}


def opens(peer: Peer, message: bytes, key: VerifyingKey = KEY.public, kid: bytes = KID) -> bool:
    """Whether the library takes the message for one signed by the key."""
    return accepts(peer, "cose_payload", message.hex(), key.hex, kid.hex())


def lax(peer: Peer) -> set[str]:
    """Our vectors that we refuse and the library accepts."""
    key, kid = VerifyingKey.from_hex(VECTORS_KEY["public_key_hex"]), VECTORS_KEY["key_id"].encode()
    ours = Keyring({kid: key})
    return {
        name
        for name, data in VECTORS.items()
        if opens(peer, data, key, kid) and code_of(verify_checkpoint, data, ours) is not None
    }


@pytest.mark.parametrize("size", [0, 1, 2, 3, 24, 255, 256])
def test_cwt_opens_what_we_sign(peer: Peer, size: int) -> None:
    """It returns the exact payload, whatever the size of the integers in it."""
    built = tree(events(size))
    payload = peer("cose_payload", checkpoint(built).hex(), KEY.public.hex, KID.hex())
    assert payload == encode_payload(Checkpoint(STREAM, size, built.root())).hex()


@pytest.mark.parametrize("kid", [KID, KEY.public.did_key.encode(), b"\xff\x00", b"k" * 300])
def test_cwt_and_we_sign_the_same_bytes(peer: Peer, kid: bytes) -> None:
    """Ed25519 is deterministic, so another implementation's message is ours, byte for byte, and verifies."""
    built = tree(events(3))
    payload = encode_payload(Checkpoint(STREAM, 3, built.root()))
    seed = bytes(range(64, 96))
    theirs = peer("cose_sign", payload.hex(), seed.hex(), KEY.public.hex, kid.hex(), CONTENT_TYPE)
    assert bytes.fromhex(theirs) == checkpoint(built, kid=kid)
    assert verify_checkpoint(bytes.fromhex(theirs), Keyring({kid: KEY.public})).checkpoint.size == 3


def test_cwt_refuses_a_changed_payload_key_or_signature(peer: Peer) -> None:
    """Any bit of the payload or the signature, and any other key."""
    payload = encode_payload(Checkpoint(STREAM, 3, tree(events(3)).root()))
    start = SIGNED.index(payload)
    for place in (*range(start, start + len(payload)), *range(len(SIGNED) - 64, len(SIGNED))):
        changed = SIGNED[:place] + bytes((SIGNED[place] ^ 1,)) + SIGNED[place + 1 :]
        assert not opens(peer, changed)
        assert code_of(verify_checkpoint, changed, keyring()) is not None
    other = VerifyingKey.from_hex(VECTORS_KEY["public_key_hex"])
    assert not opens(peer, SIGNED, other)


def test_cwt_and_we_read_the_same_key(peer: Peer) -> None:
    """One public COSE_Key gives both the same key and the same key id."""
    written = peer("cose_key", KEY.public.hex, KID.hex())
    assert read_public_key(bytes.fromhex(written)) == (KEY.public, KID)
    assert peer("read_cose_key", written) == {"key": KEY.public.hex, "kid": KID.hex()}


def test_cwt_is_laxer_than_the_profile_about_framing(peer: Peer) -> None:
    """Longer heads, indefinite lengths and bytes after the message pass."""
    assert lax(peer) >= FRAMING


def test_cwt_is_laxer_than_the_profile_about_headers(peer: Peer) -> None:
    """Further, doubled and unsorted labels, and an unprotected header that holds something, pass."""
    assert lax(peer) >= HEADERS


def test_cwt_is_laxer_than_the_profile_about_unsigned_claims(peer: Peer) -> None:
    """A key id or a content type that no signature covers passes."""
    assert lax(peer) >= UNSIGNED_CLAIMS


def test_cwt_does_not_know_which_content_types_there_are(peer: Peer) -> None:
    """A signed message of another type, or of none, is a message to COSE."""
    assert lax(peer) >= CONTENT_TYPES


def test_cwt_takes_another_algorithm_than_the_key_s(peer: Peer) -> None:
    """A message of algorithm -8, or of none, passes under a key that is for -19."""
    assert lax(peer) >= ALGORITHM


def test_cwt_does_not_look_into_the_payload(peer: Peer) -> None:
    """A checkpoint that is none is opaque bytes to COSE."""
    assert lax(peer) >= PAYLOADS


def test_cwt_is_laxer_nowhere_else(peer: Peer) -> None:
    """Each of our checkpoint vectors that it accepts and we refuse is named above; it refuses none that we accept."""
    assert lax(peer) == FRAMING | HEADERS | UNSIGNED_CLAIMS | CONTENT_TYPES | PAYLOADS | ALGORITHM
    key, kid = VerifyingKey.from_hex(VECTORS_KEY["public_key_hex"]), VECTORS_KEY["key_id"].encode()
    assert opens(peer, VECTORS["size_0_empty_root"], key, kid)
