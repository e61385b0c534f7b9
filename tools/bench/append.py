"""Durable appends: N tasks that each call the log's `append` with an event to encode, beside a bare sqlite3 loop.

The loop does the same encoding and commits batches of N rows, with full syncs too. `append_sessions` adds the whole path of a
session, `append_busy` a loop that another task keeps busy.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import trio

from affidavit.actors.codec import encode
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from affidavit.tools.bench.append_busy import measure_busy
from affidavit.tools.bench.append_sessions import measure_sessions
from affidavit.tools.bench.figures import Figures, alternate, scratch

TASKS: Final = (1, 10, 100, 1000)
# Events in one round, if nobody says otherwise: some tenths of a second each.
_EVENTS: Final = {1: 1200, 10: 4000, 100: 8000, 1000: 10_000}
_SESSIONS: Final = 100
_WORDS: Final = "The quick brown fox jumps over the lazy dog, and the ledger balances. " * 2


def an_event(stream: str, seq: int) -> bytes:
    """Encode an event of about 350 bytes, as the stream does it."""
    event = Event(Kind.TOOL_RESULT, turn=3, tool="read_file", tool_use_id="call_0123456789", result=_WORDS)
    return encode(event, stream=stream, seq=seq, time=time.time_ns())


class Bare:
    """The baseline: encode, insert, commit, again, with nothing in between."""

    def __init__(self, path: Path, batch: int, events: int) -> None:
        """Work on a file of its own, in batches of one row for each of `batch` streams."""
        self._path = path
        self._batch = batch
        self._rounds = max(events // batch, 1)
        self._seq = 0
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(
                "CREATE TABLE rows (stream TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL,"
                " PRIMARY KEY (stream, seq)) STRICT"
            )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def __call__(self) -> float:
        """Do a round, and return events per second."""
        with closing(self._connect()) as connection:
            began = time.perf_counter()
            for _ in range(self._rounds):
                self._seq += 1
                names = [f"stream-{number}" for number in range(self._batch)]
                rows = [(name, self._seq, an_event(name, self._seq)) for name in names]
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
                connection.execute("COMMIT")
            return self._rounds * self._batch / (time.perf_counter() - began)


class Tasks:
    """Ours: each task appends to a stream of its own, one event after another."""

    def __init__(self, path: Path, tasks: int, events: int) -> None:
        """Work on a store of its own."""
        self._path = path
        self._tasks = tasks
        self._rounds = max(events // tasks, 1)
        self._tip = 0

    def __call__(self) -> float:
        """Do a round, and return events per second."""
        return trio.run(self._round)

    async def _round(self) -> float:
        async with open_sqlite_log(self._path) as log:
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for number in range(self._tasks):
                    nursery.start_soon(self._append, log, f"stream-{number}")
            took = time.perf_counter() - began
        self._tip += self._rounds
        return self._rounds * self._tasks / took

    async def _append(self, log: SqliteLog, stream: str) -> None:
        for tip in range(self._tip, self._tip + self._rounds):
            (result,) = await log.append([Entry(stream, tip, (an_event(stream, tip + 1),))])
            if result != tip + 1:
                raise RuntimeError(f"the append to {stream} came to {result}")


def run(events: int | None = None) -> Figures:
    """Measure all figures of durable appends.

    Args:
        events: How many events a round handles, at most; by default what takes some tenths of a second.
    """
    found = Figures()
    with scratch() as folder:
        for tasks in TASKS:
            count = min(_EVENTS[tasks], events or _EVENTS[tasks])
            ratio, ours, bare = alternate(
                Tasks(folder / f"ours-{tasks}", tasks, count), Bare(folder / f"bare-{tasks}", tasks, count)
            )
            found.ratios[f"vs_raw_{tasks}"] = ratio
            found.figures[f"append_{tasks}_per_s"] = ours
            found.figures[f"raw_{tasks}_per_s"] = bare
        count = min(_EVENTS[_SESSIONS], events or _EVENTS[_SESSIONS])
        found.add(
            measure_sessions(
                folder, _SESSIONS, count, partial(Bare, folder / "bare-sessions", _SESSIONS, count)
            )
        )
        found.add(measure_busy(folder, an_event))
    return found
