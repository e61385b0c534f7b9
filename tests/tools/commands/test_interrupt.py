"""Ctrl-C and SIGTERM: the run is parked, sealed as incomplete, and resumed by the line that was printed."""

import json
import os
import signal
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from affidavit.tools.interrupts import open_interrupts
from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli, lines_that_begin


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_parks_the_run_and_the_printed_line_resumes_it(cli: Cli, number: signal.Signals) -> None:
    """Exit code 130, the transcript so far is shown whole, sealed and parked; the printed line goes on to convergence.

    No event of the first half is written again, and the whole record verifies as complete.
    """
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        with cli.going("run", "Hello", "--model", "openai:m", "--id", "parked", "--json", **url) as process:
            assert gate.asked.wait(30)
            process.send_signal(number)
            shown, said = process.communicate(timeout=30)
        assert process.returncode == 130
        assert lines_that_begin(said, f"{number.name}: the run is being parked")
        (listed,) = [json.loads(line) for line in cli("sessions", "--json").out.splitlines()]
        assert (listed["state"], listed["sealed"]) == ("parked", listed["events"])
        before = cli("replay", "parked", "--json").out
        assert shown == before
        gate.answer.set()
        (line,) = lines_that_begin(said, "affidavit resume parked --model openai:m")
        resumed = cli.printed(line, **url)
    assert resumed.code == 0
    assert "Now it is done." in resumed.out
    assert cli("replay", "parked", "--json").out.startswith(before)
    done = [cli.printed(printed) for printed in lines_that_begin(resumed.out, "affidavit ")]
    assert [each.code for each in done] == [0, 0]
    assert "complete     yes" in done[-1].out


def test_the_resume_line_names_the_store_and_the_workspace(cli: Cli, tmp_path: Path) -> None:
    """What the run was given stands in the line, quoted, so that it can be pasted anywhere."""
    workspace = tmp_path / "a place"
    workspace.mkdir()
    with held_endpoint() as gate:
        words = ("run", "Hello", "--model", "openai:m", "--store", tmp_path / "s t", "--workspace", "a place")
        with cli.going(*words, "--id", "x", OPENAI_BASE_URL=gate.url) as process:
            assert gate.asked.wait(30)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
    (line,) = lines_that_begin(said, "affidavit resume")
    assert line == (
        f"affidavit resume x --model openai:m --workspace '{workspace}' --store '{tmp_path / 's t'}'"
    )


def test_another_model_is_refused_unless_accepted(cli: Cli) -> None:
    """Resuming with another model ends 2 in one sentence that names the option; accepted, it converges."""
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        with cli.going("run", "Hello", "--model", "openai:m", "--id", "parked", **url) as process:
            assert gate.asked.wait(30)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
        gate.answer.set()
        refused = cli("resume", "parked", "--model", "openai:other", **url)
        accepted = cli("resume", "parked", "--model", "openai:other", "--accept-changes", **url)
    assert refused.code == 2
    assert "another model" in refused.err
    assert "--accept-changes" in refused.err
    assert accepted.code == 0
    assert "with another model" in accepted.out


async def test_a_second_signal_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first signal cancels the scope and no more; the second says how to resume and ends the process with 130."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    async with open_interrupts(lambda name: f"{name}: parking", lambda: "resume it so") as interrupts:
        with interrupts.scope:
            signal.raise_signal(signal.SIGINT)
            await trio.sleep_forever()
        assert interrupts.happened
        assert ended == []
        assert capsys.readouterr().err == "SIGINT: parking\n"
        signal.raise_signal(signal.SIGTERM)
        await wait_all_tasks_blocked()
    assert ended == [130]
    assert "resume it so" in capsys.readouterr().err
