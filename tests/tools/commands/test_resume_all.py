"""`affidavit resume --all`: what a stopped machine left goes on, run by run; other processes' runs are left alone."""

import json

from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli


def states(cli: Cli) -> dict[str, str]:
    """How each run stands."""
    listed = [json.loads(line) for line in cli("sessions", "--json").out.splitlines()]
    return {run["id"]: run["state"] for run in listed}


def test_all_that_were_left_go_on_and_a_run_that_is_driven_is_left_alone(cli: Cli) -> None:
    """Two were killed, one is being driven, one cannot be gone on with: each is told, and the exit code is the gravest."""
    (cli.home / "w").mkdir()
    left = {"left-1": (), "left-2": (), "other": ("--workspace", "w")}
    with held_endpoint() as gate, held_endpoint() as held:
        for run_id, more in left.items():
            gate.asked.clear()
            words = ("run", "Hello", "--model", "openai:m", "--id", run_id, *more)
            with cli.going(*words, OPENAI_BASE_URL=gate.url) as process:
                assert gate.asked.wait(30)
                process.kill()
                process.wait()
        gate.answer.set()
        words = ("run", "Hello", "--model", "openai:m", "--id", "driven")
        with cli.going(*words, OPENAI_BASE_URL=held.url) as owner:
            assert held.asked.wait(30)
            done = cli("resume", "--all", OPENAI_BASE_URL=gate.url)
            found = states(cli)
            owner.kill()
            owner.wait()
        again = cli("resume", "--all", "--workspace", "w", "--accept-changes", OPENAI_BASE_URL=gate.url)
    assert (found["left-1"], found["left-2"]) == ("converged", "converged")
    assert done.out.count("record     verified") == 2
    assert "run driven is left alone: another process drives it\n" in done.err
    assert "run other was not gone on with: this run was driven with other tools" in done.err
    assert done.code == 2
    assert again.code == 0
    assert set(states(cli).values()) == {"converged"}
    nothing = cli("resume", "--all")
    assert (nothing.code, nothing.err) == (0, "no run of this store has been left unfinished\n")


def test_one_run_or_all_must_be_named(cli: Cli) -> None:
    """Neither, and both, are misuse; with none left there is nothing to do."""
    assert cli("resume").code == 2
    assert cli("resume", "mine", "--all").code == 2
