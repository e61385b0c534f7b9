"""`affidavit run`, as a process: what it prints, where, and what its end says."""

import json
import os
from pathlib import Path

import pytest

from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import READER, SCRIPTS, Cli, lines_that_begin

ESCAPE = "\x1b"


def test_a_converged_run_ends_zero_and_shows_every_event_in_order(finished: Finished) -> None:
    """Exit code 0, and one line for each event, numbered without a gap."""
    assert finished.converged.code == 0
    numbers = [int(line[:4]) for line in finished.converged.out.splitlines() if line[:4].strip().isdigit()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "session.converged" in finished.converged.out


def test_a_stalled_run_ends_one_with_its_reason(finished: Finished) -> None:
    """Exit code 1; the reason and its class stand on the transcript and in the status."""
    assert finished.stalled.code == 1
    assert "STALLED (budget_exceeded): the answer was cut off" in finished.stalled.out
    assert "state      stalled: the answer was cut off" in finished.stalled.out


def test_a_refusal_is_marked(finished: Finished) -> None:
    """A call of a tool that was not granted is shown as refused, with its code."""
    assert "REFUSED call 2: list_dir (capability_denied)" in finished.converged.out


def test_first_use_makes_a_private_key_and_says_so(finished: Finished) -> None:
    """The first run names the key's path and id; later runs say nothing of it."""
    key = finished.store / "keys" / "default"
    assert str(key) in finished.converged.err
    assert "did:key:z6Mk" in finished.converged.err
    assert finished.stalled.err == ""
    assert (key.stat().st_mode & 0o777, finished.store.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_two_lines_export_and_verify(finished: Finished) -> None:
    """The two lines that a run prints, pasted into a shell, both end 0, and the second says L4 and what was not checked."""
    (export,) = lines_that_begin(finished.converged.out, "affidavit export converged-1 ")
    (verify,) = lines_that_begin(
        finished.converged.out, "affidavit verify converged-1.provetrail --key did:key:"
    )
    assert finished.cli.printed(export).code == 0
    verified = finished.cli.printed(verify)
    assert verified.code == 0
    assert "L4: " in verified.out
    assert "not checked" in verified.out


def test_everything_is_sealed_at_the_end(finished: Finished) -> None:
    """The status counts the events that a seal covers, all of them."""
    (record,) = lines_that_begin(finished.converged.out, "record ")
    n, m = record.rpartition(" ")[2].split("/")
    assert record.startswith("record     verified, sealed ")
    assert n == m


def test_piped_output_has_no_escape_codes(finished: Finished) -> None:
    """No colour outside a terminal, and what a tool read cannot bring any in."""
    assert "red" in finished.converged.out
    assert ESCAPE not in finished.converged.out + finished.converged.err


def test_json_is_one_event_a_line_and_nothing_else(cli: Cli) -> None:
    """Standard output parses line by line and counts up; what people are told goes to standard error."""
    done = cli("run", "What is this?", "--model", READER, "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["kind"] == "record.verified"
    assert lines_that_begin(done.err, "affidavit export ")
    assert (cli.home / ".local/share/affidavit/runs.sqlite").is_file()


def test_an_unreachable_endpoint_is_a_stall_on_the_record(cli: Cli) -> None:
    """Exit code 1: the run exists, says why it stalled, and is sealed."""
    done = cli("run", "Hello", "--model", "openai:m", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.code == 1
    assert "STALLED (transient): the model could not be asked: cannot connect to 127.0.0.1:9" in done.out
    assert lines_that_begin(done.out, "record     verified")


def test_a_reader_that_goes_away_does_not_stop_the_run(cli: Cli) -> None:
    """With standard output closed by its reader after one line, the run still ends 0, without a word about it, and is sealed."""
    with cli.going("run", "What is this?", "--model", READER) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait() == 0
    assert "Broken" not in said
    assert "Traceback" not in said
    assert json.loads(cli("sessions", "--json").out)["state"] == "converged"


def test_a_transient_failure_is_tried_again(cli: Cli) -> None:
    """One failed attempt is shown, and the run converges all the same."""
    done = cli("run", "Hello", "--model", f"script:{SCRIPTS / 'overloaded-once.json'}")
    assert done.code == 0
    assert "failed: rate_limited" in done.out


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
def test_colour_only_on_a_terminal_that_wants_it(
    finished: Finished, no_color: str | None, coloured: bool
) -> None:
    """On a terminal the transcript is coloured, and wrapped to its width, unless NO_COLOR is set."""
    master, slave = os.openpty()
    done = finished.cli.into(
        slave, "replay", "converged-1", "--store", finished.store, NO_COLOR=no_color, COLUMNS="60"
    )
    os.close(slave)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert done.code == 0
    assert (ESCAPE in shown) is coloured
    if not coloured:
        assert max(map(len, shown.splitlines()[:20])) <= 60


def test_standard_output_that_is_closed_is_no_place_for_a_store(cli: Cli) -> None:
    """With standard output closed from the start, nothing that is written takes its number: the store stays sound."""
    line = f"affidavit run Hello --model '{READER}' --id closed >&-"
    assert cli.printed(line).code == 0
    assert cli("replay", "closed").code == 0


def test_a_full_disk_behind_standard_output_is_told_once(cli: Cli) -> None:
    """The run goes on to its end and says in one line why it is not shown."""
    with Path("/dev/full").open("w") as full:
        done = cli.into(full.fileno(), "run", "Hello", "--model", READER)
    assert done.code == 0
    assert len(lines_that_begin(done.err, "affidavit: standard output: No space left")) == 1


def test_a_command_without_a_terminal_needs_a_passphrase(cli: Cli) -> None:
    """A first run that has no passphrase refuses in one sentence with exit code 2, and leaves nothing behind."""
    done = cli("run", "Hello", "--model", READER, AFFIDAVIT_PASSPHRASE=None)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "AFFIDAVIT_PASSPHRASE_FILE" in done.err
    assert not (cli.home / ".local").exists()


def test_head_ends_a_reading_command_quietly(finished: Finished) -> None:
    """`affidavit replay | head -1` shows one line and nothing on standard error, with exit code 0."""
    with finished.cli.going("replay", "converged-1", "--store", finished.store) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_a_full_disk_loses_nothing(cli: Cli) -> None:
    """A store that cannot grow stops the run in one sentence with exit code 2; with room again the printed line finishes it."""
    done = cli.printed(f"ulimit -f 130; affidavit run Hello --model '{READER}' --workspace . --id full")
    assert done.code == 2
    assert "affidavit: run full stopped: there is no room left for the store" in done.err
    assert "Traceback" not in done.err
    (line,) = lines_that_begin(done.err, "affidavit resume full ")
    resumed = cli.printed(line)
    assert resumed.code == 0
    assert lines_that_begin(resumed.out, "record     verified")
