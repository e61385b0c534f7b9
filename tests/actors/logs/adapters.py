"""Every adapter of the log port by name, each opened empty; the contract suite runs over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Log
from tests.actors.fakes import FaultLog

Opener = Callable[[Path], AbstractAsyncContextManager[Log]]


@asynccontextmanager
async def _memory(_folder: Path) -> AsyncIterator[Log]:
    yield MemoryLog()


@asynccontextmanager
async def _fault_free(_folder: Path) -> AsyncIterator[Log]:
    yield FaultLog(MemoryLog())


ADAPTERS: dict[str, Opener] = {"memory": _memory, "fault-free": _fault_free}
