"""COSE_Sign1 (RFC 9052 section 4.2) in the one shape that this format uses: made, and opened strictly.

Tag 18; a protected header of exactly algorithm (-19, Ed25519 of RFC 9864), content type and key id; an empty
unprotected header; a payload; no external data. The exact protected bytes are what is signed, so they are
read, never made again. This module does not know what a checkpoint is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError
from affidavit.crypto.keyring import Keyring, Trust
from affidavit.crypto.keys import SIGNATURE_SIZE

_TAG_SIGN1: Final = 18
_ALG, _CONTENT_TYPE, _KID = 1, 3, 4
_ED25519: Final = -19
_MAX_DEPTH: Final = 16
# A key id and an origin are short; what is longer than this is hostile, and is not looked into.
MAX_MESSAGE_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Opened:
    """A message whose signature held: its payload, the key id, and where trust in the key comes from."""

    payload: bytes
    kid: bytes
    trust: Trust


@dataclass(frozen=True, slots=True)
class _Message:
    protected: bytes
    unprotected_is_empty: bool
    payload: bytes
    signature: bytes


def protected_header(content_type: str, kid: bytes) -> bytes:
    """Return the encoded protected header: algorithm, content type and key id, in canonical order."""
    return (
        heads.write_head(heads.MAP, 3)
        + heads.write_head(heads.UINT, _ALG)
        + heads.write_head(heads.NEGATIVE, -1 - _ED25519)
        + heads.write_head(heads.UINT, _CONTENT_TYPE)
        + heads.write_text(content_type)
        + heads.write_head(heads.UINT, _KID)
        + heads.write_bytes(kid)
    )


def signature_input(protected: bytes, payload: bytes) -> bytes:
    """Return the Sig_structure that is signed (RFC 9052 section 4.4)."""
    return (
        heads.write_head(heads.ARRAY, 4)
        + heads.write_text("Signature1")
        + heads.write_bytes(protected)
        + heads.write_bytes(b"")
        + heads.write_bytes(payload)
    )


def assemble(protected: bytes, payload: bytes, signature: bytes) -> bytes:
    """Return the tagged message of its parts.

    Raises:
        ProducerError: `sign.sign_failed` where the signature is not 64 bytes.
    """
    if len(signature) != SIGNATURE_SIZE:
        raise ProducerError(FailureCode.SIGN_SIGN_FAILED, f"a signature of {len(signature)} bytes")
    return (
        heads.write_head(heads.TAG, _TAG_SIGN1)
        + heads.write_head(heads.ARRAY, 4)
        + heads.write_bytes(protected)
        + heads.write_head(heads.MAP, 0)
        + heads.write_bytes(payload)
        + heads.write_bytes(signature)
    )


def to_be_signed(payload: bytes, *, content_type: str, kid: bytes) -> bytes:
    """Return the bytes that the key of this id is to sign.

    Raises:
        ProducerError: `sign.empty_key_id`.
    """
    if not kid:
        raise ProducerError(FailureCode.SIGN_EMPTY_KEY_ID, "a signer needs a key id")
    return signature_input(protected_header(content_type, kid), payload)


def sign1(payload: bytes, *, content_type: str, kid: bytes, sign: Callable[[bytes], bytes]) -> bytes:
    """Return a signed message.

    A signer that has to wait calls `to_be_signed` and `assemble` instead.

    Args:
        payload: What is signed.
        content_type: Its media type.
        kid: Id of the signing key; never empty.
        sign: Returns the 64-byte Ed25519 signature over its argument.

    Raises:
        ProducerError: `sign.empty_key_id`; `sign.sign_failed`.
    """
    data = to_be_signed(payload, content_type=content_type, kid=kid)
    try:
        signature = sign(data)
    except Exception as error:
        raise ProducerError(FailureCode.SIGN_SIGN_FAILED, "the signer failed") from error
    return assemble(protected_header(content_type, kid), payload, signature)


def open_sign1(data: bytes, *, content_type: str, keyring: Keyring) -> Opened:
    """Return the payload of a message after checking its form, its header and its signature.

    Args:
        data: The tagged message, and nothing more.
        content_type: The media type it must have.
        keyring: Where its key id is looked up.

    Raises:
        VerificationError: `sign.bad_content_type`, `sign.unknown_key`, or `sign.signature_invalid` for every
            other fault of form, header or signature.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise _invalid(f"a message of more than {MAX_MESSAGE_BYTES} bytes")
    try:
        message = _read_message(data)
        header = _read_header(message.protected)
    except VerificationError as error:
        raise _invalid(f"not a COSE_Sign1 message of this format: {error.detail}") from error
    if header.get(_CONTENT_TYPE) != content_type:
        raise VerificationError(
            FailureCode.SIGN_BAD_CONTENT_TYPE,
            "the signed content type is missing or another",
            expected=content_type,
            actual=header.get(_CONTENT_TYPE),
        )
    kid = header.get(_KID)
    if not isinstance(kid, bytes):
        raise VerificationError(FailureCode.SIGN_UNKNOWN_KEY, "the protected header names no key id")
    key, trust = keyring.lookup(kid)
    if header.get(_ALG) != _ED25519:
        raise _invalid("the algorithm is not Ed25519 (-19)")
    # One comparison leaves no room for a further label, an unsorted one or a longer head.
    if message.protected != protected_header(content_type, kid) or not message.unprotected_is_empty:
        raise _invalid("the headers hold more than algorithm, content type and key id, or not canonically")
    key.verify(message.signature, signature_input(message.protected, message.payload))
    return Opened(message.payload, kid, trust)


