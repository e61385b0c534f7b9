"""The benches of fan-out and of waiting sessions give every figure under its name. What they measure is nobody's test."""

from __future__ import annotations

import json
import math

import pytest

from affidavit.tools.bench import __main__ as bench
from affidavit.tools.bench import fanout, figures, session


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One short round of each."""
    monkeypatch.setattr(figures, "ROUNDS", 1)
    monkeypatch.setattr(fanout, "_ROUNDS", 1)
    monkeypatch.setattr(fanout, "_APPENDS", 2)
    monkeypatch.setattr(
        fanout, "CASES", {name: (min(case[0], 20), *case[1:]) for name, case in fanout.CASES.items()}
    )
    monkeypatch.setattr(session, "_STARTS", 5)
    monkeypatch.setattr(session, "_SECONDS", 0.05)
    monkeypatch.setattr(session, "_SETTLE", 0.05)


def measured(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, dict[str, float]]:
    """Return what a bench prints as JSON."""
    assert bench.main([name, "--json", "--events", "100"]) == 0
    said: dict[str, dict[str, float]] = json.loads(capsys.readouterr().out)
    assert all(math.isfinite(value) for part in ("ratios", "figures") for value in said[part].values())
    return said


@pytest.mark.slow
def test_fanout_has_its_figures(quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Four ratios to bare channels, and latencies with and without a subscriber that stands still."""
    said = measured(capsys, "fanout")
    assert set(said["ratios"]) == set(fanout.CASES)
    assert {name for name in said["figures"] if "_ms_" in name} == {
        f"delivery_{share}_ms_1000_{case}"
        for share in ("p50", "p99")
        for case in ("all_keep_up", "with_one_stuck")
    }


def test_session_has_its_figures(quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory, share of a core with either kind of runtime, and cost of a start."""
    said = measured(capsys, "session")
    assert "asked_cpu_share" in said["figures"]
    assert set(said["ratios"]) == {
        "kib_per_idle",
        "idle_cpu_share",
        "start_vs_nursery",
    }
