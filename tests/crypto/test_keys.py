"""Ed25519 keys: every form in and out, sound points only."""

from itertools import product
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import FailureCode, ProducerError, SigningKey, VerifyingKey, base58
from affidavit.crypto.curve import require_sound_point
from affidavit.crypto.keys import parse_did_key

KEY = SigningKey.from_seed(bytes(32))
P = 2**255 - 19
PEM = serialization.Encoding.PEM


def refused(make: Any, *arguments: Any) -> FailureCode:
    """The code with which a constructor refuses."""
    with pytest.raises(ProducerError) as refusal:
        make(*arguments)
    return refusal.value.code


def test_the_published_key_of_the_did_key_specification() -> None:
    """The did:key form is the one that the specification's own example has."""
    did = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"
    key = VerifyingKey.from_hex("3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29")
    assert key.did_key == did
    assert parse_did_key(did) == key == KEY.public


@given(st.binary(min_size=32, max_size=32))
def test_a_key_comes_back_from_each_of_its_forms(seed: bytes) -> None:
    """Raw, hexadecimal, PEM, OpenSSH line and did:key all name the same key."""
    key = SigningKey.from_seed(seed).public
    pem = Ed25519PublicKey.from_public_bytes(key.raw).public_bytes(
        PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert VerifyingKey.from_raw(key.raw) == VerifyingKey.from_hex(key.hex) == key
    assert VerifyingKey.from_pem(pem) == VerifyingKey.from_openssh_public(key.to_openssh_public("me")) == key
    assert parse_did_key(key.did_key) == key
    assert len({key, VerifyingKey.from_raw(key.raw)}) == 1
    assert key.verify(SigningKey.from_seed(seed).sign(b"m"), b"m") == b"m"


@given(st.binary(max_size=40))
def test_base58_comes_back(data: bytes) -> None:
    """Leading zero bytes included."""
    assert base58.decode(base58.encode(data)) == data


def small_order_points() -> list[bytes]:
    """The encodings of all points of small order, the non-canonical ones too, found by doubling and not from a list."""
    d = -121665 * pow(121666, -1, P) % P
    found = []
    for y in (0, 1, P - 1, *roots_of_order_8(d)):
        for spelled, sign in product((y, y + P), (0, 1)):
            found += [(spelled | sign << 255).to_bytes(32, "little")] if spelled < 1 << 255 else []
    return found


def roots_of_order_8(d: int) -> list[int]:
    """The y of points whose double has y = 0, so that y^2 = -x^2 in the doubling formula."""
    ys = []
    # x^2 = -y^2 put into the curve -x^2 + y^2 = 1 + d x^2 y^2 gives 2 y^2 = 1 - d y^4.
    i = pow(2, (P - 1) // 4, P)
    for root_sign, y_sign in product((1, -1), repeat=2):
        for candidate in (pow(1 + d, (P + 3) // 8, P), pow(1 + d, (P + 3) // 8, P) * i):
            if candidate * candidate % P != (1 + d) % P:
                continue
            square = (-1 + root_sign * candidate) * pow(d, -1, P) % P
            roots = (pow(square, (P + 3) // 8, P), pow(square, (P + 3) // 8, P) * i % P)
            ys += [y_sign * y % P for y in roots if y * y % P == square]
    return sorted(set(ys))


def test_points_of_small_order_are_refused_in_every_spelling() -> None:
    """Under such a key one signature can hold for any message, so none enters a keyring."""
    points = small_order_points()
    assert len(roots_of_order_8(-121665 * pow(121666, -1, P) % P)) == 2
    assert len(points) == 14
    for raw in points:
        assert refused(VerifyingKey.from_raw, raw) is FailureCode.SIGN_BAD_KEY


def test_a_small_order_key_would_verify_what_nobody_signed() -> None:
    """The reason for the refusal: the library alone accepts a signature of zeros under the identity."""
    identity = (1).to_bytes(32, "little")
    forged = identity + bytes(32)
    Ed25519PublicKey.from_public_bytes(identity).verify(forged, b"any message")
    assert refused(VerifyingKey.from_raw, identity) is FailureCode.SIGN_BAD_KEY


@pytest.mark.parametrize(
    "raw",
    [
        (P + 2).to_bytes(32, "little"),
        (2**255 - 1).to_bytes(32, "little"),
        b"\xff" * 32,
        (2).to_bytes(32, "little"),
        bytes(31),
        bytes(33),
        b"",
    ],
)
def test_bytes_that_are_no_point_are_refused(raw: bytes) -> None:
    """Second spellings, points off the curve, and wrong lengths."""
    assert refused(require_sound_point, raw) is FailureCode.SIGN_BAD_KEY


def ecdsa_key() -> Any:
    """A private key of another kind."""
    return generate_private_key(SECP256R1())


def test_other_keys_and_garbage_are_refused_in_every_form() -> None:
    """A key of another kind, or none at all, is named as a bad key and never as a crash."""
    other = ecdsa_key().public_key()
    pem = other.public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    line = other.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    cases: list[tuple[Any, Any]] = [
        (VerifyingKey.from_pem, pem),
        (VerifyingKey.from_openssh_public, line),
        (VerifyingKey.from_pem, b"garbage"),
        (VerifyingKey.from_openssh_public, b"ssh-ed25519 AAAA"),
        (VerifyingKey.from_hex, "zz" * 32),
        (VerifyingKey.from_hex, "00"),
        (SigningKey.from_seed, bytes(31)),
        (SigningKey.from_openssh, b"garbage"),
    ]
    for make, argument in cases:
        assert refused(make, argument) is FailureCode.SIGN_BAD_KEY


@pytest.mark.parametrize(
    "text",
    [
        "did:key:z",
        "did:key:z6Mk0",
        "did:key:" + KEY.public.did_key.removeprefix("did:key:z"),
        KEY.public.did_key + "1",
        KEY.public.did_key.replace("z6Mk", "z16Mk"),
        "did:key:z" + "1" * 200,
        "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
        "did:web:example.org",
    ],
)
def test_a_did_key_has_one_spelling(text: str) -> None:
    """Anything but the one canonical text of an Ed25519 key is refused."""
    assert refused(parse_did_key, text) is FailureCode.SIGN_BAD_KEY


def test_an_encrypted_key_file_opens_under_its_passphrase_alone() -> None:
    """The OpenSSH form gives the key back; a wrong, missing or empty passphrase does not."""
    data = KEY.to_openssh(b"correct", rounds=1)
    assert SigningKey.from_openssh(data, b"correct").public == KEY.public
    for wrong in (b"wrong", None, b""):
        assert refused(SigningKey.from_openssh, data, wrong) is FailureCode.SIGN_BAD_KEY
    assert refused(KEY.to_openssh, b"") is FailureCode.SIGN_BAD_KEY


def test_other_private_key_files_are_read_or_refused() -> None:
    """PKCS#8 is read too, a key that is not Ed25519 is refused."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    plain = serialization.NoEncryption()
    pkcs8 = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain)
    sealed = key.private_bytes(
        PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    assert SigningKey.from_openssh(pkcs8).public == SigningKey.from_openssh(sealed, b"x").public == KEY.public
    other = ecdsa_key().private_bytes(PEM, serialization.PrivateFormat.OpenSSH, plain)
    assert refused(SigningKey.from_openssh, other) is FailureCode.SIGN_BAD_KEY


def test_a_private_key_never_shows_itself() -> None:
    """Neither repr nor any error about a key holds its secret."""
    assert bytes(32).hex() not in repr(KEY)
    assert KEY.public.did_key in repr(KEY)
    assert repr(KEY.public) == f"VerifyingKey({KEY.public.did_key})"
    assert KEY.public != KEY.public.raw
