"""One appender beside a task that keeps the loop busy in bursts of 200 us: beside committing in the loop itself, and how late.

PERFORMANCE.md names the two traps of the interpreter lock that make such an append take a second where a thread writes the rows.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import trio

from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.tools.bench.figures import Figures, alternate, percentile

BURST: Final = 200e-6  # seconds
_SECONDS: Final = 0.6  # of one round

Encode = Callable[[str, int], bytes]
Append = Callable[[int], object]


async def _hog(scope: trio.CancelScope) -> None:
    with scope:
        while True:
            until = time.perf_counter() + BURST
            while time.perf_counter() < until:
                pass
            await trio.lowlevel.checkpoint()


class Ours:
    """The log's append, in a loop that is never idle.

    Attributes:
        late: How long each append took, in seconds.
    """

    def __init__(self, path: Path, encode: Encode) -> None:
        """Work on a store of its own."""
        self._path = path
        self._encode = encode
        self._tip = 0
        self.late: list[float] = []

    def __call__(self) -> float:
        """Do a round, and return appends per second."""
        return trio.run(self._round)

    async def _round(self) -> float:
        async with open_sqlite_log(self._path) as log, trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(_hog, scope)
            began, first = time.perf_counter(), self._tip
            while (now := time.perf_counter()) < began + _SECONDS:
                await log.append([Entry("busy", self._tip, (self._encode("busy", self._tip + 1),))])
                self._tip += 1
                self.late.append(time.perf_counter() - now)
            rate = (self._tip - first) / (time.perf_counter() - began)
            scope.cancel()
        return rate


class Inline:
    """The baseline: insert and commit in the loop, which stands still for the sync."""

    def __init__(self, path: Path, encode: Encode) -> None:
        """Work on a file of its own."""
        self._path = path
        self._encode = encode
        self._seq = 0

    def __call__(self) -> float:
        """Do a round, and return appends per second."""
        return trio.run(self._round)

    async def _round(self) -> float:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS rows (stream TEXT, seq INTEGER, data BLOB, PRIMARY KEY (stream, seq))"
            )
            async with trio.open_nursery() as nursery:
                scope = trio.CancelScope()
                nursery.start_soon(_hog, scope)
                began, first = time.perf_counter(), self._seq
                while time.perf_counter() < began + _SECONDS:
                    self._seq += 1
                    data = self._encode("busy", self._seq)
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("INSERT INTO rows VALUES (?, ?, ?)", ("busy", self._seq, data))
                    connection.execute("COMMIT")
                    await trio.lowlevel.checkpoint()
                rate = (self._seq - first) / (time.perf_counter() - began)
                scope.cancel()
        return rate


def measure_busy(folder: Path, encode: Encode) -> Figures:
    """Measure one appender in a busy loop beside committing inline in it."""
    ours = Ours(folder / "busy", encode)
    ratio, rate, inline = alternate(ours, Inline(folder / "inline", encode))
    return Figures(
        ratios={"busy_vs_inline": ratio},
        figures={
            "busy_p50_ms": percentile(ours.late, 0.5) * 1e3,
            "busy_p99_ms": percentile(ours.late, 0.99) * 1e3,
            "busy_per_s": rate,
            "busy_inline_per_s": inline,
        },
    )
