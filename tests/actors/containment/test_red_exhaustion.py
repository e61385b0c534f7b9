"""Attacks on the machine's memory, processes and disk from inside a sandbox."""

from __future__ import annotations

import signal
from pathlib import Path

from affidavit.actors.containment.bubblewrap import Bubblewrap
from affidavit.actors.containment.port import Struck
from tests.actors.containment.kit import MIB, printed, run, run_python


async def test_a_fork_bomb_stays_small(kernel: Bubblewrap, work: Path) -> None:
    """The kernel refuses the next process, as root as for anyone, and the whole bomb is gone with the call."""
    script = (
        "import os, sys, time\n"
        "born = 0\n"
        "try:\n"
        "    while born < 500:\n"
        "        if os.fork() == 0: time.sleep(1000)\n"
        "        born += 1\n"
        "except BlockingIOError: pass\n"
        "print(born)\n"
    )
    assert 10 <= int(printed(await run_python(kernel, work, script, processes=40))) <= 40


async def test_the_classic_fork_bomb_is_ended(kernel: Bubblewrap, work: Path) -> None:
    """It neither spreads nor outlasts its time."""
    outcome = await run(
        kernel, work, "bomb() { bomb | bomb & }; bomb; sleep 1000", processes=60, wall_seconds=1.0
    )
    # The kernel refuses some fork; whether the first shell or the last one gives up over it is chance.
    assert outcome.struck or outcome.exit_code


async def test_threads_count_as_processes(kernel: Bubblewrap, work: Path) -> None:
    """The limit is of tasks, whatever they are called."""
    script = (
        "import threading\n"
        "stop = threading.Event(); threading.stack_size(65536); born = 0\n"
        "try:\n"
        "    while born < 500: threading.Thread(target=stop.wait).start(); born += 1\n"
        "except RuntimeError: pass\n"
        "print(born); stop.set()\n"
    )
    assert int(printed(await run_python(kernel, work, script, processes=40))) <= 40


async def test_shared_memory_is_counted(kernel: Bubblewrap, work: Path) -> None:
    """Memory that belongs to no process alone is a way around a limit per process."""
    script = (
        "import mmap, time\n"
        "held = mmap.mmap(-1, 600 << 20)\n"
        "for _ in range(600): held.write(b'x' * (1 << 20))\n"
        "time.sleep(1000)\n"
    )
    outcome = await run_python(kernel, work, script, memory_bytes=100 * MIB)
    assert outcome.struck is Struck.MEMORY or outcome.signal == signal.SIGBUS


async def test_files_in_memory_are_counted(kernel: Bubblewrap, work: Path) -> None:
    """What fills /tmp counts as memory, and is bounded by itself."""
    fill = "for n in 1 2 3 4 5 6; do head -c 20000000 /dev/zero > /tmp/$n; done; sleep 1000"
    assert (await run(kernel, work, fill, memory_bytes=80 * MIB)).struck is Struck.MEMORY
    outcome = await run(kernel, work, "head -c 50000000 /dev/zero > /tmp/f", disk_bytes=20 * MIB)
    assert b"No space" in outcome.stderr.head
    outcome = await run(kernel, work, "head -c 90000000 /dev/zero > /dev/shm/f")
    assert b"No space" in outcome.stderr.head


async def test_the_workspace_cannot_grow_without_end(kernel: Bubblewrap, work: Path) -> None:
    """Many files, each within the limit of one."""
    script = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; done"
    outcome = await run(kernel, work, script, disk_bytes=16 * MIB, file_bytes=2 * MIB)
    assert outcome.struck is Struck.DISK


async def test_empty_files_fill_a_disk_too(kernel: Bubblewrap, work: Path) -> None:
    """A file system has room for only so many, however small."""
    script = "import itertools, os\nfor n in itertools.count(): os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))"
    assert (await run_python(kernel, work, script, disk_bytes=4 * MIB)).struck is Struck.DISK


async def test_deleted_files_that_are_open_are_counted(kernel: Bubblewrap, work: Path) -> None:
    """They take room and have no name."""
    script = (
        "import os, time\n"
        "held = []\n"
        "for _ in range(30):\n"
        "    held.append(os.open('f', os.O_CREAT | os.O_WRONLY)); os.unlink('f')\n"
        "    os.write(held[-1], b'x' * 1_000_000)\n"
        "time.sleep(1000)\n"
    )
    assert (await run_python(kernel, work, script, disk_bytes=16 * MIB)).struck is Struck.DISK


async def test_a_bottomless_folder_is_ended(kernel: Bubblewrap, work: Path) -> None:
    """Folders in folders, deeper than anyone could add up, do not hide what is in them."""
    script = "import os, time\nfor _ in range(400): os.mkdir('d'); os.chdir('d')\ntime.sleep(1000)\n"
    assert (await run_python(kernel, work, script, disk_bytes=64 * MIB)).struck is Struck.DISK
    _unnest(work)


def _unnest(work: Path) -> None:
    """Take the nest apart level by level; the usual ways recurse, and fail at such a depth."""
    lifted = work.parent / "lifted"
    while (work / "d").exists():
        (work / "d").rename(lifted)
        work.rmdir()
        lifted.rename(work)


async def test_a_watch_cannot_be_starved(kernel: Bubblewrap, work: Path) -> None:
    """Processes that come and go all the time are still ended when their time is up."""
    script = "while :; do (:) & (:) & (:) & done 2>/dev/null"
    outcome = await run(kernel, work, script, processes=50, wall_seconds=2.0, cpu_seconds=3)
    assert outcome.struck or outcome.exit_code
