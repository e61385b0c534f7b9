"""The closed maps that artifacts travel in: which fault is named, and reading a field as what it is."""

import pytest

from affidavit.crypto.cbor_heads import write_bytes
from affidavit.crypto.container import FieldType, read_closed_map
from tests.crypto.samples import code_of

FIELDS = {"n": FieldType.UINT, "list": FieldType.BYTES_LIST}
GOOD = b"\xa2\x61n\x05\x64list\x82\x41a\x41b"


def test_fields_are_read_by_type_and_by_no_other() -> None:
    """Asking for a field as another type is a fault of the program."""
    fields = read_closed_map(GOOD, FIELDS)
    assert (fields.uint("n"), fields.octet_strings("list")) == (5, [b"a", b"b"])
    for wrong in (lambda: fields.octets("n"), lambda: fields.uint("list"), lambda: fields.octet_strings("n")):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("length", [0, 1, 23, 24, 255, 256, 65_535, 65_536])
def test_strings_of_every_head_length_are_read(length: int) -> None:
    """Each form of head, around its limits, reads back and has no second spelling."""
    item = write_bytes(bytes(length))
    data = b"\xa2\x61n\x05\x64list\x81" + item
    assert read_closed_map(data, FIELDS).octet_strings("list") == [bytes(length)]
    for head in (b"\x58", b"\x59", b"\x5a", b"\x5b"):
        width = 1 << b"\x58\x59\x5a\x5b".index(head)
        longer = head + length.to_bytes(8, "big")[-width:] + bytes(length)
        if length < 1 << 8 * width and len(longer) > len(item):
            assert (
                code_of(read_closed_map, b"\xa2\x61n\x05\x64list\x81" + longer, FIELDS)
                == "record.non_canonical"
            )


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xa2\x64list\x80\x61n\x05", "record.non_canonical"),
        (b"\xb8\x02" + GOOD[1:], "record.non_canonical"),
        (GOOD.replace(b"\x61n", b"\x78\x01n"), "record.non_canonical"),
        (GOOD.replace(b"\x05", b"\x18\x05"), "record.non_canonical"),
        (b"\xa3" + GOOD[1:] + b"\x61z\x9f\xff", "record.decode"),
        (b"\xa3" + GOOD[1:] + b"\x61z\x81\x00", "record.non_canonical"),
        (b"\xa4" + GOOD[1:] + b"\x61z\x00\x61z\x00", "record.decode"),
        (b"\xa3" + GOOD[1:] + b"\x61n\x05", "record.decode"),
        (b"\xa3" + GOOD[1:] + b"\x05\x05", "record.decode"),
        (b"\xa3" + GOOD[1:] + b"\x61z", "record.decode"),
        (b"\xa1\x61n\x05", "record.decode"),
        (GOOD.replace(b"\x05", b"\x25"), "record.decode"),
        (GOOD.replace(b"\x41a", b"\x61a"), "record.decode"),
        (GOOD.replace(b"\x82\x41", b"\xa1\x41"), "record.decode"),
        (b"\x82\x61n\x05", "record.decode"),
        (GOOD + b"\x00", "record.decode"),
        (b"", "record.decode"),
    ],
)
def test_a_fault_has_its_code(data: bytes, code: str) -> None:
    """What does not decode comes before what decodes but is not canonical."""
    assert code_of(read_closed_map, data, FIELDS) == code


def test_every_cut_is_a_decoding_fault() -> None:
    """Wherever the input ends early, it does not decode."""
    for data in (GOOD, b"\xa2\x61n\x05\x64list\x81" + write_bytes(bytes(300))):
        for end in range(len(data)):
            assert code_of(read_closed_map, data[:end], FIELDS) == "record.decode"
