"""The closed maps that artifacts travel in: read leniently enough to name the fault, accepted only canonical.

One pass over the bytes. Fields are taken by their known types, so that no hostile content is ever built into
a value, and no declared length is believed beyond the bytes present.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final, NoReturn, final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.failures import FailureCode, VerificationError

_MAX_DEPTH: Final = 64


FieldValue = int | bytes | list[bytes]


class FieldType(Enum):
    """What a field of an artifact holds."""

    UINT = auto()
    BYTES = auto()
    BYTES_LIST = auto()


@final
class ClosedMap:
    """The fields of an artifact that was read, by name and type."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, FieldValue]) -> None:
        self._values: Final = values

    def uint(self, name: str) -> int:
        """Return a field of type `UINT`."""
        value = self._values[name]
        return value if isinstance(value, int) else self._wrong(name)

    def octets(self, name: str) -> bytes:
        """Return a field of type `BYTES`."""
        value = self._values[name]
        return value if isinstance(value, bytes) else self._wrong(name)

    def octet_strings(self, name: str) -> list[bytes]:
        """Return a field of type `BYTES_LIST`."""
        value = self._values[name]
        return value if isinstance(value, list) else self._wrong(name)

    @staticmethod
    def _wrong(name: str) -> NoReturn:
        raise TypeError(f"the field {name!r} was read as another type")


class _Faults:
    """Holds the first departure from canonical form, which yields to every fault of decoding."""

    __slots__ = ("first",)

    def __init__(self) -> None:
        self.first: str | None = None

    def note(self, what: str) -> None:
        self.first = self.first or what


def write_closed_map(fields: Mapping[str, int | bytes | Sequence[bytes]]) -> bytes:
    """Return the artifact of these fields, which stand in canonical order already."""
    parts = [heads.write_head(heads.MAP, len(fields))]
    for name, value in fields.items():
        parts.append(heads.write_text(name))
        if isinstance(value, int):
            parts.append(heads.write_head(heads.UINT, value))
        elif isinstance(value, bytes):
            parts.append(heads.write_bytes(value))
        else:
            parts.append(heads.write_head(heads.ARRAY, len(value)))
            parts += map(heads.write_bytes, value)
    return b"".join(parts)


def read_closed_map(data: bytes, fields: Mapping[str, FieldType]) -> ClosedMap:
    """Return the fields of an artifact.

    Args:
        data: The artifact, and nothing more.
        fields: Its fields and their types, in canonical order.

    Raises:
        VerificationError: `record.decode` where it does not decode, or a field is missing, doubled or of
            another type; `record.non_canonical` where it decodes but is not the canonical form.
    """
    if not data:
        raise _decode_fault("there is nothing in it")
    if data[0] >> 5 != heads.MAP:
        raise _decode_fault("it does not begin as a record or a proof does")
    faults = _Faults()
    try:
        values = _read(data, fields, faults)
    except VerificationError as error:
        raise VerificationError(FailureCode.RECORD_DECODE, error.detail) from error
    if tuple(values) != tuple(fields):
        faults.note("the fields are not in canonical order")
    if faults.first is not None:
        raise VerificationError(FailureCode.RECORD_NON_CANONICAL, faults.first)
    return ClosedMap(values)


def _read(data: bytes, fields: Mapping[str, FieldType], faults: _Faults) -> dict[str, FieldValue]:
    values: dict[str, FieldValue] = {}
    unknown: set[bytes] = set()
    head = _head(data, 0, heads.MAP, faults)
    pos = head.end
    for _ in range(heads.bound_count(data, head, 2)):
        raw, pos = _string(data, pos, heads.TEXT, faults)
        try:
            key = raw.decode()
        except UnicodeDecodeError:
            raise _decode_fault("a field name is not valid UTF-8") from None
        if key in values or raw in unknown:
            raise _decode_fault(f"the field {key[:80]!r} stands twice")
        if key in fields:
            values[key], pos = _field(data, pos, fields[key], faults)
        else:
            unknown.add(raw)
            faults.note(f"the unknown field {key[:80]!r}")
            pos = heads.skip_item(data, pos, _MAX_DEPTH)
    for key in fields:
        if key not in values:
            raise _decode_fault(f"the field {key!r} is missing")
    if pos != len(data):
        raise _decode_fault(f"{len(data) - pos} bytes follow the artifact")
    return values


def _field(data: bytes, pos: int, kind: FieldType, faults: _Faults) -> tuple[FieldValue, int]:
    match kind:
        case FieldType.UINT:
            head = _head(data, pos, heads.UINT, faults)
            return head.arg, head.end
        case FieldType.BYTES:
            return _string(data, pos, heads.BYTES, faults)
        case FieldType.BYTES_LIST:
            return _list(data, pos, faults)


def _list(data: bytes, pos: int, faults: _Faults) -> tuple[list[bytes], int]:
    head = _head(data, pos, heads.ARRAY, faults)
    items, pos = list[bytes](), head.end
    for _ in range(heads.bound_count(data, head)):
        item, pos = _string(data, pos, heads.BYTES, faults)
        items.append(item)
    return items, pos


def _head(data: bytes, pos: int, major: int, faults: _Faults) -> heads.Head:
    head = heads.read_head(data, pos)
    if head.major != major:
        raise _decode_fault(f"an item at byte {pos} is not of the type that belongs there")
    if not head.minimal:
        faults.note(f"a head at byte {pos} is not the shortest")
    return head


def _string(data: bytes, pos: int, major: int, faults: _Faults) -> tuple[bytes, int]:
    head = _head(data, pos, major, faults)
    raw = heads.take(data, head)
    return raw, head.end + len(raw)


def _decode_fault(detail: str) -> VerificationError:
    return VerificationError(FailureCode.RECORD_DECODE, detail)
