"""Verification of a made record beside the published client, each in a process of its own, start to end.

L2 is what the client checks: container, signature, size and root. The full pass is L1, L2 and L4; it stands beside
the client followed by the plainest check that every event is canonical: decode it, encode it again, compare.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from affidavit.tools.bench.figures import Figures, scratch
from affidavit.tools.bench.made_record import write_made_record
from affidavit.tools.bench.rotation import ratio, rotate

EVENTS: Final = 1_000_000
ROUNDS: Final = 3
_OURS: Final = ("l2", "l2_two", "full", "full_two")
_CASES: Final = ("peer", *_OURS[:2], "peer_and_check", *_OURS[2:])


class Case:
    """One way to verify one file.

    Attributes:
        peak_mib: The most memory that a process of it has held.
    """

    def __init__(self, name: str, path: Path) -> None:
        """Prepare; each call is a process of its own."""
        self._command = [sys.executable, "-m", "affidavit.tools.bench.verify_case", name, str(path)]
        self.peak_mib = 0.0

    def __call__(self) -> float:
        """Verify, and return how many seconds the process took."""
        began = time.perf_counter()
        done = subprocess.run(self._command, stdout=subprocess.PIPE, check=True)
        took = time.perf_counter() - began
        self.peak_mib = max(self.peak_mib, int(done.stdout) / 1024)
        return took


def run(events: int | None = None) -> Figures:
    """Measure verification.

    Args:
        events: How many events the record has; a million by default. A tenth of them shows whether memory is flat.
    """
    if importlib.util.find_spec("provetrail") is None:
        raise SystemExit("bench verify needs the published client beside it: pip install provetrail==0.3.0")
    count, found = events or EVENTS, Figures()
    with scratch() as folder:
        large, small = folder / "large", folder / "small"
        write_made_record(large, count)
        write_made_record(small, max(count // 10, 1))
        cases = {name: Case(name, large) for name in _CASES}
        taken = rotate(cases, ROUNDS)
        tenth = {name: Case(name, small) for name in _OURS}
        for case in tenth.values():
            case()
    for name, baseline in (("l2", "peer"), ("l2_two", "peer")):
        found.ratios[f"{name}_vs_peer"] = ratio(taken[name], taken[baseline])
    for name in ("full", "full_two"):
        found.ratios[f"{name}_vs_peer_and_check"] = ratio(taken[name], taken["peer_and_check"])
    found.figures["peak_mib"] = max(case.peak_mib for name in _OURS for case in (cases[name], tenth[name]))
    found.figures["peak_mib_of_a_tenth"] = max(case.peak_mib for case in tenth.values())
    found.figures["peer_peak_mib"] = cases["peer"].peak_mib
    for name in _CASES:
        found.figures[f"{name}_s"] = statistics.median(taken[name])
    return found
