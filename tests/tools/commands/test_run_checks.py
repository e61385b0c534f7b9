"""Runs that are backed by a policy's checks, as a process: a success that was claimed, or a stall with what the check saw."""

import json
import os
import select
from pathlib import Path

import pytest

from tests.tools.commands.runner import READER, Cli, Done, lines_that_begin


@pytest.fixture
def workspace(cli: Cli) -> Path:
    """A workspace, and beside it a policy with one check: that a file is there."""
    folder = cli.home / "ws"
    folder.mkdir()
    (folder / "README.md").write_text("# A ledger\n")
    (cli.home / "policy.toml").write_text(
        '[grant]\ntools = ["read_file", "list_dir"]\n[[check]]\nname = "is built"\ncommand = ["ls", "built"]\n'
    )
    return folder


def run(cli: Cli, *words: object) -> Done:
    """Run under the policy."""
    return cli("run", "What is this?", "--model", READER, "--policy", "policy.toml", *words)


def test_a_check_that_passes_backs_a_success_that_verify_counts(cli: Cli, workspace: Path) -> None:
    """The transcript shows the verdict and the outcome; the exported record verifies, with one outcome claimed."""
    (workspace / "built").touch()
    done = run(cli, "--workspace", workspace)
    assert done.code == 0
    assert "is built passed: exit code 0" in done.out
    assert "success, as check " in done.out
    printed = [cli.printed(line) for line in lines_that_begin(done.out, "affidavit ")]
    assert [each.code for each in printed] == [0, 0]
    assert "1 success claimed" in printed[-1].out


def test_a_check_that_fails_stalls_the_run(cli: Cli, workspace: Path) -> None:
    """Exit code 1; the reason names the check and what it printed, and no success is claimed."""
    done = run(cli, "--workspace", workspace)
    assert done.code == 1
    assert "is built FAILED: exit code" in done.out
    assert "failure, as check " in done.out
    (state,) = lines_that_begin(done.out, "state ")
    assert state.startswith("state      stalled: the check 'is built' failed: exit code")
    assert "No such file or directory" in state
    printed = [cli.printed(line) for line in lines_that_begin(done.out, "affidavit ")]
    assert "0 successes claimed" in printed[-1].out


def test_checks_need_a_workspace(cli: Cli, workspace: Path) -> None:
    """Without one the run does not begin: one sentence, exit code 2."""
    done = run(cli)
    assert (done.code, done.out) == (2, "")
    assert done.err == ("affidavit: policy.toml: its checks run in a workspace: name one with --workspace\n")


def heard(pipe: int) -> bytes:
    """What comes out of a pipe next; nothing once all who held its other end are gone."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN | select.POLLHUP)
    assert poll.poll(60_000)
    return os.read(pipe, 100)


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_run_that_is_killed_in_the_middle_of_a_check_leaves_no_process_and_can_be_resumed(
    cli: Cli, workspace: Path, *, idempotent: bool
) -> None:
    """Its processes end with their owner. It is run again if it says that it may be; else the run stalls, and says so."""
    hold, line = workspace / "hold", "test ! -p hold || { exec 3> hold; echo held >&3; sleep 1000; }"
    os.mkfifo(hold)
    check = {"name": "settles", "command": ["/bin/sh", "-c", line], "idempotent": idempotent}
    told = "\n".join(f"{key} = {json.dumps(value)}" for key, value in check.items())
    (cli.home / "policy.toml").write_text(f"[[check]]\n{told}\n")
    options = ("--model", READER, "--policy", "policy.toml", "--workspace", workspace)
    pipe = os.open(hold, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with cli.going("run", "What?", "--id", "killed", *options) as process:
            assert heard(pipe) == b"held\n"
            process.kill()
            assert heard(pipe) == b""
    finally:
        os.close(pipe)
    hold.unlink()
    resumed = cli("resume", "killed", *options)
    if idempotent:
        assert resumed.code == 0
        assert "success, as check " in resumed.out
    else:
        assert resumed.code == 1
        assert (
            "came to no verdict: it had begun when the run stopped, and it may not be run again"
            in resumed.out
        )
        assert "success" not in resumed.out
    verified = cli.printed(" && ".join(lines_that_begin(resumed.out, "affidavit ")))
    assert verified.code == 0
