"""The hex dump: every byte once and in order, with what it says beside it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import cbor
from affidavit.tools.cbor_lines import hex_lines, items_of
from affidavit.tools.cells import columns

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.text(max_size=150)
    | st.binary(max_size=150),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_each_item_begins_a_line() -> None:
    """Offset, bytes, and the item in words, indented by how deep it lies."""
    data = cbor.encode({"n": -3, "of": [True, None, b"\x01\x02"], "text": "a\x1b[31m long enough"})
    assert list(hex_lines(data, 80)) == [
        "     0  a3                       map of 3",
        '     1  61 6e                      "n"',
        "     3  22                         -3",
        '     4  62 6f 66                   "of"',
        "     7  83                         list of 3",
        "     8  f5                           true",
        "     9  f6                           null",
        "    10  42 01 02                     2 bytes",
        '    13  64 74 65 78 74             "text"',
        '    18  72 61 1b 5b 33 31 6d 20    "a\\x1b[31m long enough"',
        "    26  6c 6f 6e 67 20 65 6e 6f",
        "    34  75 67 68",
    ]


def test_what_is_long_is_shortened_and_said_to_be() -> None:
    """Only where nobody asked for all of it: long strings, and what has very many items."""
    data = cbor.encode({"blob": bytes(1000), "many": [0] * 1000})
    short = list(hex_lines(data, 80))
    assert "        ... 907 bytes more of it; --full shows them" in short
    assert short[-1].endswith("further bytes; --full shows them")
    assert len(list(hex_lines(data, 80, full=True))) > 1000


@given(value=st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_every_byte_stands_there_once(value: dict[str, object]) -> None:
    """The items lie side by side from the first byte to the last, and the dump holds exactly the bytes."""
    data = cbor.encode(value)
    items = list(items_of(data))
    assert [item.offset for item in items[1:]] == [item.offset + item.length for item in items[:-1]]
    assert items[-1].offset + items[-1].length == len(data)
    dumped = "".join(line[8 : 8 + 23] for line in hex_lines(data, 80, full=True))
    assert bytes.fromhex(dumped) == data


@given(value=st.dictionaries(st.text(max_size=8), VALUES, max_size=4), width=st.integers(60, 140))
def test_no_line_is_wider_than_the_screen(value: dict[str, object], width: int) -> None:
    """Whatever stands in a record."""
    assert all(columns(line) <= width for line in hex_lines(cbor.encode(value), width))
