"""The bench of the waist gives every figure under its name. What it measures is nobody's test: machines differ."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from affidavit.tools.bench import __main__ as bench


def test_dispatch_has_its_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One ratio, to two appends of the same bytes, and what each took: on disk, alone, at one pace, in memory. No file stays."""
    monkeypatch.chdir(tmp_path)
    assert bench.main(["dispatch", "--json", "--events", "40"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["ratios"]) == {"vs_two_appends"}
    assert set(said["figures"]) == {
        "governed_us",
        "two_appends_us",
        "alone_us",
        "alone_vs_two_appends",
        "two_appends_at_its_pace_us",
        "alone_vs_two_appends_at_its_pace",
        "governed_in_memory_us",
        "two_appends_in_memory_us",
    }
    values = (*said["ratios"].values(), *said["figures"].values())
    assert all(value > 0 and math.isfinite(value) for value in values)
    assert list(tmp_path.iterdir()) == []
