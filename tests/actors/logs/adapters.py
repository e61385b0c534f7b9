"""Every adapter of the log port by name, each opened empty; the contract suite runs over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from tests.actors.fakes import FaultLog

Opener = Callable[[Path], AbstractAsyncContextManager[Log]]


@asynccontextmanager
async def _memory(_folder: Path) -> AsyncIterator[Log]:
    yield MemoryLog()


@asynccontextmanager
async def _fault_free(_folder: Path) -> AsyncIterator[Log]:
    yield FaultLog(MemoryLog())


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Log]:
    async with open_sqlite_log(folder / "store.sqlite3") as log:
        yield log


ADAPTERS: dict[str, Opener] = {"memory": _memory, "fault-free": _fault_free, "sqlite": _sqlite}
