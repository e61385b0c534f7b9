"""Adds up what a tree of processes uses, from /proc: the limits that the kernel sets for one process at a time need this for all.

Reads only, in the caller's thread. What it adds up is a moment old, and a process that comes and goes between two looks is
missed; the kernel's own limits hold meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from affidavit.actors.containment.port import Limits, Struck

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_KIB: Final = 1024
_TREE_BOUND: Final = 10_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree uses at one moment.

    Attributes:
        tasks: Processes and threads.
        memory_bytes: Memory of its own, shared memory included, plus what lies on the given memory file systems.
        cpu_seconds: Processor time so far, that of ended and awaited processes included.
    """

    tasks: int
    memory_bytes: int
    cpu_seconds: float

    def over(self, limits: Limits) -> Struck:
        """Return the first limit that this is over."""
        if self.memory_bytes > limits.memory_bytes:
            return Struck.MEMORY
        if self.cpu_seconds > limits.cpu_seconds:
            return Struck.CPU
        if self.tasks > limits.processes:
            return Struck.PROCESSES
        return Struck.NOTHING


def tree(root: int) -> Iterator[int]:
    """Yield the processes below `root`, the root left out."""
    waiting = [root]
    seen = 0
    while waiting and seen < _TREE_BOUND:
        pid = waiting.pop()
        for child in _children(pid):
            seen += 1
            waiting.append(child)
            yield child


def usage(root: int, memory_mounts: Sequence[str] = (), *, exact: bool = False) -> Usage:
    """Return what the processes below `root` use.

    Args:
        root: A process that every process of interest comes from, as it sees it; it is not counted itself.
        memory_mounts: Paths on file systems that lie in memory and belong to the tree alone.
        exact: Count a page that several processes share once and not for each; slower.
    """
    tasks = 0
    memory = sum(_used(path) for path in memory_mounts)
    ticks = _reaped(root)
    for pid in tree(root):
        found = _stat(pid)
        if found is not None:
            tasks += found[0]
            ticks += found[1]
            memory += _memory(pid, exact=exact)
    return Usage(tasks, memory, ticks / _TICKS)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_bytes().split())
    return found


def _stat(pid: int) -> tuple[int, int] | None:
    """Return threads and ticks of one process and of those it has awaited; None for one that is gone."""
    fields = _stat_fields(pid)
    if fields is None:
        return None
    return int(fields[17]), sum(map(int, fields[11:15]))


def _reaped(root: int) -> int:
    """Return the ticks of the processes that the root has awaited; its own are ours and not the command's."""
    fields = _stat_fields(root)
    return 0 if fields is None else sum(map(int, fields[13:15]))


def _stat_fields(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat that follow the name, which may itself hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None


def _memory(pid: int, *, exact: bool) -> int:
    """Return the bytes of memory that are the process's own or shared; mapped files are the file system's and not counted."""
    if exact:
        with suppress(OSError):
            return _sum_of(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    with suppress(OSError):
        return _sum_of(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:"))
    return 0


def _sum_of(path: str, names: tuple[bytes, ...]) -> int:
    lines = Path(path).read_bytes().splitlines()
    return sum(int(line.split()[1]) * _KIB for line in lines if line.startswith(names))


def _used(path: str) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize
