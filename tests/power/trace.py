"""What a process did to its files, in order, as strace saw it: writes with their bytes, syncs, and what it said.

A write counts from when it was asked for. A sync makes durable what was asked for before it began, once it has returned.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.environment import ROOT, require_tool

_CALLS = "openat,unlink,rename,pwrite64,pwritev,write,ftruncate,fallocate,fsync,fdatasync,sync_file_range"
_LINE = re.compile(r"^(\d+) +(.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)")
_FILE = re.compile(r"^\d+<([^>]*)>")
_HEX = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes asked to be put into a file."""

    path: str
    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A file asked to have just this length."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Created:
    """A name that was new."""

    path: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A name that was taken away."""

    path: str


@dataclass(frozen=True, slots=True)
class SyncBegan:
    """A sync was asked for; `number` tells which."""

    path: str
    number: int


@dataclass(frozen=True, slots=True)
class SyncEnded:
    """That sync has returned well."""

    path: str
    number: int


@dataclass(frozen=True, slots=True)
class Said:
    """A line was printed, which tells of an acknowledged row."""

    line: str


Step = Write | Cut | Created | Gone | SyncBegan | SyncEnded | Said


def trace(store: Path, synchronous: str, rows: int) -> list[Step]:
    """Run the workload on a new store, and return what it did to the files in the store's folder, and what it said."""
    log = store.with_name("trace")
    done = subprocess.run(
        [
            require_tool("strace"), "-f", "-qq", "-y", "-xx", "-s", "100000", "--seccomp-bpf",
            "-e", f"trace={_CALLS}", "-o", str(log),
            sys.executable, "-m", "tests.power.workload", str(store), synchronous, str(rows),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return _parse(log.read_text(), store.parent)


def _parse(text: str, folder: Path) -> list[Step]:
    steps: list[Step] = []
    begun: dict[str, str] = {}
    syncs: dict[str, int] = {}
    known: set[str] = set()
    for line in text.splitlines():
        found = _LINE.match(line)
        assert found, line
        pid, call = found.groups()
        if call.endswith("<unfinished ...>"):
            begun[pid] = call.removesuffix("<unfinished ...>").rstrip()
            syncs[pid] = _begin_sync(steps, begun[pid], folder)
        else:
            if call.startswith("<... "):
                call = begun.pop(pid) + call.split("resumed>", 1)[1]
            else:
                syncs[pid] = _begin_sync(steps, call, folder)
            _add(steps, call, folder, syncs[pid], known)
    return steps


def _begin_sync(steps: list[Step], call: str, folder: Path) -> int:
    name, _, rest = call.partition("(")
    file = _FILE.match(rest)
    if name in {"fsync", "fdatasync"} and file and _decoded(file[1]).startswith(str(folder)):
        steps.append(SyncBegan(_decoded(file[1]), len(steps)))
        return len(steps) - 1
    return -1


def _add(steps: list[Step], call: str, folder: Path, sync: int, known: set[str]) -> None:
    found = _CALL.match(call)
    if not found or int(found[3]) < 0:
        return
    name, rest = found[1], found[2]
    strings = [bytes.fromhex(text.replace("\\x", "")) for text, _ in _HEX.findall(rest)]
    file = _FILE.match(rest)
    path = _decoded(file[1]) if file else ""
    if name == "write" and rest.startswith("1<"):
        # Libraries may start programs of their own, which speak too.
        if strings[0].startswith(b"ack "):
            steps.append(Said(strings[0].decode()))
        return
    if name in {"openat", "unlink"}:
        path = strings[0].decode()
    if not path.startswith(str(folder)):
        return
    match name:
        case "openat" if "O_CREAT" in rest and path not in known:
            known.add(path)
            steps.append(Created(path))
        case "unlink":
            known.discard(path)
            steps.append(Gone(path))
        case "pwrite64" | "write":
            assert "..." not in rest, "a write was longer than what strace shows"
            steps.append(Write(path, int(rest.rsplit(", ", 1)[1]), strings[-1]))
        case "ftruncate":
            steps.append(Cut(path, int(rest.rsplit(", ", 1)[1])))
        case "fsync" | "fdatasync":
            steps.append(SyncEnded(path, sync))
        case "openat":
            pass
        case _:
            raise AssertionError(f"the model of the disk knows no {name}: {call[:200]}")


def _decoded(path: str) -> str:
    return bytes.fromhex(path.replace("\\x", "")).decode() if path.startswith("\\x") else path
