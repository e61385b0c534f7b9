"""The table of runs: each screen as it stands, which runs are listed, and what is said of those that cannot be read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import get_args

import pytest

from affidavit.actors.event_json import parse_time
from affidavit.actors.run_info import RunInfo, RunState
from affidavit.tools.commands.sessions import State, Wanted, runs_text
from affidavit.tools.terminal import Style
from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import Done

BEGAN = parse_time("2026-11-30T07:38:26Z")
RUNS = (
    RunInfo("01a22b64-0ab5-78f0-9e75-796b95b975e5", trouble="its first event is missing"),
    RunInfo(
        "01a22b64-0cc7-7000-8000-000000000000", RunState.WAITING, "Pay the open invoices\nof November",
        BEGAN, "openai:gpt", 41, 0, 41, (3, 5),
    ),
    RunInfo("nightly", RunState.PARKED, "Summarise \x1b[31mthe\x1b[0m logs", BEGAN, "local", 9, 9, 11, (), True),
    RunInfo("ledger", RunState.CONVERGED, "Settle the open invoices in the ledger, one by one, and say how much was paid.",
            BEGAN, "script:demo", 50, 50, 52),
)  # fmt: skip

AT_80 = r"""
ID           STARTED (UTC)     STATE           SEALED  OBJECTIVE
01a22b64-0a  unknown           unreadable         0/0
01a22b64-0c  2026-11-30 07:38  waiting 3, 5      0/41  Pay the open invoices ...
nightly      2026-11-30 07:38  parked, braked     9/9  Summarise \x1b[31mthe\...
ledger       2026-11-30 07:38  converged        50/50  Settle the open invoic...
"""
AT_120 = r"""
ID           STARTED (UTC)     STATE           SEALED  MODEL        OBJECTIVE
01a22b64-0a  unknown           unreadable         0/0
01a22b64-0c  2026-11-30 07:38  waiting 3, 5      0/41  openai:gpt   Pay the open invoices of November
nightly      2026-11-30 07:38  parked, braked     9/9  local        Summarise \x1b[31mthe\x1b[0m logs
ledger       2026-11-30 07:38  converged        50/50  script:demo  Settle the open invoices in the ledger, one by on...
"""


def screen(width: int | None) -> str:
    """The table of all runs on a terminal of so many columns."""
    return "\n" + runs_text(Style(width=width), RUNS, [run.id for run in RUNS])


@pytest.mark.parametrize(("width", "expected"), [(80, AT_80), (120, AT_120)])
def test_the_table_on_a_terminal(width: int, expected: str) -> None:
    """Whole rows that fit the screen; ids are shortened where there is no room for whole ones."""
    assert screen(width) == expected
    assert max(map(len, screen(width).splitlines())) <= width


def test_in_a_pipe_ids_are_whole() -> None:
    """What a program is given can be given back."""
    assert [line.split()[0] for line in screen(None).splitlines()[2:]] == [run.id for run in RUNS]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (Wanted(), {"01a22b64-0ab5", "01a22b64-0cc7", "nightly", "ledger"}),
        (Wanted(states=frozenset({"parked", "converged"})), {"nightly", "ledger"}),
        (Wanted(words="INVOICES"), {"01a22b64-0ab5", "01a22b64-0cc7", "ledger"}),
        (Wanted(model="openai"), {"01a22b64-0ab5", "01a22b64-0cc7"}),
        (Wanted(since=BEGAN + 1), {"01a22b64-0ab5"}),
        (Wanted(states=frozenset({"converged"}), model="Script", words="ledger"), {"ledger"}),
    ],
)
def test_what_a_filter_takes(wanted: Wanted, ids: set[str]) -> None:
    """All conditions hold; a run that cannot be read is ruled out by its state alone."""
    assert {run.id[:13] for run in RUNS if wanted.takes(run)} == ids


def test_every_state_can_be_asked_for() -> None:
    """The states of the option are those that a run can have."""
    assert set(get_args(State)) == set(RunState)


def listed(finished: Finished, *words: object) -> Done:
    """What `sessions` says of the finished store."""
    return finished.cli("sessions", *words, "--store", finished.store, AFFIDAVIT_PASSPHRASE=None)


def test_filters_on_a_real_store(finished: Finished) -> None:
    """Each filter by itself, as a person types it."""

    def ids(*words: object) -> list[str]:
        done = listed(finished, *words, "--json")
        assert (done.code, done.err) == (0, "")
        return [json.loads(line)["id"] for line in done.out.splitlines()]

    assert ids() == ["stalled-1", "converged-1"]
    assert ids("--state", "converged", "--state", "running") == ["converged-1"]
    assert ids("--find", "WHAT IS") == ["converged-1"]
    assert ids("--model", "cut.json") == ["stalled-1"]
    assert ids("--since", "1h", "--limit", "1") == ["stalled-1"]
    refused = listed(finished, "--since", "yesterday")
    assert (refused.code, refused.out) == (2, "")
    none = listed(finished, "--find", "nobody asked this")
    assert (none.code, none.out) == (0, "")
    assert "none of the 2 runs of this store is of this kind" in none.err


def test_a_damaged_run_is_listed_and_told_of(finished: Finished, tmp_path: Path) -> None:
    """The others are shown as ever, the exit code is 1, and `fsck` is named."""
    shutil.copytree(finished.store, tmp_path / "store")
    with sqlite3.connect(tmp_path / "store" / "runs.sqlite") as connection:
        connection.execute("UPDATE rows SET data = x'00' WHERE stream = 'stalled-1' AND seq = 1")
    connection.close()
    done = finished.cli("sessions", "--store", tmp_path / "store")
    first, second = done.out.splitlines()[1:]
    assert done.code == 1
    assert first.startswith("stalled-1    unknown           unreadable")
    assert second.startswith("converged-1  ")
    assert "run stalled-1 cannot be read: " in done.err
    assert "`affidavit fsck` tells what is wrong" in done.err
