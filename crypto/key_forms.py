"""A public key in whichever form it was handed over: told apart by its first bytes, and read strictly.

PEM, an OpenSSH public key line, 64 hexadecimal digits, a did:key or a COSE_Key. The bytes come from the
caller; paths belong to the tools.
"""

from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.cose_key import parse_cose_key
from affidavit.crypto.failures import FailureCode, ProducerError
from affidavit.crypto.keys import DID_KEY_PREFIX, VerifyingKey, parse_did_key

FORMS: Final = "a PEM or OpenSSH public key, 64 hexadecimal digits, a did:key or a COSE_Key"
_PEM_MARK: Final = b"-----BEGIN "
_PRIVATE_MARK: Final = b"PRIVATE KEY-----"


def read_public_key(data: bytes) -> tuple[VerifyingKey, bytes | None]:
    """Return a key, and the key id that its form states; None where the form states none.

    A did:key states itself, and a COSE_Key may state any id. White space around a form of text is ignored.

    Raises:
        ProducerError: `sign.bad_key` where it is none of the forms, a private key, or an unsound key.
    """
    if data and data[0] >> 5 == heads.MAP:
        return parse_cose_key(data)
    text = data.strip()
    if _PEM_MARK in text:
        if _PRIVATE_MARK in text:
            raise _bad("this is a private key: hand over the public half alone")
        return VerifyingKey.from_pem(text), None
    if not text.isascii() or b"\n" in text:
        raise _bad(f"not one public key: it takes {FORMS}")
    line = text.decode()
    if line.startswith(DID_KEY_PREFIX):
        return parse_did_key(line), line.encode()
    if line.startswith("ssh-"):
        return VerifyingKey.from_openssh_public(text), None
    if " " in line or not line:
        raise _bad(f"not a public key: it takes {FORMS}")
    return VerifyingKey.from_hex(line), None


def _bad(detail: str) -> ProducerError:
    return ProducerError(FailureCode.SIGN_BAD_KEY, detail)
