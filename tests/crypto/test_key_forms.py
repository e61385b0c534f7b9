"""Public keys in every form that they are handed over in: read, or refused for the reason that is so."""

from collections.abc import Mapping
from contextlib import suppress

import cbor2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import FailureCode, ProducerError, SigningKey
from affidavit.crypto.key_forms import read_public_key

KEY = SigningKey.from_seed(bytes(32)).public
X = b"\x58\x20" + KEY.raw
PLAIN = b"\xa3\x01\x01\x20\x06\x21" + X
WHOLE = b"\xa6\x01\x01\x02\x42\xff\x00\x03\x32\x04\x81\x02\x20\x06\x21" + X


def pem(key: bytes = KEY.raw) -> bytes:
    """The key as PEM."""
    return Ed25519PublicKey.from_public_bytes(key).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def refusal(data: bytes) -> str:
    """Why a key is refused."""
    with pytest.raises(ProducerError) as refused:
        read_public_key(data)
    assert refused.value.code is FailureCode.SIGN_BAD_KEY
    return refused.value.detail


@pytest.mark.parametrize(
    ("data", "kid"),
    [
        (pem(), None),
        (b"\n" + pem() + b"\n", None),
        (KEY.to_openssh_public("someone"), None),
        (KEY.to_openssh_public() + b"\n", None),
        (KEY.hex.encode(), None),
        (KEY.hex.upper().encode() + b"\r\n", None),
        (KEY.did_key.encode() + b"\n", KEY.did_key.encode()),
        (PLAIN, None),
        (WHOLE, b"\xff\x00"),
    ],
)
def test_each_form_is_told_apart(data: bytes, kid: bytes | None) -> None:
    """PEM, OpenSSH, hexadecimal, did:key and COSE_Key give one key, and the id that the form states."""
    assert read_public_key(data) == (KEY, kid)


def test_a_private_key_is_refused_by_name() -> None:
    """Whoever is handed a private key is told so, and not merely that it does not fit."""
    private = Ed25519PrivateKey.from_private_bytes(bytes(32))
    for form in (serialization.PrivateFormat.OpenSSH, serialization.PrivateFormat.PKCS8):
        encoded = private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        assert "private key" in refusal(encoded)
    assert "private key" in refusal(b"\xa4\x01\x01\x20\x06\x21" + X + b"\x23\x58\x20" + bytes(32))


def test_keys_of_another_kind_are_refused() -> None:
    """Elliptic curve keys in PEM and OpenSSH form, and a COSE_Key of another type, curve or algorithm."""
    other = generate_private_key(SECP256R1()).public_key()
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    assert "not an Ed25519" in refusal(other.public_bytes(serialization.Encoding.PEM, info))
    refusal(other.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH))
    for change in ({1: 2}, {-1: 4}, {3: -8}, {3: b"\x00"}):
        assert "not of an Ed25519 key" in refusal(cose_key(change))


def cose_key(change: Mapping[int, object]) -> bytes:
    """A COSE_Key with labels changed, in canonical order."""
    labels: dict[int, object] = {1: 1, -1: 6, -2: KEY.raw, **change}
    encoded = sorted((cbor2.dumps(label), cbor2.dumps(value)) for label, value in labels.items())
    return bytes((0xA0 | len(encoded),)) + b"".join(map(b"".join, encoded))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (cose_key({4: [1]}), "not for verifying"),
        (cose_key({4: 2}), "not for verifying"),
        (cose_key({4: ["verify"]}), "type that means nothing"),
        (cose_key({4: [[2]]}), "integers"),
        (cose_key({2: "text"}), "type that means nothing"),
        (cose_key({2: b""}), "empty"),
        (cose_key({2: 1}), "byte strings"),
        (cose_key({-2: True}), "type that means nothing"),
        (cose_key({-2: KEY.raw[1:]}), "32 bytes"),
        (cose_key({-2: bytes(32)}), "small order"),
        (cose_key({5: b"iv"}), "means nothing here: 5"),
        (b"\xa2\x01\x01\x20\x06", "byte strings"),
        (b"\xa3\x01\x01\x21" + X + b"\x20\x06", "order"),
        (b"\xa4\x01\x01\x01\x01\x20\x06\x21" + X, "order"),
        (b"\xb8\x03" + PLAIN[1:], "shortest head"),
        (b"\xa3\x01\x18\x01" + PLAIN[3:], "not the shortest"),
        (b"\xbf" + PLAIN[1:] + b"\xff", "not a COSE_Key"),
        (PLAIN + b"\x00", "bytes follow"),
        (PLAIN[:-1], "not a COSE_Key"),
        (b"\xa1\x61a\x00", "a type that means nothing"),
        (b"\xa1\x41a\x00", "label of a COSE_Key is an integer"),
        (b"\xbb" + b"\xff" * 8, "not a COSE_Key"),
        (b"", "not a public key"),
        (b"one\ntwo", "not one public key"),
        (b"\xff", "not one public key"),
        (b"hello there", "not a public key"),
        (KEY.hex.encode() + b"0", "64 digits"),
        (KEY.did_key.encode() + b"x", "did:key"),
        (b"ssh-ed25519 AAAA", "not an OpenSSH"),
    ],
)
def test_what_is_not_wholly_understood_is_refused(data: bytes, why: str) -> None:
    """Each fault of form has its sentence."""
    assert why in refusal(data)


@given(st.binary(max_size=60) | st.integers(0, len(WHOLE) * 8 - 1).map(lambda bit: flipped(WHOLE, bit)))
def test_only_coded_errors_come_out(data: bytes) -> None:
    """Whatever the bytes, a key or a refusal with its code."""
    with suppress(ProducerError):
        key, kid = read_public_key(data)
        assert len(key.raw) == 32
        assert kid != b""


def flipped(data: bytes, bit: int) -> bytes:
    """The data with one bit changed."""
    return (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")
