"""Heads of CBOR items (RFC 8949 section 3): reading, writing and skipping, one item at a time.

Reading is lenient about minimality and says so, since the caller owns the code for that fault. Lengths are
never trusted beyond the bytes present. Nothing here builds a value or recurses.
"""

from typing import Final, NamedTuple

from affidavit.crypto.failures import FailureCode, VerificationError

UINT: Final = 0
NEGATIVE: Final = 1
BYTES: Final = 2
TEXT: Final = 3
ARRAY: Final = 4
MAP: Final = 5
TAG: Final = 6
SIMPLE: Final = 7

_ONE_BYTE: Final = 24
_WIDTHS: Final = {_ONE_BYTE: 1, 25: 2, 26: 4, 27: 8}
_MINIMUM: Final = {_ONE_BYTE: _ONE_BYTE, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}
_INDEFINITE: Final = 31
# From an item's first byte to the next item, for heads of one byte; 0 for longer ones.
_STRIDES: Final = tuple(
    0 if first & 0x1F >= _ONE_BYTE else 1 + (first & 0x1F if first >> 5 in (BYTES, TEXT) else 0)
    for first in range(256)
)


class Head(NamedTuple):
    """One item's head: its major type, additional information, argument, and where its content starts."""

    major: int
    info: int
    arg: int
    end: int
    minimal: bool


def read_head(data: bytes, pos: int) -> Head:
    """Read the head at `pos`.

    Args:
        data: The whole input.
        pos: Offset of the head's first byte.

    Raises:
        VerificationError: `enc.decode` where the input ends early or the head is reserved;
            `enc.indefinite_length` for an indefinite length or a lone break.
    """
    if pos >= len(data):
        raise VerificationError(FailureCode.ENC_DECODE, f"the input ends at byte {pos}, inside an item")
    first = data[pos]
    major, info = first >> 5, first & 0x1F
    if info < _ONE_BYTE:
        return Head(major, info, info, pos + 1, True)
    width = _WIDTHS.get(info)
    if width is None:
        if info == _INDEFINITE:
            raise VerificationError(FailureCode.ENC_INDEFINITE_LENGTH, f"indefinite length at byte {pos}")
        raise VerificationError(FailureCode.ENC_DECODE, f"reserved head at byte {pos}")
    end = pos + 1 + width
    if end > len(data):
        raise VerificationError(FailureCode.ENC_DECODE, f"the input ends inside the head at byte {pos}")
    arg = int.from_bytes(data[pos + 1 : end], "big")
    # The payload of a float (25..27 of major 7) is not a length: no shorter head could carry it.
    minimal = arg >= _MINIMUM[info] or (major == SIMPLE and info > _ONE_BYTE)
    return Head(major, info, arg, end, minimal)


def write_head(major: int, arg: int) -> bytes:
    """Return the shortest head for a major type and a non-negative argument below 2^64."""
    top = major << 5
    if arg < _ONE_BYTE:
        return bytes((top | arg,))
    if arg < 1 << 8:
        return bytes((top | _ONE_BYTE, arg))
    if arg < 1 << 16:
        return bytes((top | 25,)) + arg.to_bytes(2, "big")
    if arg < 1 << 32:
        return bytes((top | 26,)) + arg.to_bytes(4, "big")
    return bytes((top | 27,)) + arg.to_bytes(8, "big")


def write_bytes(value: bytes) -> bytes:
    """Return the canonical encoding of a byte string."""
    return write_head(BYTES, len(value)) + value


def write_text(value: str) -> bytes:
    """Return the canonical encoding of a text string."""
    raw = value.encode()
    return write_head(TEXT, len(raw)) + raw


def take(data: bytes, head: Head) -> bytes:
    """Return the content of a string item whose head was just read.

    Raises:
        VerificationError: `enc.decode` where the declared length passes the end of the input.
    """
    end = head.end + head.arg
    if end > len(data):
        raise VerificationError(
            FailureCode.ENC_DECODE, f"a string declares {head.arg} bytes, {len(data) - head.end} are left"
        )
    return data[head.end : end]


def bound_count(data: bytes, head: Head, per_entry: int = 1) -> int:
    """Return a container's declared entry count, bounded by the bytes present.

    Raises:
        VerificationError: `enc.decode` where the count could not fit in what is left of the input.
    """
    if head.arg * per_entry > len(data) - head.end:
        raise VerificationError(
            FailureCode.ENC_DECODE, f"a container declares {head.arg} entries, more than fit"
        )
    return head.arg


def skip_item(data: bytes, pos: int, max_depth: int) -> int:
    """Return the offset just after the well-formed item at `pos`, building nothing.

    Raises:
        VerificationError: As `read_head`, `take` and `bound_count`; `enc.decode` beyond `max_depth`.
    """
    open_counts = [1]
    while open_counts:
        if open_counts[-1] == 0:
            open_counts.pop()
            continue
        open_counts[-1] -= 1
        head = read_head(data, pos)
        pos = head.end
        if head.major in (BYTES, TEXT):
            pos += len(take(data, head))
        elif head.major in (ARRAY, MAP, TAG):
            if len(open_counts) > max_depth:
                raise VerificationError(FailureCode.ENC_DECODE, f"nested deeper than {max_depth} levels")
            per_entry = 2 if head.major == MAP else 1
            open_counts.append(1 if head.major == TAG else bound_count(data, head, per_entry) * per_entry)
    return pos


def has_more_items(data: bytes, limit: int) -> bool:
    """Say whether data holds more than `limit` items, those inside containers included; builds nothing.

    What is not well-formed is counted as far as it goes.
    """
    pos, strides = 0, _STRIDES
    try:
        for _ in range(limit):
            stride = strides[data[pos]]
            if stride:
                pos += stride
            else:
                head = read_head(data, pos)
                pos = head.end + (head.arg if head.major in (BYTES, TEXT) else 0)
    except (IndexError, VerificationError):
        return False
    return pos < len(data)
