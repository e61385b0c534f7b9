"""SIGKILL at random and at chosen moments, hundreds of times on the same stores, looked at by an independent reader each time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import ROOT, SOAK

STORES = 2
ROUNDS = 1500 if SOAK else 100


@pytest.mark.slow
def test_no_kill_loses_an_acknowledged_row_or_reuses_a_seq(tmp_path: Path) -> None:
    """S1, S10: after each of 200 kills (thousands in a soak) all acknowledged rows are there, dense, and the index agrees."""
    commands = [
        [
            sys.executable,
            "-m",
            "tests.actors.logs.kills",
            str(tmp_path / f"store{seed}"),
            str(ROUNDS),
            str(seed),
        ]
        for seed in range(STORES)
    ]
    going = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    ended = [(*process.communicate(), process.returncode) for process in going]
    for out, err, code in ended:
        assert code == 0, err
        counts = json.loads(out)
        assert counts["rounds"] == ROUNDS
        assert counts["rows"] >= counts["acknowledged"] > ROUNDS
