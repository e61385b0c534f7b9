"""Ed25519 keys as values: from and to bytes, never from or to files, and never by chance.

A public key is checked when it is made into a `VerifyingKey`, so every one that exists is sound. Private key
material never appears in a repr, an error or a log.
"""

import base64
import binascii
from hashlib import sha256
from typing import Final, final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from affidavit.crypto import base58
from affidavit.crypto.curve import require_sound_point
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError

SIGNATURE_SIZE: Final = 64
# What one bcrypt round costs is the format's choice; sixteen take about 150 ms, the usual price of a look.
DEFAULT_KDF_ROUNDS: Final = 16
DID_KEY_PREFIX: Final = "did:key:z"
_MAX_DID_KEY: Final = 100
_SEED_SIZE: Final = 32
_MULTICODEC_ED25519: Final = b"\xed\x01"


def _bad_key(detail: str) -> ProducerError:
    return ProducerError(FailureCode.SIGN_BAD_KEY, detail)


@final
class VerifyingKey:
    """A sound Ed25519 public key. Equal keys have equal bytes."""

    __slots__ = ("_key", "raw")

    raw: Final[bytes]

    def __init__(self, raw: bytes) -> None:
        self.raw = require_sound_point(bytes(raw))
        self._key: Final = Ed25519PublicKey.from_public_bytes(self.raw)

    @classmethod
    def from_raw(cls, raw: bytes) -> "VerifyingKey":
        """Return the key of its 32 bytes.

        Raises:
            ProducerError: `sign.bad_key`, as in every other constructor here.
        """
        return cls(raw)

    @classmethod
    def from_hex(cls, text: str) -> "VerifyingKey":
        """Return the key of 64 hexadecimal digits."""
        try:
            return cls(binascii.unhexlify(text.strip()))
        except (binascii.Error, ValueError) as error:
            raise _bad_key("a public key in hexadecimal has 64 digits") from error

    @classmethod
    def from_pem(cls, data: bytes) -> "VerifyingKey":
        """Return the key of a PEM block with a SubjectPublicKeyInfo (RFC 8410)."""
        try:
            key = serialization.load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise _bad_key("not a PEM public key") from error
        return cls._of(key)

    @classmethod
    def from_openssh_public(cls, data: bytes) -> "VerifyingKey":
        """Return the key of an OpenSSH public key line, `ssh-ed25519 AAAA... comment`."""
        try:
            key = serialization.load_ssh_public_key(data)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise _bad_key("not an OpenSSH public key line") from error
        return cls._of(key)

    @classmethod
    def _of(cls, key: object) -> "VerifyingKey":
        if not isinstance(key, Ed25519PublicKey):
            raise _bad_key("the key is not an Ed25519 key")
        return cls(key.public_bytes_raw())

    @property
    def hex(self) -> str:
        """The 32 bytes as 64 hexadecimal digits."""
        return self.raw.hex()

    @property
    def did_key(self) -> str:
        """The key as a did:key, which names the key itself."""
        return DID_KEY_PREFIX + base58.encode(_MULTICODEC_ED25519 + self.raw)

    @property
    def fingerprint(self) -> str:
        """The fingerprint as OpenSSH prints it, `SHA256:` and base64 without padding."""
        blob = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + self.raw
        return "SHA256:" + base64.b64encode(sha256(blob).digest()).decode().rstrip("=")

    def to_openssh_public(self, comment: str = "") -> bytes:
        """Return the OpenSSH public key line, without a line end."""
        line = self._key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        return line + b" " + comment.encode() if comment else line

    def verify(self, signature: bytes, message: bytes) -> bytes:
        """Return the message that the signature covers.

        Raises:
            VerificationError: `sign.signature_invalid`.
        """
        try:
            self._key.verify(signature, message)
        except InvalidSignature as error:
            raise VerificationError(
                FailureCode.SIGN_SIGNATURE_INVALID, "the signature does not hold under the key it names"
            ) from error
        return message

    def __eq__(self, other: object) -> bool:
        """Compare by the key's bytes."""
        return self.raw == other.raw if isinstance(other, VerifyingKey) else NotImplemented

    def __hash__(self) -> int:
        """Hash by the key's bytes."""
        return hash(self.raw)

    def __repr__(self) -> str:
        """Return the key as a did:key."""
        return f"VerifyingKey({self.did_key})"


def parse_did_key(text: str) -> VerifyingKey:
    """Return the key that an Ed25519 did:key names.

    Raises:
        ProducerError: `sign.bad_key` where it is not the one spelling of such a key.
    """
    if not text.startswith(DID_KEY_PREFIX) or len(text) > _MAX_DID_KEY:
        raise _bad_key("not a did:key in base58")
    try:
        data = base58.decode(text.removeprefix(DID_KEY_PREFIX))
    except ValueError as error:
        raise _bad_key("not a did:key in base58") from error
    if not data.startswith(_MULTICODEC_ED25519):
        raise _bad_key("the did:key is not of an Ed25519 key")
    # Base58 has one text for each string of bytes, so no second spelling is left to refuse.
    return VerifyingKey(data.removeprefix(_MULTICODEC_ED25519))


@final
class SigningKey:
    """An Ed25519 private key."""

    __slots__ = ("_key", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key: Final = key
        self.public: Final = VerifyingKey(key.public_key().public_bytes_raw())

    @classmethod
    def from_seed(cls, seed: bytes) -> "SigningKey":
        """Return the key of a 32-byte seed (RFC 8032 section 5.1.5), which the caller drew.

        Raises:
            ProducerError: `sign.bad_key` where the seed is not 32 bytes.
        """
        if len(seed) != _SEED_SIZE:
            raise _bad_key(f"an Ed25519 seed has 32 bytes, not {len(seed)}")
        return cls(Ed25519PrivateKey.from_private_bytes(bytes(seed)))

    @classmethod
    def from_openssh(cls, data: bytes, passphrase: bytes | None = None) -> "SigningKey":
        """Return the key of an OpenSSH private key file's bytes; a PKCS#8 PEM is read too.

        Args:
            data: The file's content.
            passphrase: What it is encrypted under; None reads an unencrypted file.

        Raises:
            ProducerError: `sign.bad_key` where it is no such key, or the passphrase is wrong or missing.
        """
        pkcs8 = data.lstrip().startswith((b"-----BEGIN PRIVATE KEY", b"-----BEGIN ENCRYPTED PRIVATE KEY"))
        load = serialization.load_pem_private_key if pkcs8 else serialization.load_ssh_private_key
        try:
            key = load(data, passphrase)
        except TypeError as error:
            raise _bad_key(
                "the key file is encrypted and needs a passphrase, or it is not encrypted"
            ) from error
        except (ValueError, UnsupportedAlgorithm) as error:
            raise _bad_key("the key file does not open: a wrong passphrase, or not an Ed25519 key") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise _bad_key("the key file does not hold an Ed25519 key")
        return cls(key)

    def to_openssh(self, passphrase: bytes, *, rounds: int = DEFAULT_KDF_ROUNDS) -> bytes:
        """Return the OpenSSH private key file's bytes, encrypted.

        Args:
            passphrase: What to encrypt under; never empty.
            rounds: bcrypt rounds; the time to open the file grows with them.

        Raises:
            ProducerError: `sign.bad_key` for an empty passphrase.
        """
        if not passphrase:
            raise _bad_key("a key file needs a passphrase that is not empty")
        encryption = (
            serialization.PrivateFormat.OpenSSH.encryption_builder().kdf_rounds(rounds).build(passphrase)
        )
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, encryption
        )

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature over a message."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        """Return the public half alone."""
        return f"SigningKey({self.public.did_key})"
