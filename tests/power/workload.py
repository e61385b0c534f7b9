"""The process whose disk is watched, or fails: it appends to several streams at once and says each row that was acknowledged.

Arguments: the store, what a commit waits for (FULL, NORMAL or OFF, which the product does not offer), and how many rows each
stream gets. The write-ahead log is copied into the database again and again, so that power is lost in the middle of that as well.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

from affidavit.actors.errors import LogError
from affidavit.actors.logs import sqlite_store
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from affidavit.actors.logs.sqlite_connect import Synchronous

STREAMS = 3
PAGES = 30  # of the write-ahead log between two checkpoints


def content(stream: str, seq: int) -> bytes:
    """What the row of this stream and seq holds."""
    return f"{stream}/{seq};".encode() * (20 + seq % 7 * 60)


async def _write(log: SqliteLog, stream: str, rows: int) -> None:
    for seq in range(1, rows + 1):
        try:
            await log.append([Entry(stream, seq - 1, (content(stream, seq),))])
        except LogError as error:
            os.write(1, f"error {type(error).__name__} {stream} {error}\n".encode())
            return
        os.write(1, f"ack {stream} {seq}\n".encode())


async def main(path: Path, synchronous: str, rows: int) -> None:
    """Append until all streams are full, then close."""
    vars(sqlite_store)["CHECKPOINT_PAGES"] = PAGES
    level = Synchronous.NORMAL if synchronous == "NORMAL" else Synchronous.FULL
    try:
        async with open_sqlite_log(path, synchronous=level) as log:
            if synchronous == "OFF":
                log._group._store._connection.execute("PRAGMA synchronous = OFF")
            async with trio.open_nursery() as nursery:
                for number in range(STREAMS):
                    nursery.start_soon(_write, log, f"s{number}", rows)
    except LogError as error:
        os.write(1, f"error {type(error).__name__} - {error}\n".encode())


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
