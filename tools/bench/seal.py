"""Sealing beside a bare loop that hashes the same bytes; sealing and verifying inside a busy program beside a thread.

The loop makes the leaf and node hashes of the tree and nothing else. Sealing also reads, writes and signs. Files are not
synced: a disk is not what is measured.
"""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

import trio

from affidavit.actors.logs.sqlite_connect import open_reader
from affidavit.actors.logs.sqlite_reader import READ_GRACE, open_sqlite_reader
from affidavit.actors.logs.sqlite_schema import create_tables
from affidavit.crypto.record import RecordWriter
from affidavit.tools.bench.figures import Figures, scratch
from affidavit.tools.bench.made_record import STREAM, made_events, signed
from affidavit.tools.bench.rotation import ratio, rotate
from affidavit.tools.bench.seal_lateness import measure_lateness

EVENTS: Final = 1_000_000
ROUNDS: Final = 5
_BATCH: Final = 1024
_SLICE: Final = 256  # rows that the log's reader gives before it lets others run
_SUBTREE: Final = 1024  # leaves that are hashed while they are at hand
_LATENESS_EVENTS: Final = 100_000


def hash_loop(events: list[bytes]) -> bytes:
    """Return the root over events, by nothing but hashing: the baseline, written apart from what it is compared with."""
    roots = [_subtree(events[start : start + _SUBTREE]) for start in range(0, len(events), _SUBTREE)]
    return _fold(roots)


def _subtree(events: list[bytes]) -> bytes:
    return _fold(
        [
            sha256(b"\x00provetrail/event/v1\n" + len(event).to_bytes(8, "big") + event).digest()
            for event in events
        ]
    )


def _fold(level: list[bytes]) -> bytes:
    while len(level) > 1:
        pairs = iter(level)
        above = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]
        level = above + level[-1:] if len(level) & 1 else above
    return level[0]


def seal(batches: Iterator[list[bytes]], count: int, path: Path) -> bytes:
    """Write a sealed run of events that come in batches, and return its root."""
    with path.open("wb", buffering=0) as file:
        writer = RecordWriter(count, file.write)
        for events in batches:
            writer.add(events)
        root = writer.root()
        writer.finish(signed(count, root))
    return root


def _slices(events: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(events), _BATCH):
        yield events[start : start + _BATCH]


def fill(store: Path, events: list[bytes]) -> None:
    """Make a store that holds the run."""
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        create_tables(connection)
        rows = ((STREAM, seq, data) for seq, data in enumerate(events, 1))
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO streams (stream, tip) VALUES (?, ?)", (STREAM, len(events)))


def _stored(connection: sqlite3.Connection) -> Iterator[list[bytes]]:
    cursor = connection.execute("SELECT data FROM rows WHERE stream = ? ORDER BY seq", (STREAM,))
    while page := cursor.fetchmany(_BATCH):
        yield [data for (data,) in page]


def seal_from_sqlite(store: Path, count: int, path: Path) -> bytes:
    """Write a sealed run of the rows of a store, opened as the log's reader opens it."""
    connection, _ = open_reader(store, READ_GRACE)
    with closing(connection):
        return seal(_stored(connection), count, path)


async def seal_through_reader(store: Path, count: int, path: Path) -> None:
    """Write a sealed run through the log's port, which yields to other tasks after every slice."""
    async with open_sqlite_reader(store) as log:
        with path.open("wb", buffering=0) as file:  # noqa: ASYNC230 - blocking is what is measured
            writer = RecordWriter(count, file.write)
            seq = 0
            while page := await log.read(STREAM, seq, _SLICE):
                seq += len(page)
                writer.add([row.data for row in page])
            writer.finish(signed(count, writer.root()))


def _timed(work: Callable[[], object], out: Path) -> Callable[[], float]:
    def measure() -> float:
        began = time.perf_counter()
        work()
        took = time.perf_counter() - began
        # So that the next one neither pays for emptying it nor shares the machine with its way to the disk.
        out.unlink(missing_ok=True)
        return took

    return measure


def run(events: int | None = None) -> Figures:
    """Measure sealing.

    Args:
        events: How many events are sealed; a million by default.
    """
    count, found = events or EVENTS, Figures()
    run_events = [event for batch in made_events(count) for event in batch]
    with scratch() as folder:
        store, out = folder / "store", folder / "out"
        fill(store, run_events)
        if (
            not hash_loop(run_events)
            == seal(_slices(run_events), count, out)
            == seal_from_sqlite(store, count, out)
        ):
            raise RuntimeError("the ways to seal differ in the root")
        out.unlink()
        taken = rotate(
            {
                "hash_loop": _timed(lambda: hash_loop(run_events), out),
                "seal": _timed(lambda: seal(_slices(run_events), count, out), out),
                "seal_from_sqlite": _timed(lambda: seal_from_sqlite(store, count, out), out),
                "seal_through_reader": _timed(lambda: trio.run(seal_through_reader, store, count, out), out),
            },
            ROUNDS,
        )
    found.ratios["vs_hash_loop"] = ratio(taken["seal"], taken["hash_loop"])
    found.ratios["from_sqlite_vs_hash_loop"] = ratio(taken["seal_from_sqlite"], taken["hash_loop"])
    for name, times in taken.items():
        found.figures[f"{name}_us_per_event"] = statistics.median(times) / count * 1e6
    found.figures["through_reader_vs_hash_loop"] = ratio(taken["seal_through_reader"], taken["hash_loop"])
    del run_events[_LATENESS_EVENTS:]
    found.add(measure_lateness(run_events))
    return found
