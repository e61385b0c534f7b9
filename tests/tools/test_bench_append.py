"""The bench of durable appends gives every figure under its name. What it measures is nobody's test: machines differ."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from affidavit.tools.bench import __main__ as bench
from affidavit.tools.bench import append_busy, figures

NAMES = {
    "vs_raw_1", "vs_raw_10", "vs_raw_100", "vs_raw_1000", "session_vs_raw_100", "busy_vs_inline",
}  # fmt: skip


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One short round of each, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "ROUNDS", 1)
    monkeypatch.setattr(append_busy, "_SECONDS", 0.02)


@pytest.mark.slow
def test_json_has_every_figure_beside_its_machine(
    quick: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One object: the ratios under their fixed names, absolute figures, and what they depend on; no file is left."""
    assert bench.main(["append", "--json", "--events", "100"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["ratios", "figures", "machine"]
    assert set(said["ratios"]) == NAMES
    assert "busy_p99_ms" in said["figures"]
    assert all(
        value > 0 and math.isfinite(value) for value in (*said["ratios"].values(), *said["figures"].values())
    )
    assert {"python", "cpus", "sqlite", "sync_us"} <= set(said["machine"])
    assert list(tmp_path.iterdir()) == []


def test_the_table_names_every_ratio() -> None:
    """A person sees the same names."""
    found = figures.Figures(ratios={"vs_raw_1": 0.5}, figures={"busy_p99_ms": 3.25})
    text = figures.as_table(found)
    assert "vs_raw_1" in text
    assert "0.50" in text
    assert "3.25" in text


def test_rounds_alternate_and_ratios_are_of_rounds() -> None:
    """Each round measures both, the one that begins changes, and the ratio is the median of the rounds' own."""
    order: list[str] = []
    rates = iter((1.0, 10.0, 4.0, 40.0))

    def ours() -> float:
        order.append("ours")
        return 2 * baseline_rate[0]

    baseline_rate = [1.0]

    def baseline() -> float:
        order.append("baseline")
        baseline_rate[0] = next(rates)
        return baseline_rate[0]

    ratio, _, median = figures.alternate(ours, baseline, 3)
    assert order == ["ours", "baseline", "baseline", "ours", "ours", "baseline", "baseline", "ours"]
    assert median == 10.0
    assert ratio == 2.0


def test_an_unknown_bench_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and the names that there are."""
    with pytest.raises(SystemExit) as stop:
        bench.main(["nothing"])
    assert stop.value.code == 2
    assert "append" in capsys.readouterr().err
