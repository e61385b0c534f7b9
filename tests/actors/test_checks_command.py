"""Checks that are commands, run for real: what ends them, what that says, and that nothing of them is left."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import trio

from affidavit.actors.checks import CheckNotRun
from affidavit.actors.checks_command import command_check
from affidavit.actors.events import Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.model import Check as DeclaredCheck
from affidavit.actors.policy.model import Policy
from tests.actors.mission_kit import DONE, replies, run_to_end

PYTHON = sys.executable


async def test_a_command_that_ends_with_0_passes_and_with_anything_else_fails(tmp_path: Path) -> None:
    """It runs in the place it was given, no shell reads its words, and what it printed is the detail."""
    look = "import os, sys; print(os.getcwd(), sys.argv[1]); sys.exit(int(sys.argv[2]))"
    passed = await command_check("look", [PYTHON, "-c", look, "$HOME; true", "0"], str(tmp_path)).run()
    failed = await command_check("look", [PYTHON, "-c", look, "x", "3"], str(tmp_path)).run()
    assert (passed.passed, failed.passed) == (True, False)
    assert passed.detail == f"exit code 0\n[stdout]\n{tmp_path} $HOME; true"
    assert failed.detail.startswith("exit code 3\n")


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        (["/no/such/program"], "command_not_run", "exit code 127\n[stderr]\n/no/such/program: No such file"),
        (["/"], "command_not_run", "exit code 126"),
        (["/bin/sh", "-c", "kill -KILL $$"], "command_ended", "ended by signal SIGKILL"),
        (["/bin/sh", "-c", "exec yes | head -c 80000000"], "command_ended", "ended by a limit (output)"),
    ],
)
async def test_a_command_that_did_not_run_to_its_end_comes_to_no_verdict(
    command: list[str], code: str, why: str, tmp_path: Path
) -> None:
    """There is no such program, or it is none; a signal or a limit ended it. Nothing of that is a verdict."""
    with pytest.raises(CheckNotRun) as caught:
        await command_check("it", command, str(tmp_path)).run()
    assert caught.value.code == code
    assert str(caught.value).startswith(why)


async def test_a_place_that_is_gone_is_no_verdict(tmp_path: Path) -> None:
    """Nothing is run then."""
    with pytest.raises(CheckNotRun, match="the command was not run"):
        await command_check("it", ["true"], str(tmp_path / "gone")).run()


async def test_our_secrets_are_not_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ours it gets PATH, HOME and such, and no passphrase."""
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "hunter2")
    result = await command_check("it", ["env"], str(tmp_path)).run()
    assert "PATH=" in result.detail
    assert "hunter2" not in result.detail


async def test_a_command_that_is_cut_off_leaves_no_process(tmp_path: Path) -> None:
    """Cancelled, it is gone before the call returns, with what it had started in a session of its own."""
    pids = tmp_path / "pids"
    line = (
        f"setsid sleep 1000 & echo $! > {pids}.new; echo $$ >> {pids}.new; mv {pids}.new {pids}; sleep 1000"
    )
    check = command_check("it", ["/bin/sh", "-c", line], str(tmp_path))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(check.run)
        while not pids.exists():  # noqa: ASYNC110  # a file is what a process of its own can tell by
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    for pid in map(int, pids.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_the_policys_checks_run_in_the_runs_place(tmp_path: Path) -> None:
    """In order, after those of the host; the record names each command's check, and a success rests on the last."""
    (tmp_path / "built").touch()
    policy = Policy(
        check=(
            DeclaredCheck(name="is built", command=("test", "-f", "built")),
            DeclaredCheck(name="is shipped", command=("test", "-f", "shipped"), idempotent=True),
        )
    )

    def config() -> MissionConfig:
        return MissionConfig(replies(DONE), policy=policy, place=str(tmp_path))

    failed = await run_to_end(MemoryLog(), config())
    assert [(each.detail["name"], each.detail["passed"]) for each in failed.of(Kind.CHECK)] == [
        ("is built", True), ("is shipped", False),
    ]  # fmt: skip
    assert failed.answer == "the check 'is shipped' failed: exit code 1"
    assert [each.result for each in failed.of(Kind.OUTCOME)] == ["failure"]
    (tmp_path / "shipped").touch()
    passed = await run_to_end(MemoryLog(), config())
    assert passed.answer == DONE.text
    assert [(each.result, each.detail["name"]) for each in passed.of(Kind.OUTCOME)] == [
        ("success", "is shipped")
    ]
