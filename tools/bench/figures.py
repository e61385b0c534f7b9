"""What a bench gives, how rounds alternate, and how the result is shown. It knows nothing of what is measured.

Each bench is one module of this folder with a function `run(events) -> Figures`, where `events` is None or the number that a
person asked for. On a shared machine absolute figures swing, so a ratio is the median of the ratios of single rounds, in each of
which the baseline and ours ran one right after the other.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROUNDS: Final = 7
_SYNCS: Final = 50
_PAGE: Final = bytes(4096)


@dataclass(slots=True)
class Figures:
    """What was measured.

    Attributes:
        ratios: By the names that DESIGN.md fixes: ours to its baseline.
        figures: Absolute figures by name, each with its unit in the name; for orientation.
    """

    ratios: dict[str, float] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, other: Figures) -> None:
        """Take over another bench's figures."""
        self.ratios |= other.ratios
        self.figures |= other.figures


def alternate(
    ours: Callable[[], float], baseline: Callable[[], float], rounds: int | None = None
) -> tuple[float, float, float]:
    """Measure two rates in turns, each once beforehand to warm up.

    Args:
        ours: Does the work and returns its rate; more is better.
        baseline: The same for what it is compared with.
        rounds: How often each is measured; `ROUNDS` times by default.

    Returns:
        The median of the rounds' ratios, then the medians of both rates.
    """
    ours()
    baseline()
    pairs = []
    for number in range(rounds or ROUNDS):
        first, second = (ours, baseline) if number % 2 else (baseline, ours)
        one, two = first(), second()
        pairs.append((one, two) if first is ours else (two, one))
    ratio = statistics.median(mine / other for mine, other in pairs)
    return ratio, statistics.median(mine for mine, _ in pairs), statistics.median(other for _, other in pairs)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of all values lies."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder on the disk of the current folder, since syncs are what is measured; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=".affidavit-bench-", dir=Path.cwd()) as name:
        yield Path(name)


def machine() -> dict[str, object]:
    """Return what the figures depend on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "sqlite": sqlite3.sqlite_version,
        "sync_us": round(_sync_time() * 1e6),
    }


def _sync_time() -> float:
    with scratch() as folder:
        descriptor = os.open(folder / "sync", os.O_RDWR | os.O_CREAT)
        took = []
        for _ in range(_SYNCS):
            began = time.perf_counter()
            os.pwrite(descriptor, _PAGE, 0)
            os.fdatasync(descriptor)
            took.append(time.perf_counter() - began)
        os.close(descriptor)
    return statistics.median(took)


def as_json(found: Figures) -> str:
    """Return the result as one JSON object."""
    return json.dumps({"ratios": found.ratios, "figures": found.figures, "machine": machine()})


def as_table(found: Figures) -> str:
    """Return the result as lines for people."""
    lines = ["ratio to the baseline"]
    lines += [f"  {name:<32} {value:>12.2f}" for name, value in found.ratios.items()]
    lines += ["figures"]
    lines += [f"  {name:<32} {value:>12,.2f}" for name, value in found.figures.items()]
    lines += ["machine"]
    lines += [f"  {name:<32} {value!s:>12}" for name, value in machine().items()]
    return "\n".join(lines)
