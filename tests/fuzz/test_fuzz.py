"""Decoders under a coverage-guided fuzzer: only coded refusals come out, whatever the bytes.

The runs are short and always the same; a soak run takes minutes for each decoder. The fuzzer's own environment holds
nothing but itself, and is put before this interpreter's path.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment import ROOT, SOAK, require_venv
from tests.fuzz.targets import TARGETS, seeds

RUNS = 0 if SOAK else 2000
SECONDS = 60 if SOAK else 20


def fuzz(name: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs the harness over a target, seeded from our vectors."""
    (packages,) = (require_venv("fuzz") / "lib").glob("python3*/site-packages")
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(seeds(name)):
        (corpus / str(number)).write_bytes(data)
    limits = [f"-max_total_time={SECONDS}", "-max_len=4096", "-timeout=10", "-rss_limit_mb=1024"]
    runs = [f"-runs={RUNS}"] if RUNS else []
    harness = ROOT / "tests" / "fuzz" / "harness.py"
    return subprocess.run(
        [sys.executable, harness, name, *runs, *limits, "-seed=1", f"-artifact_prefix={folder}/", corpus],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH")))),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", TARGETS)
def test_only_coded_refusals_come_out(name: str, tmp_path: Path) -> None:
    """Thousands of inputs that reach ever new code let no other error out and cost no unbounded time or memory."""
    done = fuzz(name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Done " in done.stderr


def test_the_harness_sees_an_error_that_is_let_out(tmp_path: Path) -> None:
    """A harness that passed everything would show nothing."""
    done = fuzz("leaking", tmp_path)
    assert done.returncode != 0
    assert "let out on purpose" in done.stdout + done.stderr


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_accepts_one_of_its_seeds(name: str) -> None:
    """A target that refuses everything at the door would never reach what lies behind."""
    assert any(TARGETS[name](data) for data in seeds(name))


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=1000 if SOAK else 30)
@given(st.data())
def test_seeds_with_spliced_bytes_let_nothing_else_out(name: str, data: st.DataObject) -> None:
    """The same without the fuzzer: parts of seeds cut out, repeated and overwritten."""
    whole = data.draw(st.sampled_from(list(seeds(name))))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    put = data.draw(st.binary(max_size=9) | st.just(whole[start:end] * 2))
    TARGETS[name](whole[:start] + put + whole[end:])
