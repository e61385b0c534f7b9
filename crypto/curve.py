"""Which 32 bytes are a sound Ed25519 public key: a canonical point of the curve, not of small order.

Signature libraries accept keys of small order, for which signatures hold over any message, and keys with a
second spelling. Both are refused before they reach a keyring. Only the curve's arithmetic lives here.
"""

from typing import Final

from affidavit.crypto.failures import FailureCode, ProducerError

KEY_SIZE: Final = 32
_P: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _P) % _P


def _small_order() -> frozenset[int]:
    # The y of the eight points of small order: 1 (identity), -1 (order 2), 0 (order 4), and those of order 8,
    # whose double has y = 0; on the curve of RFC 8032 section 5.1 they solve d*y^4 + 2*y^2 - 1 = 0.
    root = _square_root((1 + _D) % _P)
    inverse_d = pow(_D, -1, _P)
    squares = ((-1 + root) * inverse_d % _P, (-1 - root) * inverse_d % _P)
    of_order_8 = [_square_root(square) for square in squares if pow(square, (_P - 1) // 2, _P) == 1]
    return frozenset({0, 1, _P - 1, *of_order_8, *(_P - y for y in of_order_8)})


def _square_root(square: int) -> int:
    # For p = 5 mod 8 (RFC 8032 section 5.1.3).
    candidate = pow(square, (_P + 3) // 8, _P)
    if candidate * candidate % _P != square:
        candidate = candidate * pow(2, (_P - 1) // 4, _P) % _P
    return candidate


_SMALL_ORDER_Y: Final = _small_order()


def require_sound_point(raw: bytes) -> bytes:
    """Return the bytes of a public key that is sound.

    Args:
        raw: The encoded point (RFC 8032 section 5.1.2).

    Raises:
        ProducerError: `sign.bad_key` where it is not 32 bytes, not the one spelling of a point of the curve,
            or of small order.
    """
    if len(raw) != KEY_SIZE:
        raise ProducerError(FailureCode.SIGN_BAD_KEY, f"an Ed25519 public key has 32 bytes, not {len(raw)}")
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    if y >= _P:
        raise ProducerError(FailureCode.SIGN_BAD_KEY, "the public key is not the canonical form of its point")
    if y in _SMALL_ORDER_Y:
        raise ProducerError(FailureCode.SIGN_BAD_KEY, "the public key is a point of small order")
    x_squared = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    if pow(x_squared, (_P - 1) // 2, _P) != 1:
        raise ProducerError(FailureCode.SIGN_BAD_KEY, "the public key is not a point of the curve")
    return raw
