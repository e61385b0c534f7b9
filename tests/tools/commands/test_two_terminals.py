"""Two terminals: one process drives a run, another follows it over the same SQLite file and disturbs nobody."""

import json
import os
import select
import signal
import subprocess

from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import COMMAND, Cli
from tests.tools.console.ptys import open_pty

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


def test_seal_says_on_a_terminal_whom_it_waits_for(cli: Cli) -> None:
    """While the owner stands still, it says what is waited for and for how long; nothing is left of that once it has sealed."""
    with held_endpoint() as gate, cli.going(*RUN, "--id", "mine", OPENAI_BASE_URL=gate.url) as owner:
        assert gate.asked.wait(30)
        owner.send_signal(signal.SIGSTOP)
        with open_pty() as pty, sealing(cli, "mine", pty.slave) as asked:
            seen = bytearray()
            while b" of at most 30 s" not in seen:
                assert select.select([pty.master], [], [], 60)[0], seen
                seen += os.read(pty.master, 65_536)
            assert b"waiting for the process that drives the run: " in seen
            owner.send_signal(signal.SIGCONT)
            out, _ = asked.communicate(timeout=60)
            gone = os.read(pty.master, 65_536)
        gate.answer.set()
        owner.communicate(timeout=30)
    assert (asked.returncode, owner.returncode) == (0, 0)
    assert out.startswith("run mine\n")
    assert gone.rstrip().endswith(b"\x1b[2K")


def sealing(cli: Cli, run_id: str, terminal: int) -> "subprocess.Popen[str]":
    """`affidavit seal` with its standard error on a terminal."""
    return subprocess.Popen(
        [COMMAND, "seal", run_id],
        cwd=cli.home,
        env=cli.environment(TERM="xterm"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )


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
