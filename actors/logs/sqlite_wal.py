"""Looks into a write-ahead log that nobody has open: whether SQLite would drop committed transactions when it recovers it.

SQLite reads such a log up to the first frame that does not fit, and takes the rest for what a crash left of the last
transaction. After a crash it is right. After damage in the middle it would silently drop what was acknowledged. The
two can be told apart: a transaction is begun only after the one before is on the disk, so that nothing follows a
transaction that a crash has torn. The format is that of https://www.sqlite.org/fileformat2.html#walformat.

It reads the file by its name, which is safe: SQLite holds no locks on it. It never writes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from affidavit.actors.errors import StoreUnusable

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}
_MASK: Final = 0xFFFFFFFF
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class WalState:
    """What a write-ahead log holds.

    Attributes:
        frames: How many frames SQLite will recover, all of them committed.
        torn: How many frames of this generation follow that it will not: a transaction that was cut off.
        lost: How many committed transactions it would drop, at least; not what a crash leaves.
    """

    frames: int = 0
    torn: int = 0
    lost: int = 0


def scan_wal(store: Path) -> WalState:
    """Return what the write-ahead log beside a store holds; an absent one holds nothing.

    Blocks, for a tenth of a second per thousand frames; only after a crash is there anything to read.

    Raises:
        OSError: It is there and cannot be read.
    """
    try:
        file = store.with_name(store.name + "-wal").open("rb")
    except FileNotFoundError:
        return WalState()
    with file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return WalState()
        magic, _, page, _, salt1, salt2, *sums = _HEADER.unpack(header)
        order = _MAGIC.get(magic)
        if order is None or _checksum(header[:24], order, 0, 0) != tuple(sums) or not _is_page_size(page):
            # The header is on the disk before the first frame is written, so a crash leaves none that is bad. A new
            # file may have grown without its content.
            blocks = iter(lambda: file.read(_BLOCK), b"")
            return WalState(lost=1) if any(map(any, blocks)) else WalState()
        return _walk(file, page, order, (salt1, salt2), (sums[0], sums[1]))


def _walk(file: BinaryIO, page: int, order: str, salts: tuple[int, int], sums: tuple[int, int]) -> WalState:
    number = committed = 0  # frames; and up to the last commit that can be recovered
    chain = True
    later: list[bool] = []  # of the frames of this generation beyond: whether each ends a transaction
    while len(frame := file.read(_FRAME.size + page)) == _FRAME.size + page:
        number += 1
        _, pages, salt1, salt2, *expected = _FRAME.unpack_from(frame)
        fits = (salt1, salt2) == salts
        if chain:
            sums = _checksum(frame[:8] + frame[_FRAME.size :], order, *sums)
            chain = fits and sums == tuple(expected)
        if chain and pages:
            committed = number
            later.clear()
        elif fits:
            later.append(bool(pages))
    # One that is followed by another was on the disk.
    return WalState(committed, len(later), sum(later[:-1]))


def _checksum(data: bytes, order: str, first: int, second: int) -> tuple[int, int]:
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + two + first) & _MASK
    return first, second


def _is_page_size(page: int) -> bool:
    return 512 <= page <= 65536 and page & (page - 1) == 0  # noqa: PLR2004  # what SQLite allows


def require_whole_wal(store: Path) -> None:
    """Pass if SQLite can recover every transaction that was acknowledged; only while nobody has the store open.

    Raises:
        StoreUnusable: It would drop some, or the file cannot be read.
    """
    try:
        state = scan_wal(store)
    except OSError as error:
        raise StoreUnusable(
            f"the write-ahead log of the store {store} cannot be read: {error.strerror}"
        ) from None
    if state.lost:
        raise StoreUnusable(
            f"the write-ahead log of the store {store} is damaged behind frame {state.frames}, and rows that were"
            " acknowledged lie beyond; nothing was changed (`affidavit fsck` tells more)"
        )
