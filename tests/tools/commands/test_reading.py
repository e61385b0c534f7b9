"""The commands that read: what they show, and that they change nothing and ask for nothing."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import Done, lines_that_begin


def read(finished: Finished, *words: object) -> Done:
    """Run a command on the finished store, with no passphrase to be had."""
    return finished.cli(*words, "--store", finished.store, AFFIDAVIT_PASSPHRASE=None)


def test_sessions_is_a_table_with_the_newest_first(finished: Finished) -> None:
    """One line for each run: id, state, how much of it is sealed, and what it was asked."""
    done = read(finished, "sessions")
    head, first, second = done.out.splitlines()
    assert done.code == 0
    assert head.split() == ["ID", "STARTED", "(UTC)", "STATE", "SEALED", "MODEL", "OBJECTIVE"]
    assert second.startswith("converged-1  ")
    assert second.endswith("What is this?")
    assert " stalled " in first
    sealed, of = first.split()[4].split("/")
    assert sealed == of


def test_sessions_as_json_is_one_run_a_line(finished: Finished) -> None:
    """Each line is an object with the same names."""
    found = [json.loads(line) for line in read(finished, "sessions", "--json").out.splitlines()]
    assert [run["id"] for run in found] == ["stalled-1", "converged-1"]
    names = {
        *("id", "started", "state", "waits_for", "braked", "model", "events", "sealed", "tip", "objective"),
        "trouble",
    }
    assert all(run.keys() == names for run in found)
    assert all(run["sealed"] == run["events"] < run["tip"] for run in found)


def test_replay_shows_what_the_run_showed(finished: Finished) -> None:
    """The transcript read back is the one that was shown live, and the status closes it."""
    done = read(finished, "replay", "converged-1")
    live = finished.converged.out.splitlines()
    shown = done.out.splitlines()
    assert done.code == 0
    assert shown == live[: len(shown)]
    assert lines_that_begin(done.out, "record     verified, sealed ")


def test_the_id_may_be_a_prefix_or_the_last(finished: Finished) -> None:
    """A unique prefix and @last name the same run as the whole id."""
    whole = read(finished, "replay", "stalled-1", "--json").out
    assert whole == read(finished, "replay", "sta", "--json").out
    assert whole == read(finished, "replay", "@last", "--json").out


def test_watch_of_a_finished_run_ends_and_shows_what_replay_shows(finished: Finished) -> None:
    """Every event once, in the same JSON, and no waiting for more."""
    watched = read(finished, "watch", "converged-1", "--json")
    assert watched.code == 0
    assert watched.out == read(finished, "replay", "converged-1", "--json").out


@pytest.mark.parametrize("after", [5, 10_000])
def test_watch_begins_after_a_seq(finished: Finished, after: int) -> None:
    """`--after N` shows exactly what follows event N; beyond the end of a finished run that is nothing."""
    every = [
        json.loads(line)["seq"] for line in read(finished, "replay", "converged-1", "--json").out.splitlines()
    ]
    done = read(finished, "watch", "converged-1", "--after", after, "--json")
    assert done.code == 0
    assert [json.loads(line)["seq"] for line in done.out.splitlines()] == every[after:]


def test_a_proof_verifies_alone(finished: Finished) -> None:
    """`prove` writes the proof under its default name and prints the line that verifies it, which ends 0 at L3."""
    done = read(finished, "prove", "converged-1", 7)
    (line,) = lines_that_begin(done.out, "affidavit verify converged-1-7.proof --key did:key:")
    assert done.code == 0
    verified = finished.cli.printed(line)
    assert verified.code == 0
    assert "L3 ok" in verified.out


def test_a_seal_is_proved_to_extend_an_earlier_one(finished: Finished) -> None:
    """`prove --extends N` writes the proof under its default name; the printed line ends 0 at L3. N must be a seal's size."""
    events = [json.loads(line) for line in read(finished, "replay", "converged-1", "--json").out.splitlines()]
    size = next(event["detail"]["size"] for event in events if event["kind"] == "record.sealed")
    done = read(finished, "prove", "converged-1", "--extends", size)
    (line,) = lines_that_begin(done.out, f"affidavit verify converged-1-extends-{size}.proof --key did:key:")
    verified = finished.cli.printed(line)
    assert verified.code == 0
    assert f"extend the {size} signed earlier" in verified.out
    other = read(finished, "prove", "converged-1", "--extends", size + 1)
    assert (other.code, f"there are seals of {size}" in other.err) == (2, True)
    for words in ((), ("3", "--extends", size)):
        refused = read(finished, "prove", "converged-1", *words)
        assert (refused.code, refused.out) == (2, "")
        assert "name one event by SEQ, or an earlier seal by --extends N" in refused.err


def test_a_record_can_go_to_standard_output(finished: Finished, tmp_path: Path) -> None:
    """`--out -` writes the very bytes that a file would get, and nothing else."""
    target = tmp_path / "converged.provetrail"
    assert read(finished, "export", "converged-1", "--out", target).code == 0
    piped = finished.cli.printed(
        f"affidavit export converged-1 --store '{finished.store}' --out - | sha256sum"
    )
    assert piped.out.split()[0] == hashlib.sha256(target.read_bytes()).hexdigest()


def test_reading_changes_nothing(finished: Finished) -> None:
    """After every reading command the store's files are the same, byte for byte."""

    def state() -> dict[str, bytes]:
        files = (
            path for path in finished.store.rglob("*") if path.is_file() and not path.name.endswith("-shm")
        )
        return {str(path): path.read_bytes() for path in files}

    before = state()
    for words in (["sessions"], ["replay", "@last"], ["watch", "@last"], ["export", "@last", "--out", "-"]):
        code = finished.cli.printed(f"affidavit {' '.join(words)} --store '{finished.store}' > out").code
        assert code == 0
    assert {name: data for name, data in state().items() if data} == {
        name: data for name, data in before.items() if data
    }


def test_sealing_and_resuming_a_finished_run_change_nothing(finished: Finished) -> None:
    """A run that has ended and is sealed stays as it is; `resume` says so and ends by its outcome."""
    before = read(finished, "replay", "stalled-1", "--json").out
    resumed = finished.cli("resume", "stalled-1", "--store", finished.store)
    sealed = finished.cli("seal", "stalled-1", "--store", finished.store)
    assert (resumed.code, sealed.code) == (1, 0)
    assert "run stalled-1 has ended already" in resumed.err
    assert read(finished, "replay", "stalled-1", "--json").out == before
