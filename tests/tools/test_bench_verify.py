"""The benches of verification and sealing give every figure under its name. What they measure is nobody's test."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import pytest

from affidavit.crypto import Keyring, verify_record
from affidavit.tools.bench import __main__ as bench
from affidavit.tools.bench import made_record, seal, seal_lateness, verify
from affidavit.tools.bench.rotation import ratio, rotate
from affidavit.tools.bench.seal_lateness import mean_over_time
from tests.crypto.samples import tree

VERIFY = {"l2_vs_peer", "l2_two_vs_peer", "full_vs_peer_and_check", "full_two_vs_peer_and_check"}
SEAL = {"vs_hash_loop", "from_sqlite_vs_hash_loop", "lateness_vs_thread"}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One short round of each, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    for module in (verify, seal, seal_lateness):
        monkeypatch.setattr(module, "ROUNDS", 1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "names"), [("verify", VERIFY), ("seal", SEAL)])
def test_json_has_every_figure_under_its_name(
    quick: None, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, names: set[str]
) -> None:
    """One object with the ratios under their fixed names and absolute figures beside them; no file is left."""
    assert bench.main([name, "--json", "--events", "1500"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["ratios"]) == names
    assert all(
        value > 0 and math.isfinite(value) for value in (*said["ratios"].values(), *said["figures"].values())
    )
    assert name != "verify" or 0 < said["figures"]["peak_mib"] < 64
    assert list(tmp_path.iterdir()) == []


def test_without_the_published_client_a_bench_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, before anything is made."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="pip install provetrail"):
        verify.run(1)


def test_the_made_record_is_a_real_one(tmp_path: Path) -> None:
    """It verifies up to L4, has actions to judge, and its events have the length that the figures are stated for."""
    made_record.write_made_record(tmp_path / "record", 1200)
    found = verify_record(
        (tmp_path / "record").read_bytes(), Keyring({made_record.KID: made_record.KEY.public})
    )
    assert found.governance is not None
    assert (found.governance.admitted, found.governance.completed, found.findings) == (300, 300, ())
    assert 340 < sum(map(len, found.events)) / 1200 < 370


@pytest.mark.parametrize("count", [1, 2, 3, 1023, 1024, 1025, 3000])
def test_the_bare_loop_hashes_the_same_tree(count: int) -> None:
    """The baseline comes to the same root, so it does the same hashing."""
    carried = [event for batch in made_record.made_events(count) for event in batch]
    assert seal.hash_loop(carried) == tree(carried).root()


def test_rounds_turn_so_that_each_case_begins_once() -> None:
    """Every case has its turn in every place."""
    order: list[str] = []

    def case(name: str) -> float:
        order.append(name)
        return float(len(order))

    taken = rotate({name: partial(case, name) for name in "abc"}, 3)
    assert "".join(order) == "abcbcacab"
    assert taken == {"a": [1.0, 6.0, 8.0], "b": [2.0, 4.0, 9.0], "c": [3.0, 5.0, 7.0]}
    assert ratio([2.0, 1.0, 9.0], [1.0, 2.0, 3.0]) == 2.0


def test_one_long_stop_counts_for_its_length() -> None:
    """A thousand prompt wake-ups do not hide a second in which nothing woke."""
    prompt = [0.0] * 1000
    assert mean_over_time(prompt) == 0.0
    assert mean_over_time([*prompt, 1.0]) == pytest.approx(0.5, rel=0.01)
