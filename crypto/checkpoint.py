"""The signed root of a stream: origin, size and root, in a COSE_Sign1 message.

Size and root are claims of the signer until a record or a proof rebuilds them; this module rebuilds nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor, cose
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError
from affidavit.crypto.hashing import EMPTY_ROOT, HASH_SIZE
from affidavit.crypto.keyring import Keyring, Trust

CONTENT_TYPE: Final = "application/vnd.provetrail.checkpoint+cbor"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How many events a stream had, and the root over them.

    Attributes:
        origin: What the tree is of; this project uses the stream id.
        size: How many leaves.
        root: The 32-byte root.
    """

    origin: str
    size: int
    root: bytes


@dataclass(frozen=True, slots=True)
class VerifiedCheckpoint:
    """A checkpoint whose signature held, the key id that signed it, and where trust in the key comes from."""

    checkpoint: Checkpoint
    kid: bytes
    trust: Trust


def encode_payload(checkpoint: Checkpoint) -> bytes:
    """Return the canonical bytes that are signed.

    Raises:
        ProducerError: `enc.encode` where the root is not 32 bytes or the size is negative.
    """
    if len(checkpoint.root) != HASH_SIZE or checkpoint.size < 0:
        raise ProducerError(FailureCode.ENC_ENCODE, "a checkpoint has a size from 0 and a root of 32 bytes")
    return cbor.encode({"root": checkpoint.root, "size": checkpoint.size, "origin": checkpoint.origin})


def sign_checkpoint(checkpoint: Checkpoint, *, kid: bytes, sign: Callable[[bytes], bytes]) -> bytes:
    """Return the signed checkpoint.

    Args:
        checkpoint: What to sign.
        kid: Id of the signing key; never empty.
        sign: Returns the 64-byte Ed25519 signature over its argument.

    Raises:
        ProducerError: `enc.encode`, `sign.empty_key_id`, `sign.sign_failed`.
    """
    return cose.sign1(encode_payload(checkpoint), content_type=CONTENT_TYPE, kid=kid, sign=sign)


def signing_input(checkpoint: Checkpoint, *, kid: bytes) -> bytes:
    """Return the bytes to sign, for a signer that has to wait; `assemble_checkpoint` takes the signature.

    Raises:
        ProducerError: `enc.encode`, `sign.empty_key_id`.
    """
    return cose.to_be_signed(encode_payload(checkpoint), content_type=CONTENT_TYPE, kid=kid)


def assemble_checkpoint(checkpoint: Checkpoint, *, kid: bytes, signature: bytes) -> bytes:
    """Return the signed checkpoint of a signature made over `signing_input`.

    Raises:
        ProducerError: `enc.encode`; `sign.sign_failed` where the signature is not 64 bytes.
    """
    return cose.assemble(cose.protected_header(CONTENT_TYPE, kid), encode_payload(checkpoint), signature)


def open_checkpoint(data: bytes, keyring: Keyring) -> VerifiedCheckpoint:
    """Return the checkpoint of a signed message, whose root the caller is going to rebuild.

    Raises:
        VerificationError: The `sign.*` code of the fault.
    """
    opened = cose.open_sign1(data, content_type=CONTENT_TYPE, keyring=keyring)
    return VerifiedCheckpoint(_read_payload(opened.payload), opened.kid, opened.trust)


def verify_checkpoint(data: bytes, keyring: Keyring) -> VerifiedCheckpoint:
    """Return the checkpoint of a signed message that stands alone.

    Raises:
        VerificationError: The `sign.*` code of the fault; `record.root_mismatch` where it claims no events
            and a root that is not the empty one.
    """
    verified = open_checkpoint(data, keyring)
    if verified.checkpoint.size == 0 and verified.checkpoint.root != EMPTY_ROOT:
        raise VerificationError(
            FailureCode.RECORD_ROOT_MISMATCH,
            "a checkpoint over no events has a root other than the empty one",
            expected=EMPTY_ROOT,
            actual=verified.checkpoint.root,
        )
    return verified


def _read_payload(payload: bytes) -> Checkpoint:
    try:
        value = cbor.decode(payload)
    except VerificationError as error:
        raise VerificationError(
            FailureCode.SIGN_CHECKPOINT_DECODE, f"the signed payload is not canonical: {error.detail}"
        ) from error
    if value.__class__ is dict and value.keys() == {"root", "size", "origin"}:
        origin, size, root = value["origin"], value["size"], value["root"]
        types = (origin.__class__, size.__class__, root.__class__)
        if types == (str, int, bytes) and size >= 0 and len(root) == HASH_SIZE:
            return Checkpoint(origin, size, root)
    raise VerificationError(
        FailureCode.SIGN_CHECKPOINT_DECODE, "the signed payload is not a checkpoint of root, size and origin"
    )
