"""The system refuses a write or a sync, each in turn: what was acknowledged before stands, and nobody is told that more was.

The faults are made below SQLite, by strace, which counts the calls of each thread: a refused write is not written; a refused sync
leaves the bytes where they can be read, and where they may be lost with the power.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from affidavit.actors.logs.port import Entry
from affidavit.actors.logs.sqlite import open_sqlite_log
from tests.environment import ROOT, SOAK, require_tool
from tests.power.workload import content

ROWS = 8
# A handful spread over opening, appending, copying into the database and closing; a soak run fails each.
PLACES = range(1, 50) if SOAK else (1, 2, 4, 5, 8, 14)
_FEW = 6


@dataclass(frozen=True)
class Fault:
    """A call that fails, and with what; all later ones too if `on` is set."""

    call: str
    error: str
    number: int
    on: bool = False

    def __str__(self) -> str:
        return f"{self.call}:error={self.error}:when={self.number}{'+' if self.on else ''}"


def _run(store: Path, fault: Fault) -> list[str]:
    watch = [
        require_tool("strace"),
        "-f",
        "-qq",
        "--seccomp-bpf",
        "-o",
        "/dev/null",
        "-e",
        f"trace={fault.call}",
    ]
    work = [sys.executable, "-m", "tests.power.workload", str(store), "FULL", str(ROWS)]
    done = subprocess.run(
        [*watch, "-e", f"inject={fault}", *work],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, (fault, done.stderr)
    return done.stdout.splitlines()


def _fault_in(store: Path, said: list[str]) -> str:
    """Return what is wrong with what is left; nothing if it is as promised."""
    acknowledged: dict[str, int] = {}
    for line in said:
        if line.startswith("ack "):
            _, stream, seq = line.split()
            acknowledged[stream] = int(seq)
    if not store.exists():
        return "the store is gone" if acknowledged else ""

    async def goes_on() -> dict[str, int]:
        async with open_sqlite_log(store) as log:
            tips = {info.stream: info.tip for info in await log.list()}
            await log.append([Entry("s0", tips.get("s0", 0), (b"on",))])
            return tips

    tips = trio.run(goes_on)
    with closing(sqlite3.connect(store)) as connection:
        if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            return "SQLite finds faults in it"
        for stream, tip in tips.items():
            rows = connection.execute(
                "SELECT seq, data FROM rows WHERE stream = ? AND seq <= ?", (stream, tip)
            )
            if sorted(rows.fetchall()) != [(seq, content(stream, seq)) for seq in range(1, tip + 1)]:
                return f"the rows of {stream} are not what was written"
    lost = {stream for stream, seq in acknowledged.items() if tips.get(stream, 0) < seq}
    # An append whose outcome is unknown may stand; one that is known not to be written does not.
    more = {stream for stream, tip in tips.items() if tip > acknowledged.get(stream, 0)}
    known = {line.split()[2] for line in said if line.startswith(("error LogFull", "error LogLocked"))}
    return f"lost: {lost}; more than acknowledged: {more & known}" if lost or more & known else ""


FAULTS = {
    "a write fails": [Fault("pwrite64", "EIO", number) for number in PLACES],
    "a sync fails": [Fault("fdatasync", "EIO", number) for number in PLACES],
    "the disk is full for a moment": [Fault("pwrite64", "ENOSPC", number) for number in PLACES[::2]],
    "the disk is full from then on": [Fault("pwrite64", "ENOSPC", number, on=True) for number in PLACES[::2]],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_whatever_the_system_refuses_no_acknowledged_row_is_lost(tmp_path: Path, kind: str) -> None:
    """S6, E5: each write, and each sync, failed in turn: the errors are sentences, the store opens again, and goes on."""
    stores = [tmp_path / str(number) for number in range(len(FAULTS[kind]))]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(_run, stores, FAULTS[kind]))
    met = 0
    for store, fault, lines in zip(stores, FAULTS[kind], said, strict=True):
        errors = [line for line in lines if line.startswith("error ")]
        met += bool(errors)
        assert {line.split()[1] for line in errors} <= {
            "LogStateUnknown",
            "LogClosed",
            "LogFull",
            "StoreUnusable",
        }
        assert _fault_in(store, lines) == "", (str(fault), lines)
    # A place beyond the last such call is met by nothing; a soak has many of those.
    assert met > min(len(stores), _FEW) // 2, "hardly any fault was met"
