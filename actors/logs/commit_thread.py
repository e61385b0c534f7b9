"""`CommitThread`: the one thread of a store in which blocking work runs, its way back into the loop, and the loop's turn.

A dedicated thread costs one hand-off per commit, less than a worker of trio's pool. It runs jobs strictly in
order and holds no state of the store. A second thread watches it in real time, since no timer of the loop
can: a test's clock may run ahead of a sync, and a job may be stuck in the kernel where nothing can end it.
Results come back as calls run in the loop, in the order in which they were posted. What the loop's tasks of one
turn ask for together is begun once, at the end of that turn.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, final

import trio

GIL_SLICE: Final = (
    0.0001  # seconds the loop stands still, once per turn, so that a finished commit can be noticed
)

_OVERDUE_LOOKS: Final = 2  # at the same job, after the first, half a grace apart


@final
class CommitThread(trio.abc.Instrument):
    """A thread that runs jobs one after another.

    A loop that is busy without pause hands the interpreter lock back and takes it again within each turn, so
    that this thread may not get it for seconds. As an instrument of that loop, this object makes it stand
    still for `GIL_SLICE` before a turn that would not sleep, while a job is running.

    Being told of each turn's end, it also saves the trip through trio's wake-up socket that a call "soon" costs,
    a fifth of a lone durable append.

    Attributes:
        stop: Set when jobs that wait for something shall give up.
    """

    def __init__(
        self, name: str, grace: float, overdue: Callable[[], None], turn_ended: Callable[[], None]
    ) -> None:
        """Start the thread.

        Args:
            name: Its name, for people who look at a process's threads.
            grace: For how many seconds, at least, a job may run.
            overdue: Called in the loop when one runs for longer.
            turn_ended: Called in the loop at the end of a turn for which `at_end_of_turn` asked. It must not raise,
                and must not wake tasks but by `post`: the loop may have decided to sleep.
        """
        self.stop = threading.Event()
        self._ended = threading.Event()
        self._token = trio.lowlevel.current_trio_token()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # Kept locked; the thread unlocks it once for each finished job, which the loop may
        # be standing still for.
        self._finish_signal = threading.Lock()
        self._finish_signal.acquire()
        self._submitted = 0
        self._finished = 0
        self._turn_ended = turn_ended
        self._turns_left = 0
        self._between_turns = False
        self._posted: deque[Callable[[], None]] = deque()
        # A daemon: a sync that never returns must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._watcher = threading.Thread(
            target=self._watch, args=(grace, overdue), name=f"{name} watch", daemon=True
        )
        self._watcher.start()
        trio.lowlevel.add_instrument(self)

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job, which must not raise, after those before it."""
        self._submitted += 1
        self._jobs.put(job)

    def at_end_of_turn(self, *, next_turn: bool = False) -> None:
        """Have `turn_ended` called when all tasks of this turn have run, or also those that this turn has woken."""
        # Whom a call between two turns has woken runs in the turn that comes.
        self._turns_left = 2 if next_turn and not self._between_turns else 1

    def post(self, call: Callable[[], None]) -> None:
        """From any thread: run a call in the loop, soon; nothing happens if the loop has ended. It must not raise."""
        self._posted.append(call)
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._run_posted)

    def _run_posted(self) -> None:
        while self._posted:
            self._posted.popleft()()

    def finish(self, last: Callable[[], None]) -> None:
        """Run a last job, then end the thread; jobs that wait are told to give up."""
        trio.lowlevel.remove_instrument(self)
        self.stop.set()
        self._jobs.put(last)
        self._jobs.put(None)

    def join(self, seconds: float) -> None:
        """Block until the thread and the one that watches it have ended, or so many seconds of real time have passed."""
        self._thread.join(seconds)
        if not self._thread.is_alive():
            # It was told by the thread's end, and has nothing left to do.
            self._watcher.join()

    def _run(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                job()
                self._finished += 1
                if self._finish_signal.locked():
                    self._finish_signal.release()
        finally:
            self._ended.set()

    def _watch(self, grace: float, overdue: Callable[[], None]) -> None:
        looks, seen = 0, 0
        while not self._ended.wait(grace / 2):
            running = self._submitted if self._submitted > self._finished else 0
            looks = looks + 1 if running and running == seen else 0
            seen = running
            if looks == _OVERDUE_LOOKS:
                self.post(overdue)

    def before_io_wait(self, timeout: float) -> None:
        """End a turn, then let the thread have the interpreter for a moment if it has work and the loop will not sleep."""
        self._between_turns = True
        if self._turns_left:
            # A loop that is about to sleep has nobody left who could still join in.
            self._turns_left = self._turns_left - 1 if timeout <= 0 else 0
            if not self._turns_left:
                self._turn_ended()
        if (
            self._submitted > self._finished
            and timeout <= 0
            and self._finish_signal.acquire(timeout=GIL_SLICE)
        ):
            # At once, and not a busy turn later. Only here: a loop that has decided to sleep would not notice whom
            # these calls wake.
            self._run_posted()
        self._between_turns = False
