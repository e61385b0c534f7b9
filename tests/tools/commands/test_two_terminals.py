"""Two terminals: one process drives a run, another follows it over the same SQLite file and disturbs nobody."""

import json
import signal

from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli

RUN = ("run", "Hello", "--model", "openai:m")


def test_watch_follows_a_run_that_another_process_drives(cli: Cli) -> None:
    """The watcher sees events while the run goes on, and in the end each of them once, as the owner recorded them."""
    with held_endpoint() as gate, cli.going(*RUN, "--json", OPENAI_BASE_URL=gate.url) as owner:
        assert gate.asked.wait(30)
        with cli.going("watch", "@last", "--json") as watcher:
            assert watcher.stdout is not None
            assert watcher.stderr is not None
            early = [watcher.stdout.readline() for _ in range(3)]
            assert owner.poll() is None
            gate.answer.set()
            # Through the same buffer as the lines before: `communicate` reads past it, and would lose what lies in it.
            later, said = watcher.stdout.read(), watcher.stderr.read()
            watcher.wait(30)
        told, _ = owner.communicate(timeout=30)
    assert (owner.returncode, watcher.returncode, said) == (0, 0, "")
    assert "".join(early) + later == told
    seqs = [json.loads(line)["seq"] for line in told.splitlines()]
    assert seqs == list(range(1, len(seqs) + 1))


def test_watchers_that_come_and_go_leave_the_owner_alone(cli: Cli) -> None:
    """One is interrupted and says where to go on, one is killed; the owner converges and seals all the same."""
    with held_endpoint() as gate, cli.going(*RUN, OPENAI_BASE_URL=gate.url) as owner:
        assert gate.asked.wait(30)
        with cli.going("watch", "@last") as first, cli.going("watch", "@last") as second:
            for watcher in (first, second):
                assert watcher.stdout is not None
                for _ in range(5):
                    watcher.stdout.readline()
            first.send_signal(signal.SIGINT)
            second.kill()
            _, said = first.communicate(timeout=30)
        gate.answer.set()
        told, _ = owner.communicate(timeout=30)
    assert first.returncode == 130
    assert said == "stopped watching; the run is not affected. To go on: --after 5\n"
    assert owner.returncode == 0
    assert "record     verified" in told


def test_a_run_that_is_going_on_cannot_be_resumed_elsewhere(cli: Cli) -> None:
    """It is refused in one sentence with exit code 2, and the owner goes on."""
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        with cli.going(*RUN, "--id", "mine", **url) as owner:
            assert gate.asked.wait(30)
            resumed = cli("resume", "mine", **url)
            gate.answer.set()
            owner.communicate(timeout=30)
    assert resumed.code == 2
    assert "run mine is being driven by another process" in resumed.err
    assert "Traceback" not in resumed.err
    assert owner.returncode == 0


def test_a_run_whose_process_was_killed_is_watched_resumed_and_sealed(cli: Cli) -> None:
    """After SIGKILL in the middle of a model call, `seal` makes an incomplete record and `resume` completes it."""
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        with cli.going(*RUN, "--id", "dead", **url) as owner:
            assert gate.asked.wait(30)
            owner.kill()
            owner.wait()
        sealed = cli("seal", "dead")
        assert sealed.code == 0
        assert "state      unfinished" in sealed.out
        gate.answer.set()
        resumed = cli("resume", "dead", **url)
    assert resumed.code == 0
    assert "record     verified" in resumed.out
