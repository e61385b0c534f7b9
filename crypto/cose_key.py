"""A public key as a COSE_Key (RFC 9052 section 7) in deterministic CBOR, as another COSE program hands it over.

Read alone: this project hands keys over in forms that people can compare. What is not wholly understood is
refused, and a private key is refused by name, so that nobody passes one on.
"""

from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError
from affidavit.crypto.keys import VerifyingKey

_KTY, _KID, _ALG, _KEY_OPS = 1, 2, 3, 4
_CRV, _X, _D = -1, -2, -4
_OKP: Final = 1
_ED25519_CURVE: Final = 6
# RFC 9864. The older -8 also covers another curve, and the format refuses it in a signature too.
_ED25519: Final = -19
_VERIFY: Final = 2
_MAX_DEPTH: Final = 2

_Value = int | bytes | tuple[int, ...]


def parse_cose_key(data: bytes) -> tuple[VerifyingKey, bytes | None]:
    """Return the key, and the key id that it states (label 2); None where it states none.

    Args:
        data: The map {1: 1, -1: 6, -2: key}, which may also hold 2 (key id), 3 (algorithm, -19 alone) and 4
            (key operations, which must hold 2, verify), and nothing more.

    Raises:
        ProducerError: `sign.bad_key`.
    """
    try:
        labels = _read(data)
    except VerificationError as error:
        raise _bad(f"not a COSE_Key: {error.detail}") from error
    if _D in labels:
        raise _bad("this COSE_Key holds a private key: hand over the public half alone")
    strangers = labels.keys() - {_KTY, _KID, _ALG, _KEY_OPS, _CRV, _X}
    if strangers:
        raise _bad(f"the COSE_Key holds a label that means nothing here: {min(strangers)}")
    if (labels.get(_KTY), labels.get(_CRV), labels.get(_ALG, _ED25519)) != (_OKP, _ED25519_CURVE, _ED25519):
        raise _bad("the COSE_Key is not of an Ed25519 key (kty 1, curve 6, algorithm -19 where one is named)")
    operations = labels.get(_KEY_OPS, (_VERIFY,))
    if not isinstance(operations, tuple) or _VERIFY not in operations:
        raise _bad("the COSE_Key is not for verifying")
    kid, raw = labels.get(_KID), labels.get(_X)
    if not isinstance(raw, bytes) or not isinstance(kid, bytes | None):
        raise _bad("the public key of a COSE_Key, and its key id, are byte strings")
    if kid is not None and not kid:
        raise _bad("the key id of the COSE_Key is empty")
    return VerifyingKey(raw), kid


def _read(data: bytes) -> dict[int, _Value]:
    head = heads.read_head(data, 0)
    if head.major != heads.MAP or not head.minimal:
        raise _bad("not a COSE_Key: it is no map with the shortest head")
    labels: dict[int, _Value] = {}
    pos, before = head.end, b""
    for _ in range(heads.bound_count(data, head, 2)):
        start, pos = pos, heads.skip_item(data, pos, _MAX_DEPTH)
        encoded = data[start:pos]
        # Ascending keys show at once that none stands twice.
        if encoded <= before:
            raise _bad("the COSE_Key's labels are not in canonical order")
        before = encoded
        label, start, pos = _item(data, start), pos, heads.skip_item(data, pos, _MAX_DEPTH)
        if not isinstance(label, int):
            raise _bad("a label of a COSE_Key is an integer")
        labels[label] = _item(data, start)
    if pos != len(data):
        raise _bad("bytes follow the COSE_Key")
    return labels


def _item(data: bytes, pos: int) -> _Value:
    head = heads.read_head(data, pos)
    if not head.minimal:
        raise _bad(f"a head of the COSE_Key at byte {pos} is not the shortest")
    match head.major:
        case heads.UINT:
            return head.arg
        case heads.NEGATIVE:
            return -1 - head.arg
        case heads.BYTES:
            return heads.take(data, head)
        case heads.ARRAY:
            return _integers(data, head)
        case _:
            raise _bad("the COSE_Key holds a value of a type that means nothing here")


def _integers(data: bytes, array: heads.Head) -> tuple[int, ...]:
    found: list[int] = []
    pos = array.end
    for _ in range(heads.bound_count(data, array)):
        value = _item(data, pos)
        if not isinstance(value, int):
            raise _bad("the key operations of a COSE_Key are integers")
        found.append(value)
        pos = heads.read_head(data, pos).end
    return tuple(found)


def _bad(detail: str) -> ProducerError:
    return ProducerError(FailureCode.SIGN_BAD_KEY, detail)
