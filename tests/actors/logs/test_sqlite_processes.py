"""One store and several processes: who disturbs whom, and what a process that was killed leaves."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest
import trio

from affidavit.actors.errors import RunOwned
from affidavit.actors.logs.port import Entry, StreamInfo
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.environment import ROOT, SOAK

KILLS = 40 if SOAK else 6


@contextmanager
def _child(command: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "tests.actors.logs.child", command, str(path)]
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _lines(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def _check_with_sqlite(path: Path) -> dict[str, list[bytes]]:
    """Read a store with plain SQL, independent of the log, and check that rows and index agree."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        index = dict(connection.execute("SELECT stream, tip FROM streams"))
        streams: dict[str, list[bytes]] = {}
        for stream, seq, data in connection.execute(
            "SELECT stream, seq, data FROM rows ORDER BY stream, seq"
        ):
            streams.setdefault(stream, []).append(data)
            assert len(streams[stream]) == seq, "a seq is missing or doubled"
        assert {stream: len(rows) for stream, rows in streams.items()} == index
        return streams


@pytest.mark.parametrize("acks", [1, *range(7, 7 * KILLS, 7)])
def test_kill_in_mid_append_loses_no_acknowledged_row(tmp_path: Path, acks: int) -> None:
    """Killed after so many acknowledgements, the store opens, is dense, and holds every row that was acknowledged."""
    path = tmp_path / "store"
    with _child("append", path) as process:
        said = [next(_lines(process)) for _ in range(acks)]
        process.kill()
        said += _lines(process)

    async def reopen() -> tuple[StreamInfo, ...]:
        async with open_sqlite_log(path) as log:
            for info in await log.list():
                assert await log.append([Entry(info.stream, info.tip, (b"goes on",))]) == (info.tip + 1,)
            return await log.list()

    infos = {info.stream: info.tip for info in trio.run(reopen)}
    rows = _check_with_sqlite(path)
    for line in said:
        stream, seq = line.split()
        assert rows[stream][int(seq) - 1] == f"{stream}/{seq}".encode() * 50
    assert infos == {stream: len(found) for stream, found in rows.items()}


def test_a_reader_sees_what_a_killed_owner_left(tmp_path: Path) -> None:
    """Before any owner has come back, a reading process finds every acknowledged row."""
    path = tmp_path / "store"
    with _child("append", path) as process:
        said = [next(_lines(process)) for _ in range(20)]
        process.kill()
        said += _lines(process)

    async def read() -> dict[str, int]:
        async with open_sqlite_reader(path) as reader:
            return {info.stream: info.tip for info in await reader.list()}

    before = path.read_bytes()
    tips = trio.run(read)
    assert path.read_bytes() == before
    assert all(tips[stream] >= int(seq) for stream, seq in map(str.split, said))


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_ownership_lasts_as_long_as_its_process(tmp_path: Path, paused: bool) -> None:
    """S11: a run owned elsewhere is refused at once, by a stopped owner too; killing the owner frees it."""
    path = tmp_path / "store"

    async def own() -> None:
        async with open_sqlite_log(path) as log, log.own("b"), log.own("a"):
            await log.append([Entry("a", 0, (b"mine",))])

    with _child("own", path) as process:
        assert next(_lines(process)) == "owned\n"
        if paused:
            process.send_signal(signal.SIGSTOP)
        with pytest.raises(RunOwned):
            trio.run(own)
        process.kill()
        process.wait()
        trio.run(own)


def test_of_many_that_want_an_abandoned_run_one_has_it(tmp_path: Path) -> None:
    """S11: with the owner gone exactly one takes over, however many try at the same moment."""
    path = tmp_path / "store"
    with _child("own", path) as owner:
        assert next(_lines(owner)) == "owned\n"
        with _child("covet", path) as one, _child("covet", path) as two, _child("covet", path) as three:
            heirs = (one, two, three)
            assert {next(_lines(heir)) for heir in heirs} == {"ready\n"}
            assert [_try(heirs), _try(heirs)] == [["refused\n"] * 3] * 2
            owner.kill()
            owner.wait()
            assert _try(heirs) == ["owned\n", "refused\n", "refused\n"]


def _try(heirs: tuple[subprocess.Popen[str], ...]) -> list[str]:
    """Have all try at once, and return how it went."""
    for heir in heirs:
        assert heir.stdin is not None
        heir.stdin.write("try\n")
        heir.stdin.flush()
    return sorted(next(_lines(heir)) for heir in heirs)


def test_writers_in_several_processes_never_lose_or_double_a_row(tmp_path: Path) -> None:
    """Processes that race for one stream each get every seq they were told, and nobody else has it."""
    path = tmp_path / "store"
    with _child("race", path) as one, _child("race", path) as two, _child("race", path) as three:
        said = [line.split() for process in (one, two, three) for line in _lines(process)]
        assert [process.wait() for process in (one, two, three)] == [0, 0, 0]
    rows = _check_with_sqlite(path)["shared"]
    assert sorted(int(seq) for _, seq in said) == list(range(1, 301))
    assert all(rows[int(seq) - 1] == pid.encode() for pid, seq in said)


def test_a_reader_follows_a_writer_without_disturbing_it(tmp_path: Path) -> None:
    """While another process reads all the time, each append works, and the reader gets every row once, in order."""
    path = tmp_path / "store"

    async def write() -> None:
        async with open_sqlite_log(path, lock_grace=0) as log:
            await log.append([Entry("a", 0, (b"row 1",))])
            with _child("follow", path) as process:
                assert next(_lines(process)) == "ready\n"
                for seq in range(1, 200):
                    row = f"row {seq + 1}".encode()
                    assert await log.append([Entry("a", seq, (row,))]) == (seq + 1,)
                got = await trio.to_thread.run_sync(lambda: list(_lines(process)))
                assert process.wait() == 0
        assert got == [f"{seq} row {seq}\n" for seq in range(1, 201)]

    trio.run(write)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["store", "store.lock"]


def test_reading_changes_no_byte_of_a_live_store(tmp_path: Path) -> None:
    """Opening, reading and closing readers leaves database and write-ahead log as they were, and the owner goes on."""
    path = tmp_path / "store"

    async def main() -> None:
        async with open_sqlite_log(path, lock_grace=0) as log:
            await log.append([Entry("a", 0, (b"x",) * 50)])
            before = [(tmp_path / name).read_bytes() for name in ("store", "store-wal")]
            for _ in range(3):
                done = await trio.run_process(
                    [sys.executable, "-c", _READ_ALL, str(path)], cwd=ROOT, capture_stdout=True
                )
                assert done.stdout == b"50\n"
            assert [(tmp_path / name).read_bytes() for name in ("store", "store-wal")] == before
            assert await log.append([Entry("a", 50, (b"y",))]) == (51,)

    trio.run(main)


_READ_ALL = """
import sys, trio
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.environment import ROOT, SOAK

async def main(path):
    async with open_sqlite_reader(path) as reader:
        print(len(await reader.read("a")))

trio.run(main, sys.argv[1])
"""


def test_a_full_disk_is_a_known_not_written(tmp_path: Path) -> None:
    """At a limit of the file's size the append fails as LogFull, and goes on where it stopped once there is room."""
    path = tmp_path / "store"
    with _child("fill", path) as process:
        full, after = list(_lines(process))
        assert process.wait() == 0
    word, count, _ = full.split(maxsplit=2)
    assert word == "full"
    assert int(count) > 10
    assert after == f"after {int(count) + 1}\n"
    assert _check_with_sqlite(path)["a"] == [b"x" * 10_000] * int(count) + [b"after"]
