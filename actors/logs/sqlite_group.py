"""`GroupCommit`: how many appends share one transaction, and what each of them is told.

Rows are written in the loop and committed in the commit thread, since SQLite gives up the interpreter lock at
every row: in a thread beside a busy loop a hundred rows would take a tenth of a second. Whatever arrives
while a commit is in flight goes into the next one. The states, and who may touch the store in each:

    idle        nobody             an append arrives: starting, at the end of the loop's turn
    starting    the loop           the write lock is free: writing; else waiting
    waiting     the commit thread  until it has the lock or the grace is over; appends can still be withdrawn
    writing     the loop           takes appends; from here on they get their result, whatever happens
    committing  the commit thread  the commit makes them durable, at one moment; then maybe a checkpoint
    answering   the loop           wakes the appenders, then starts again or is idle

A kill before the commit leaves nothing of the batch, one after it leaves all of it: acknowledged is less than
durable, never more. A failure with an unknown outcome closes the log: those taken are told so, those not
taken are told that it is closed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import trio

from affidavit.actors.errors import LogClosed, LogError, LogFull, LogLocked, LogStateUnknown, WriterFenced
from affidavit.actors.logs.commit_thread import CommitThread
from affidavit.actors.logs.port import Entry, Told
from affidavit.actors.logs.sqlite_store import Store

BATCH_ROWS: Final = 256  # written in one go by the loop, about a millisecond

COMMIT_GRACE: Final = 30.0  # seconds that a commit may take; then its outcome counts as unknown


@dataclass(eq=False, slots=True)
class _Ticket:
    """One append that waits for its result: the task sleeps until then, or there is none and `told` takes it."""

    entries: tuple[Entry, ...]
    task: trio.lowlevel.Task | None
    told: Told | None = None
    results: tuple[int | WriterFenced, ...] = ()
    error: LogError | None = None


@final
class GroupCommit:
    """The writer of one open store. All methods but the jobs run in the loop.

    Closes: `close` refuses what waits, waits for the commit in flight, and closes the store.
    """

    def __init__(self, store: Store, grace: float) -> None:
        """Take over an open store.

        Args:
            store: The store; it is closed by `close`.
            grace: For how many seconds, at least, the thread may be busy with one commit, or with closing.
        """
        self._store = store
        self._grace = grace
        self._thread = CommitThread("commit", grace, self._overdue, self._start)
        self._pending: dict[_Ticket, None] = {}
        self._taken: list[_Ticket] = []
        self._waiting: tuple[_Ticket, ...] = ()
        self._idle = True
        self._closed = ""

    def check_open(self) -> None:
        """Pass if the log is open.

        Raises:
            LogClosed: It was closed, or has closed itself.
        """
        if self._closed:
            raise LogClosed(self._closed)

    async def append(self, entries: tuple[Entry, ...]) -> tuple[int | WriterFenced, ...]:
        """Append checked entries; see `Log.append`.

        Cancellation: withdrawn as long as no transaction has taken the entries; from then on the result is
        returned.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self.check_open()
        ticket = _Ticket(entries, trio.lowlevel.current_task())
        self._enqueue(ticket)

        def withdraw(_raise_cancel: Callable[[], None]) -> trio.lowlevel.Abort:
            if ticket not in self._pending:
                return trio.lowlevel.Abort.FAILED
            del self._pending[ticket]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(withdraw)
        if ticket.error is not None:
            raise ticket.error
        return ticket.results

    def submit(self, entries: tuple[Entry, ...], told: Told) -> None:
        """Take one checked entry and return; see `SubmittingLog.submit`."""
        self.check_open()
        self._enqueue(_Ticket(entries, None, told))

    def _enqueue(self, ticket: _Ticket) -> None:
        self._pending[ticket] = None
        if self._idle:
            self._idle = False
            # Not at once, so that all tasks that append in this turn share the transaction.
            self._thread.at_end_of_turn()

    def _start(self) -> None:
        if self._closed or not self._pending:
            self._idle = True
            return
        try:
            begun = self._store.try_begin()
        except (sqlite3.Error, OSError) as error:
            failure = error
            self._thread.post(lambda: self._break(failure))
            return
        if begun:
            self._write()
        else:
            self._waiting = tuple(self._pending)
            self._thread.submit(self._wait_job)

    def _wait_job(self) -> None:
        try:
            begun = self._store.wait_to_begin(self._thread.stop)
        except (sqlite3.Error, OSError) as error:
            failure = error
            self._thread.post(lambda: self._break(failure))
        else:
            self._thread.post(lambda: self._begun(begun=begun))

    def _begun(self, *, begun: bool) -> None:
        if self._closed:
            return  # closing ends the transaction
        waited, self._waiting = self._waiting, ()
        if begun:
            self._write()
            return
        for ticket in waited:
            # Those that came later have their grace yet to run.
            if ticket in self._pending:
                del self._pending[ticket]
                self._answer(
                    ticket, LogLocked(f"the store {self._store.path} stayed locked by another process")
                )
        self._thread.at_end_of_turn()

    def _take(self) -> None:
        count = 0
        for ticket in tuple(self._pending):
            count += sum(len(entry.rows) for entry in ticket.entries)
            if self._taken and count > BATCH_ROWS:
                break
            del self._pending[ticket]
            self._taken.append(ticket)

    def _write(self) -> None:
        self._take()
        try:
            for ticket in self._taken:
                ticket.results = self._store.compare(ticket.entries)
            written = self._store.write()
            if not written:
                self._store.leave()
        except Exception as error:  # escaping, it would be lost, and the appends with it
            failure = self._store.undo(error)
            self._thread.post(lambda: self._settle(failure))
            return
        if written:
            self._thread.submit(self._commit_job)
        else:
            self._thread.post(lambda: self._settle(None))

    def _commit_job(self) -> None:
        try:
            self._store.commit()
            if self._store.checkpoint_is_due():
                # Durable already, so nobody waits for the checkpoint but the next transaction.
                self._thread.post(self._answer_taken)
                self._store.checkpoint()
            self._store.leave()
        except Exception as error:  # the thread must live on
            failure = self._store.undo(error)
            self._thread.post(lambda: self._settle(failure))
        else:
            self._thread.post(lambda: self._settle(None))

    def _settle(self, failure: LogError | None) -> None:
        if isinstance(failure, LogStateUnknown):
            self._break(failure)
            return
        if failure is None:
            self._answer_taken()
        else:
            taken, self._taken = self._taken, []
            for ticket in taken:
                self._answer(ticket, _copy(failure))
        # With those that were just answered, since they may append again as soon as they run.
        self._thread.at_end_of_turn(next_turn=True)

    def _answer_taken(self) -> None:
        taken, self._taken = self._taken, []
        for ticket in taken:
            self._answer(ticket, None)

    def _answer(self, ticket: _Ticket, error: LogError | None) -> None:
        ticket.error = error
        if ticket.task is not None:
            trio.lowlevel.reschedule(ticket.task)
        elif ticket.told is not None:
            ticket.told(ticket.results[0] if error is None else error)

    def fail(self, error: Exception) -> None:
        """Close the log after a failed read: a store that cannot be read must not be built upon."""
        self._closed = self._closed or f"the log closed itself: {error}"
        self._refuse_pending()

    def _overdue(self) -> None:
        self._break(LogStateUnknown(f"a commit to the store {self._store.path} did not end in time"))

    def _break(self, error: Exception) -> None:
        self._closed = self._closed or f"the log closed itself: {error}"
        # In the order in which they came: of one stream's, the first to be told says why the rest are lost as well.
        taken, self._taken = self._taken, []
        for ticket in taken:
            self._answer(ticket, LogStateUnknown(str(error)))
        self._refuse_pending()
        self._idle = True

    def _refuse_pending(self) -> None:
        pending, self._pending = self._pending, {}
        for ticket in pending:
            self._answer(ticket, LogClosed(self._closed))

    async def close(self) -> None:
        """Refuse what waits, wait for the commit in flight, close the store.

        Cancellation: shielded, since the store's files and locks must be let go and appends in flight must
        get their results; bounded by the grace in real time, after which the thread closes the store whenever
        it can.
        """
        self._closed = self._closed or "the log is closed"
        self._refuse_pending()
        self._thread.finish(self._store.close)
        with trio.CancelScope(shield=True):
            # The deadline is the thread's: a test's clock must not run out while a real sync is going on.
            await trio.to_thread.run_sync(self._thread.join, self._grace, limiter=trio.CapacityLimiter(1))
        if self._taken:
            self._overdue()


def _copy(failure: LogError) -> LogError:
    # Each appender raises an error of its own, since raising writes a traceback into it.
    copy = LogFull(str(failure)) if isinstance(failure, LogFull) else LogLocked(str(failure))
    copy.__cause__ = failure.__cause__
    return copy
