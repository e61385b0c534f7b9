"""Another process on the same store: what it does is its first argument, each line it prints is one fact."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import trio

from affidavit.actors.errors import LogFull, RunOwned, WriterFenced
from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import SqliteLog, open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader


def say(line: str) -> None:
    """Print at once; what was printed is in the pipe even if the process is killed next."""
    os.write(1, f"{line}\n".encode())


async def append(path: Path) -> None:
    """Append to ten streams at once for ever, saying each acknowledged row."""

    async def write(log: SqliteLog, stream: str) -> None:
        seq = 0
        while True:
            await log.append([Entry(stream, seq, (f"{stream}/{seq + 1}".encode() * 50,))])
            seq += 1
            say(f"{stream} {seq}")

    async with open_sqlite_log(path) as log, trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(write, log, f"s{number}")


async def own(path: Path) -> None:
    """Own run "a" and stay."""
    async with open_sqlite_log(path) as log, log.own("a"):
        say("owned")
        await trio.sleep_forever()


async def covet(path: Path) -> None:
    """Try to own run "a" at each line on standard input, saying how that went, and stay once it is owned."""
    async with open_sqlite_log(path) as log, AsyncExitStack() as stack:
        say("ready")
        while await trio.to_thread.run_sync(sys.stdin.readline):
            try:
                await stack.enter_async_context(log.own("a"))
                say("owned")
            except RunOwned:
                say("refused")


async def race(path: Path) -> None:
    """Append a hundred rows to one stream that others append to as well, saying the seq that each got."""
    name = str(os.getpid()).encode()
    async with open_sqlite_log(path, lock_grace=30) as log:
        tip, written = 0, 0
        while written < 100:
            (result,) = await log.append([Entry("shared", tip, (name,))])
            if isinstance(result, WriterFenced):
                tip = result.actual
            else:
                tip, written = result, written + 1
                say(f"{os.getpid()} {result}")


async def follow(path: Path) -> None:
    """Read stream "a" from its start to its 200th row, as it grows."""
    async with open_sqlite_reader(path) as reader:
        say("ready")
        seen = 0
        while seen < 200:
            for row in await reader.read("a", seen, 7):
                say(f"{row.seq} {row.data.decode()}")
                seen = row.seq
            await trio.lowlevel.checkpoint()


async def fill(path: Path) -> None:
    """Append until a file size limit stops it, then go on without the limit."""
    async with open_sqlite_log(path) as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        seq = 0
        try:
            while True:
                await log.append([Entry("a", seq, (b"x" * 10_000,))])
                seq += 1
        except LogFull as error:
            say(f"full {seq} {error}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await log.append([Entry("a", seq, (b"after",))])
        say(f"after {seq + 1}")


if __name__ == "__main__":
    trio.run(globals()[sys.argv[1]], Path(sys.argv[2]))
