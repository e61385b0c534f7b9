"""Kills an appending process again and again, and lets an independent reader look at the store after each time.

Run as a program: `kills.py STORE ROUNDS SEED`. It forks a victim for each round, from a process that has everything imported and
has started nothing. Each victim goes on with the same store where the one before was killed. The reader is plain SQLite, in a
process that never opened the store with the product, and it writes nothing: what the victim left is what the next one recovers.
It prints one line with counts, or says what is wrong and ends with 1.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import trio

from affidavit.actors.errors import WriterFenced
from affidavit.actors.logs import sqlite_store
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from affidavit.actors.logs.sqlite_store import Store

STREAMS = 5
PIPE = 1 << 20
PATIENCE = 120  # seconds that a victim may live
POINTS = ("try_begin", "compare", "write", "commit", "checkpoint", "leave")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _doom(point: str, number: int, *, after: bool) -> None:
    """Have the store end this process right before or right after it takes a step for the n-th time."""
    real: Callable[..., Any] = getattr(Store, point)
    count = 0

    def doomed(*words: Any) -> Any:
        nonlocal count
        count += 1
        if count == number and not after:
            _die()
        result = real(*words)
        if count == number and after:
            _die()
        return result

    setattr(Store, point, doomed)


async def _append(log: SqliteLog, stream: str, chance: random.Random, say: int) -> None:
    info = await log.info(stream)
    tip = info.tip if info else 0
    while True:
        rows = tuple(
            chance.randbytes(chance.choice((8, 300, 6000))) for _ in range(chance.choice((1, 1, 1, 3)))
        )
        (result,) = await log.append([Entry(stream, tip, rows)])
        if isinstance(result, WriterFenced):
            raise result
        for seq, row in enumerate(rows, tip + 1):
            os.write(say, f"{stream} {seq} {row[:8].hex()}\n".encode())
        tip = result


async def _live(path: Path, seed: int, say: int) -> None:
    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        for number in range(STREAMS):
            nursery.start_soon(_append, log, f"s{number}", random.Random(f"{seed} {number}"), say)


def victim(path: Path, seed: int, say: int) -> None:
    """Append for ever; in some rounds, end at a chosen step."""
    signal.alarm(PATIENCE)
    vars(sqlite_store)["CHECKPOINT_PAGES"] = 60
    chance = random.Random(seed)
    if chance.random() < 0.5:
        _doom(chance.choice(POINTS), chance.randint(1, 12), after=chance.random() < 0.5)
    trio.run(_live, path, seed, say)


class Reader:
    """What the store held when it was last looked at, and what was acknowledged since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tips: dict[str, int] = {}
        self.rows = 0

    def look(self, acknowledged: list[str]) -> None:
        """Check everything; an AssertionError says what is wrong."""
        if not self._path.exists():
            assert not acknowledged, "the store is gone"
            return
        with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
            if not _is_made(connection):
                assert not acknowledged, "the store is not even made"
                assert not self._tips, "the store was there, and is not any more"
                return
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            index = dict(connection.execute("SELECT stream, tip FROM streams"))
            stored = dict(
                connection.execute("SELECT stream || ' ' || seq, lower(hex(substr(data, 1, 8))) FROM rows")
            )
            for stream, count, last in connection.execute(
                "SELECT stream, count(*), max(seq) FROM rows GROUP BY stream"
            ):
                assert count == last == index.pop(stream), (
                    f"{stream} is not dense, or not what the index says"
                )
                assert last >= self._tips.get(stream, 0), f"{stream} has become shorter"
                self._tips[stream] = last
        assert not index, f"the index knows streams without rows: {index}"
        for line in acknowledged:
            name, _, start = line.rpartition(" ")
            assert stored.get(name) == start, f"{name} was acknowledged, and is {stored.get(name)}"
        self.rows = len(stored)


def _is_made(connection: sqlite3.Connection) -> bool:
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
            return False  # killed while it was making the tables
        raise
    return bool(tables)


def _round(path: Path, seed: int, delay: float, *, at_once: bool) -> tuple[list[str], int]:
    """Return what one victim said before it was killed, and how it ended.

    Unless its time runs at once, it begins with the first acknowledgement: a busy machine may take long to get there.
    """
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE)
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            victim(path, seed, writing)
        finally:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    os.close(writing)
    if not at_once:
        # Also ready once the victim has ended by itself.
        select.select([reading], [], [], PATIENCE)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reading, "rb") as said:
        return said.read().decode().splitlines(), os.waitstatus_to_exitcode(status)


def main(path: Path, rounds: int, seed: int) -> None:
    """Kill, look, and again. All that was ever acknowledged is checked after the last round once more."""
    chance = random.Random(seed)
    reader = Reader(path)
    every: list[str] = []
    for number in range(rounds):
        delay, at_once = chance.choice((0.0, 0.01, 0.02, 0.04, 0.08)), chance.random() < 0.3
        said, ended = _round(path, seed * 1_000_000 + number, delay, at_once=at_once)
        assert ended == -signal.SIGKILL, f"round {number} ended with {ended}"
        # A seq that was acknowledged twice was used twice.
        every += said
        reader.look(said)
    reader.look(every)
    seqs = [line.rpartition(" ")[0] for line in every]
    assert len(seqs) == len(set(seqs)), "a seq was acknowledged twice"
    print(json.dumps({"rounds": rounds, "acknowledged": len(every), "rows": reader.rows}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
