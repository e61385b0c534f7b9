"""Several processes on one record: this one finds the events and joins the parts, others check ranges beside it.

Processes are started anew, never forked: a fork of a program that has threads can hang. They sit in a process
group of their own, so that Ctrl-C reaches this process alone, and they never outlive the block that started
them. A process that dies costs time and nothing else: what it owed is checked here.
"""

import errno
import os
import select
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from typing import Final, final

from affidavit.crypto.event_scan import BATCH, EventRange
from affidavit.crypto.failures import VerificationError
from affidavit.crypto.record_part import Checks, Part, parts_of
from affidavit.crypto.record_reader import RecordReader
from affidavit.crypto.record_wire import decode_part
from affidavit.tools._verify_worker import LENGTH, pack_checks, pack_request, reader_at

# Some tens of milliseconds of work, so that no process waits long for another at the end.
RANGE: Final = 4 * BATCH
_AHEAD: Final = 2  # ranges that a process has at hand, so that it never waits for the next
_MOST_HELD: Final = 64  # finished ranges that wait for an earlier one
_PATIENCE: Final = 100  # milliseconds to wait for the next part before it is checked here
_READ_BYTES: Final = 1 << 16
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from affidavit.tools._verify_worker import main; main(int(sys.argv[1]), sys.argv[2])"
)


class ChangedError(OSError):
    """The file no longer holds what it did when its events were found."""


@final
class Worker:
    """One process, and the ranges that it owes."""

    def __init__(self, descriptor: int, checks: Checks) -> None:
        """Start it on an open file."""
        isolation = ["-I"] if sys.flags.isolated else []
        # Its own copies of what this process imports, from the same places, whatever the current folder holds.
        command = [
            sys.executable,
            *isolation,
            "-c",
            _PROGRAM,
            str(descriptor),
            pack_checks(checks),
            *sys.path,
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=(descriptor,),
            process_group=0,
        )
        self._buffer = bytearray()
        self._parts: list[Part] = []
        self._is_alive = True
        self.owed: deque[EventRange] = deque()

    @property
    def has_room(self) -> bool:
        """Whether it takes another range now."""
        return self._is_alive and len(self.owed) < _AHEAD

    @property
    def is_awaited(self) -> bool:
        """Whether an answer can still come."""
        return self._is_alive and bool(self.owed)

    @property
    def spare(self) -> EventRange | None:
        """The last range that it owes, where it has another to do first."""
        return self.owed[-1] if self._is_alive and len(self.owed) > 1 else None

    def fileno(self) -> int:
        """Return the descriptor that is readable once an answer comes."""
        assert self._process.stdout is not None  # noqa: S101 - it was asked for above
        return self._process.stdout.fileno()

    def send(self, where: EventRange) -> None:
        """Ask for a range. Never waits: a request fits into any pipe."""
        self.owed.append(where)
        try:
            assert self._process.stdin is not None  # noqa: S101 - as above
            self._process.stdin.write(pack_request(where))
        except OSError:
            self._is_alive = False

    def receive(self) -> Iterator[tuple[EventRange, list[Part]]]:
        """Take in what has come, and yield the ranges that are finished by it."""
        block = os.read(self.fileno(), _READ_BYTES)
        if not block:
            self._is_alive = False
            return
        try:
            yield from self._understand(block)
        except (ValueError, IndexError):
            # Not our program's answer: nothing more that comes from there is believed.
            self._is_alive = False

    def _understand(self, block: bytes) -> Iterator[tuple[EventRange, list[Part]]]:
        self._buffer += block
        while len(self._buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer)
            end = LENGTH.size + length
            if len(self._buffer) < end:
                return
            data = bytes(self._buffer[LENGTH.size : end])
            del self._buffer[:end]
            if data:
                self._parts.append(decode_part(data))
            else:
                parts, self._parts = self._parts, []
                yield self.owed.popleft(), parts

    def stop(self) -> None:
        """End it, whatever it does, and wait until it is gone."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


@final
class Workers:
    """The processes on one file. Used as a block, at whose end none of them is left."""

    def __init__(self, descriptor: int, checks: Checks, count: int) -> None:
        """Prepare `count` processes on an open file; they start with the block."""
        self._descriptor = descriptor
        self._checks = checks
        self._count = count
        self._workers: list[Worker] = []

    def __enter__(self) -> "Workers":
        try:
            for _ in range(self._count if sys.executable else 0):
                self._workers.append(Worker(self._descriptor, self._checks))
        except OSError:
            # No room for another process: fewer do the same work.
            pass
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def parts(self, reader: RecordReader) -> Iterator[Part]:
        """Yield the parts of a record in order.

        Raises:
            VerificationError: `record.decode`, from the reader.
            ChangedError: The file changed while it was read.
            OSError: It cannot be read.
        """
        finished: dict[int, list[Part]] = {}
        due = end = 0
        for where in reader.ranges(RANGE):
            end = where.index + RANGE
            worker = next((worker for worker in self._workers if worker.has_room), None)
            if worker is not None:
                worker.send(where)
            else:
                finished[where.index] = self._check(where)
            self._collect(finished, due, 0)
            if len(finished) > _MOST_HELD:
                self._take_over(finished, due)
            while due in finished:
                yield from finished.pop(due)
                due += RANGE
        while due < end and reader.is_wanted:
            self._help(finished, due)
            while due in finished:
                yield from finished.pop(due)
                due += RANGE

    def _help(self, finished: dict[int, list[Part]], due: int) -> None:
        # Nothing is left to hand out: does what a worker has not begun, and, if the next part is long in coming, that too.
        spares = (worker.spare for worker in self._workers)
        spare = next((where for where in spares if where is not None and where.index not in finished), None)
        if spare is not None and spare.index >= due:
            finished[spare.index] = self._check(spare)
            self._collect(finished, due, 0)
        elif not self._collect(finished, due, _PATIENCE):
            self._take_over(finished, due)

    def _take_over(self, finished: dict[int, list[Part]], due: int) -> None:
        # What comes next is late, so it is not waited for; the worker's own answer, if it ever comes, is not needed.
        owed = (where for worker in self._workers for where in worker.owed)
        where = next((where for where in owed if where.index == due), None)
        if where is not None and due not in finished:
            finished[due] = self._check(where)

    def _collect(self, finished: dict[int, list[Part]], due: int, patience: int) -> bool:
        # Takes in what comes within so many milliseconds; True where something did.
        awaited = [worker for worker in self._workers if worker.is_awaited]
        poll = select.poll()
        for worker in awaited:
            poll.register(worker, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(patience)} if awaited else set()
        for worker in awaited:
            if worker.fileno() in ready:
                for where, parts in worker.receive():
                    if where.index >= due:
                        finished.setdefault(where.index, parts)
        for worker in self._workers:
            while worker.owed and not worker.is_awaited:
                where = worker.owed.popleft()
                if where.index >= due and where.index not in finished:
                    finished[where.index] = self._check(where)
                    ready.add(-1)
        return bool(ready)

    def _check(self, where: EventRange) -> list[Part]:
        try:
            return list(parts_of(reader_at(self._descriptor, where.start), where, self._checks))
        except VerificationError as error:
            raise ChangedError(
                errno.ESTALE, "it changed while it was read; check it again once nobody writes it"
            ) from error

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()
