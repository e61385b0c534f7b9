"""The bytes of one event as a hex dump with their structure beside it. It explains bytes, and judges none.

Each item of CBOR begins a line, indented by how deep it lies; long strings are shortened, which is said where it is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.tools._verify_report import plain
from affidavit.tools.cells import columns, cut_cells

_NAMES: Final = {20: "false", 21: "true", 22: "null"}
_INDENT: Final = 2
_DEEPEST: Final = 8  # beyond it lines move no further to the right
_SHOWN: Final = 96  # bytes of a string that are shown of a longer one
_MOST: Final = 300  # items
_WIDE: Final = 110  # columns from which on a line has 16 bytes


@dataclass(frozen=True, slots=True)
class Item:
    """One item of CBOR.

    Attributes:
        offset: Where its first byte is.
        length: How many bytes it has itself; what a map or a list holds stands in items of its own.
        depth: How many containers it lies in.
        what: What it is, in words.
    """

    offset: int
    length: int
    depth: int
    what: str


def items_of(data: bytes) -> Iterator[Item]:
    """Go through the items of one well-formed encoding.

    Raises:
        VerificationError: It is not well-formed.
    """
    pos, left = 0, [1]
    while left:
        if left[-1] == 0:
            left.pop()
            continue
        left[-1] -= 1
        head = heads.read_head(data, pos)
        content = heads.take(data, head) if head.major in (heads.BYTES, heads.TEXT) else b""
        end = head.end + len(content)
        yield Item(pos, end - pos, len(left) - 1, _what(head, content))
        pos = end
        if head.major in (heads.ARRAY, heads.MAP, heads.TAG):
            per_entry = 2 if head.major == heads.MAP else 1
            left.append(
                1 if head.major == heads.TAG else heads.bound_count(data, head, per_entry) * per_entry
            )


def _what(head: heads.Head, content: bytes) -> str:
    match head.major:
        case heads.UINT:
            return str(head.arg)
        case heads.NEGATIVE:
            return str(-1 - head.arg)
        case heads.TEXT:
            return f'"{content.decode("utf-8", "backslashreplace")}"'
        case heads.BYTES:
            return f"{len(content)} bytes"
        case heads.ARRAY:
            return f"list of {head.arg}"
        case heads.MAP:
            return f"map of {head.arg}"
        case heads.TAG:
            return f"tag {head.arg}"
        case _:
            return _NAMES.get(head.arg, f"simple value {head.arg}")


def hex_lines(data: bytes, width: int | None = None, *, full: bool = False) -> Iterator[str]:
    """Go through the lines of the dump.

    Args:
        data: The bytes.
        width: The columns of the terminal; None for a pipe.
        full: Whether nothing is left out.

    Raises:
        VerificationError: The bytes are not well-formed.
    """
    wide = width is None or width >= _WIDE
    per_line = 16 if wide else 8
    # Offset, two blanks, the bytes, two blanks.
    room = None if width is None else max(width - 6 - 2 - 3 * per_line - 1, 8)
    for number, item in enumerate(items_of(data)):
        if number == _MOST and not full:
            yield f"        ... from byte {item.offset} on {len(data) - item.offset} further bytes; --full shows them"
            return
        yield from _item_lines(data, item, per_line, room, full=full)


def _item_lines(data: bytes, item: Item, per_line: int, room: int | None, *, full: bool) -> Iterator[str]:
    shown = item.length if full or item.length <= _SHOWN else _SHOWN
    label = " " * (_INDENT * min(item.depth, _DEEPEST)) + plain(item.what)
    for start in range(0, shown, per_line):
        offset = item.offset + start
        octets = data[offset : min(offset + per_line, item.offset + shown)].hex(" ")
        words = _cut(label, room) if start == 0 else ""
        yield f"{offset:>6}  {octets:<{3 * per_line - 1}}  {words}".rstrip()
    if shown < item.length:
        yield f"        ... {item.length - shown} bytes more of it; --full shows them"


def _cut(text: str, room: int | None) -> str:
    limit = _SHOWN if room is None else room
    return text if columns(text) <= limit else cut_cells(text, limit - 3) + "..."
