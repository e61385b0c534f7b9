"""Runs a held process to its end: collects what it prints, watches what it uses, ends it when a limit strikes. For every level.

A level hands over a `Held`: something that can be killed whole and waited for whole. Ending is one signal and then waiting;
whatever the reason, this returns only when all of the process is gone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, final

import trio

from affidavit.actors.containment.capture import Capture, pump
from affidavit.actors.containment.disk import DiskWatch
from affidavit.actors.containment.port import ContainmentFailed, Limits, Outcome, Struck
from affidavit.actors.containment.watch import usage

WATCH_SECONDS: Final = 0.05
KILL_SECONDS: Final = 30.0
_DRAIN_SECONDS: Final = 2.0
_THREADS: Final = 8


class Held(Protocol):
    """A running command and everything that came of it."""

    @property
    def root(self) -> int:
        """The process that all of the command's processes come from."""
        ...

    @property
    def memory_mounts(self) -> tuple[str, ...]:
        """Paths of its file systems that lie in memory."""
        ...

    def take_outputs(self) -> tuple[int, int]:
        """Return the reading ends of its outputs, to be owned by the caller."""
        ...

    def kill(self) -> None:
        """Begin the end of all its processes, not waiting."""
        ...

    async def ended(self) -> tuple[int | None, int | None]:
        """Wait until none of its processes is left, and return exit code and signal."""
        ...


@dataclass(slots=True)
class _Strike:
    """Which limit struck first; striking begins the end, which is then due within `KILL_SECONDS`."""

    held: Held
    scope: trio.CancelScope
    limit: Struck = Struck.NOTHING

    def __call__(self, limit: Struck) -> None:
        if limit and not self.limit:
            self.limit = limit
            self.scope.deadline = trio.current_time() + KILL_SECONDS
            self.held.kill()


@final
class Supervisor:
    """Watches held commands. One for all of a containment's, so that what watching costs is bounded."""

    def __init__(self) -> None:
        """Make one; it has threads of its own for reading /proc and disks, so that a disk that hangs stalls nobody else."""
        self._limiter = trio.CapacityLimiter(_THREADS)

    async def watch_disk(self, workspace: int, limits: Limits) -> DiskWatch:
        """Return a watch over a workspace as it stands now.

        Args:
            workspace: A descriptor of the directory; borrowed during this call.
            limits: By how much it may grow.

        Raises:
            ContainmentFailed: It is nested too deeply to be watched, or cannot be read.

        Cancellation: returns at once; a thread may read on for a while.
        """
        disk = DiskWatch(os.dup(workspace), limits.disk_bytes)
        await trio.to_thread.run_sync(disk.begin, limiter=self._limiter, abandon_on_cancel=True)
        return disk

    async def see_through(self, held: Held, limits: Limits, disk: DiskWatch) -> Outcome:
        """See a command through to its end.

        Args:
            held: The command, running since just now.
            limits: What it may use.
            disk: Watches its workspace.

        Raises:
            ContainmentFailed: It could not be killed, which the kernel owes us.

        Cancellation: all its processes are killed, and gone before this returns.
        """
        began = trio.current_time()
        captures = Capture(limits.kept_bytes), Capture(limits.kept_bytes)
        watching = trio.CancelScope()
        end: tuple[int | None, int | None] | None = None
        try:
            async with trio.open_nursery() as nursery:
                strike = _Strike(held, nursery.cancel_scope)
                for descriptor, capture in zip(held.take_outputs(), captures, strict=True):
                    nursery.start_soon(pump, descriptor, partial(_take, capture, captures, limits, strike))
                nursery.start_soon(self._watch, held, limits, disk, strike, watching)
                end = await held.ended()
                watching.cancel()
                # All writers are gone, so the outputs end; unless the command gave one away to somebody outside.
                nursery.cancel_scope.deadline = trio.current_time() + _DRAIN_SECONDS
        finally:
            if end is None:
                held.kill()
                # Shielded, since a cancelled call must not leave processes behind. Killed processes end at once unless the
                # kernel itself is stuck; the deadline is for that.
                with trio.CancelScope(shield=True, deadline=trio.current_time() + KILL_SECONDS):
                    end = await held.ended()
        if end is None:
            raise ContainmentFailed(
                "the command could not be ended: the kernel does not let its processes go"
            )
        out, err = (capture.result() for capture in captures)
        return Outcome(*end, out, err, strike.limit, trio.current_time() - began)

    async def _watch(
        self, held: Held, limits: Limits, disk: DiskWatch, strike: _Strike, scope: trio.CancelScope
    ) -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_clock, limits, strike)
                nursery.start_soon(self._use, held, limits, disk, strike)

    async def _use(self, held: Held, limits: Limits, disk: DiskWatch, strike: _Strike) -> None:
        while True:
            await trio.sleep(WATCH_SECONDS)
            # Abandoned when the command ends: a look only reads, and its result is of no use then.
            found = await trio.to_thread.run_sync(
                _look, held, limits, disk, limiter=self._limiter, abandon_on_cancel=True
            )
            strike(found)


def _look(held: Held, limits: Limits, disk: DiskWatch) -> Struck:
    """Look at what the command uses, in a thread."""
    found = usage(held.root, held.memory_mounts).over(limits)
    if found is Struck.MEMORY:
        found = usage(held.root, held.memory_mounts, exact=True).over(limits)
    if not found and disk.over(held.root):
        found = Struck.DISK
    return found


async def _clock(limits: Limits, strike: _Strike) -> None:
    await trio.sleep(limits.wall_seconds)
    strike(Struck.WALL)


def _take(
    capture: Capture, both: tuple[Capture, Capture], limits: Limits, strike: _Strike, chunk: bytes
) -> None:
    capture.feed(chunk)
    if sum(each.length for each in both) > limits.output_bytes:
        strike(Struck.OUTPUT)