def _invalid(detail: str) -> VerificationError:
    return VerificationError(FailureCode.SIGN_SIGNATURE_INVALID, detail)


def _read_message(data: bytes) -> _Message:
    pos = _expect(data, 0, heads.TAG, _TAG_SIGN1)
    pos = _expect(data, pos, heads.ARRAY, 4)
    protected, pos = _read_bytes(data, pos)
    start, pos = pos, heads.skip_item(data, pos, _MAX_DEPTH)
    if data[start] >> 5 != heads.MAP:
        raise _invalid("the unprotected header is not a map")
    unprotected = data[start:pos]
    payload, pos = _read_bytes(data, pos)
    signature, pos = _read_bytes(data, pos)
    if pos != len(data):
        raise _invalid("bytes follow the message")
    return _Message(protected, unprotected == heads.write_head(heads.MAP, 0), payload, signature)


def _expect(data: bytes, pos: int, major: int, arg: int) -> int:
    head = heads.read_head(data, pos)
    if (head.major, head.arg, head.minimal) != (major, arg, True):
        raise _invalid("not a tagged array of four")
    return head.end


def _read_bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    head = heads.read_head(data, pos)
    if head.major != heads.BYTES or not head.minimal:
        raise _invalid("a part is not a byte string with the shortest head")
    content = heads.take(data, head)
    return content, head.end + len(content)


def _read_header(protected: bytes) -> dict[int, object]:
    # Returns the labels of interest leniently: their order and their company are compared afterwards, so that
    # a wrong content type or key id is named even in a header that has other faults as well.
    head = heads.read_head(protected, 0)
    if head.major != heads.MAP:
        raise _invalid("the protected header is not a map")
    entries: dict[int, object] = {}
    pos = head.end
    for _ in range(heads.bound_count(protected, head, 2)):
        start, value_at = pos, heads.skip_item(protected, pos, _MAX_DEPTH)
        pos = heads.skip_item(protected, value_at, _MAX_DEPTH)
        label = heads.read_head(protected, start)
        if label.major == heads.UINT:
            if label.arg in entries:
                raise _invalid("a label stands twice in the protected header")
            entries[label.arg] = _scalar(protected, value_at)
    if pos != len(protected):
        raise _invalid("bytes follow the protected header")
    return entries


def _scalar(data: bytes, pos: int) -> object:
    head = heads.read_head(data, pos)
    match head.major:
        case heads.UINT:
            return head.arg
        case heads.NEGATIVE:
            return -1 - head.arg
        case heads.BYTES:
            return heads.take(data, head)
        case heads.TEXT:
            return heads.take(data, head).decode(errors="replace")
        case _:
            return None
