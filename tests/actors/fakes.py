"""Fakes that implement the real ports, each failing in one chosen way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import Enum

import trio

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Waker
from affidavit.actors.errors import LogClosed, LogError, LogFull, LogLocked, LogStateUnknown, WriterFenced
from affidavit.actors.logs.entries import check_entries
from affidavit.actors.logs.port import DEFAULT_READ_LIMIT, Entry, Log, Row, StreamInfo, SubmittingLog, Told
from affidavit.actors.signers.port import Signer
from affidavit.crypto.failures import FailureCode, ProducerError


class Fault(Enum):
    """How an append of `FaultLog` fails. An error need not mean that nothing was written: both are here."""

    FULL = "LogFull, nothing written, the log goes on"
    LOCKED = "LogLocked, nothing written, the log goes on"
    LOST = "LogStateUnknown, nothing written, the log closes"
    WRITTEN = "LogStateUnknown, but everything was written, the log closes"


class FaultLog:
    """Any log, with chosen appends failing; a plain pass-through when none is chosen.

    Appends are counted from 1 in the order in which they are called, failed and refused ones included.

    Args:
        log: The log underneath; what it holds is the truth to compare with.
        every: Fail each append whose number is a multiple of this; 0 for none.
        at: Fail the appends with these numbers too.
        fault: How they fail.

    Attributes:
        appends: How many appends were called so far.
        faults: How many of them were failed on purpose.
        closed: Whether the log has closed itself, as after a real `LogStateUnknown`.
    """

    def __init__(
        self, log: Log, *, every: int = 0, at: Collection[int] = (), fault: Fault = Fault.FULL
    ) -> None:
        self._log = log
        self._every = every
        self._at = frozenset(at)
        self._fault = fault
        self.appends = 0
        self.faults = 0
        self.closed = False

    def fail_next(self, fault: Fault) -> None:
        """Fail the next append in this way, and no other."""
        self._at, self._fault = frozenset({self.appends + 1}), fault

    def reopen(self) -> None:
        """Go on with what the log underneath holds, as opening a store again does."""
        self.closed = False

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Append to the log underneath, or fail as chosen."""
        chosen = self._next_is_chosen()
        if not chosen:
            return await self._log.append(entries)
        self.faults += 1
        return await self._fail(entries)

    def submit(self, entry: Entry, told: Told) -> None:
        """Hand an entry to the log underneath, or fail as chosen; it counts as an append."""
        chosen = self._next_is_chosen()
        assert isinstance(self._log, SubmittingLog)
        if not chosen:
            self._log.submit(entry, told)
            return
        self.faults += 1
        if self._fault is Fault.FULL:
            told(LogFull("the store has no room (chosen by the test)"))
            return
        if self._fault is Fault.LOCKED:
            told(LogLocked("the store is locked (chosen by the test)"))
            return
        if self._fault is Fault.WRITTEN:
            self._log.submit(entry, lambda _outcome: None)
        self.closed = True
        told(LogStateUnknown("the outcome of the write is unknown (chosen by the test)"))

    def _next_is_chosen(self) -> bool:
        self.appends += 1
        self._check_open()
        return self.appends in self._at or (self._every > 0 and self.appends % self._every == 0)

    async def _fail(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        match self._fault:
            case Fault.FULL:
                await trio.lowlevel.checkpoint()
                raise LogFull("the store has no room (chosen by the test)")
            case Fault.LOCKED:
                await trio.lowlevel.checkpoint()
                raise LogLocked("the store is locked (chosen by the test)")
            case Fault.LOST:
                await trio.lowlevel.checkpoint()
            case Fault.WRITTEN:
                await self._log.append(entries)
        self.closed = True
        raise LogStateUnknown("the outcome of the write is unknown (chosen by the test)")

    def own(self, stream: str) -> AbstractAsyncContextManager[None]:
        """Own the run in the log underneath; a closed log's ownership can still be let go."""
        self._check_open()
        return self._log.own(stream)

    async def read(self, stream: str, after_seq: int = 0, limit: int = DEFAULT_READ_LIMIT) -> tuple[Row, ...]:
        """Read the log underneath."""
        self._check_open()
        return await self._log.read(stream, after_seq, limit)

    async def info(self, stream: str) -> StreamInfo | None:
        """Read one index row of the log underneath."""
        self._check_open()
        return await self._log.info(stream)

    async def tips(self, streams: Sequence[str]) -> tuple[int, ...]:
        """Read tips of the log underneath."""
        self._check_open()
        return await self._log.tips(streams)

    async def list(self, prefix: str = "") -> tuple[StreamInfo, ...]:
        """Read the index of the log underneath."""
        self._check_open()
        return await self._log.list(prefix)

    def _check_open(self) -> None:
        if self.closed:
            raise LogClosed("the log closed itself after a failed write")


class LateLog(FaultLog):
    """A `FaultLog` that, as one with a disk, makes what was submitted durable a moment later, or with the next append."""

    def __init__(
        self, log: Log, *, every: int = 0, at: Collection[int] = (), fault: Fault = Fault.FULL
    ) -> None:
        super().__init__(log, every=every, at=at, fault=fault)
        self._held: list[tuple[Entry, Told]] = []

    def submit(self, entry: Entry, told: Told) -> None:
        """Hold it until the loop's turn is over."""
        self._check_open()
        (entry,) = check_entries((entry,))
        self._held.append((entry, told))
        trio.lowlevel.current_trio_token().run_sync_soon(self._release)

    def _release(self) -> None:
        while self._held:
            entry, told = self._held.pop(0)
            try:
                super().submit(entry, told)
            except LogError as error:
                told(error)

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Append behind what is held."""
        self._release()
        return await super().append(entries)


class HeldLog(LateLog):
    """A `LateLog` that makes nothing durable while the test holds it."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._going = trio.Event()
        self._going.set()

    def hold(self) -> None:
        """Keep whatever comes from now on waiting."""
        self._going = trio.Event()

    def go_on(self) -> None:
        """Write what has come meanwhile, in order."""
        self._going.set()
        self._release()

    def write_one(self) -> None:
        """Write the first of what was submitted meanwhile, and keep the rest waiting."""
        entry, told = self._held.pop(0)
        FaultLog.submit(self, entry, told)

    def _release(self) -> None:
        if self._going.is_set():
            super()._release()

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Append once nothing is held; a caller that is cancelled before has appended nothing."""
        await self._going.wait()
        return await super().append(entries)


class SilentBus:
    """A bus that delivers nothing."""

    def publish(self, subject: str) -> None:
        """Lose the wake."""

    @asynccontextmanager
    async def subscribe(self, pattern: str, waker: Waker) -> AsyncIterator[None]:
        """Deliver no wakes."""
        await trio.lowlevel.checkpoint()
        yield


class DoublingBus:
    """A bus that delivers every wake twice."""

    def __init__(self) -> None:
        self._bus = MemoryBus()
        self.subscribe = self._bus.subscribe

    def publish(self, subject: str) -> None:
        """Deliver the wake twice."""
        self._bus.publish(subject)
        self._bus.publish(subject)


class BrokenBus(SilentBus):
    """A bus that fails each publish."""

    def publish(self, subject: str) -> None:
        """Fail."""
        raise ConnectionError("the bus is gone (chosen by the test)")


class JumpingClock:
    """A wall clock that says whatever the test sets; it waits on trio's own clock.

    Attributes:
        now: The time it tells, Unix nanoseconds.
    """

    def __init__(self, now: int = 1_800_000_000 * 10**9) -> None:
        self.now = now

    def now_ns(self) -> int:
        """Return the chosen time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Wait on trio's clock."""
        await trio.sleep(seconds)


class FailingSigner:
    """A signer that fails while `broken` is set.

    Attributes:
        broken: Whether it fails.
        signatures: How many it made.
        hold: Where set, signing waits for it.
    """

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self.kid = signer.kid
        self.public_key = signer.public_key
        self.broken = False
        self.signatures = 0
        self.hold: trio.Event | None = None

    async def sign(self, message: bytes) -> bytes:
        """Sign, or fail."""
        if self.hold is not None:
            await self.hold.wait()
        if self.broken:
            raise ProducerError(FailureCode.SIGN_SIGN_FAILED, "the device is gone (chosen by the test)")
        self.signatures += 1
        return await self._signer.sign(message)
