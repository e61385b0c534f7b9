"""The bench of the live view gives every figure under its name. What it measures is nobody's test: machines differ."""

from __future__ import annotations

import json
import math

import pytest

from affidavit.tools.bench import __main__ as bench
from affidavit.tools.bench import console


def test_console_has_its_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One ratio, of a run at a pace with the view and without, and the rates with a pace and without one."""
    monkeypatch.setattr(console, "PACE", 200_000)
    monkeypatch.setattr(console, "_ROUNDS", 1)
    assert bench.main(["console", "--json", "--events", "200"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["ratios"]) == {"run_slowdown"}
    assert set(said["figures"]) == {
        "events_per_s",
        "shown_events_per_s",
        "unpaced_slowdown",
        "unpaced_events_per_s",
        "unpaced_shown_events_per_s",
    }
    assert all(
        value > 0 and math.isfinite(value) for value in (*said["ratios"].values(), *said["figures"].values())
    )
