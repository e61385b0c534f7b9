"""The first program in a sandbox runs nothing unless it is told everything: whoever would tell it may have died."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from affidavit.actors.containment import inside

PLAN = {
    "limits": {"RLIMIT_NOFILE": 64},
    "listen": False,
    "folder": None,
    "command": ["/bin/sh", "-c", "echo ran; ulimit -n"],
}


def start(
    told: list[bytes], *, listen: bool = False
) -> tuple[subprocess.CompletedProcess[str], list[bytes], int]:
    """Run it, tell it these lines, waiting for its answer after the first, and hang up."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        argv = [sys.executable, "-I", "-S", inside.__file__, str(theirs.fileno())]
        with subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, text=True) as process:
            theirs.close()
            answers: list[bytes] = []
            descriptors = 0
            for line in told:
                ours.sendall(line)
                if not answers and line.endswith(b"\n"):
                    words, handed, _, _ = socket.recv_fds(ours, 16, 1)
                    answers.append(words)
                    descriptors = len(handed)
            ours.shutdown(socket.SHUT_WR)
            out, _ = process.communicate()
            return subprocess.CompletedProcess(argv, process.returncode, out), answers, descriptors


def test_it_becomes_the_command_when_told_all() -> None:
    """With the limits and the environment that it was told."""
    done, answers, _ = start([json.dumps(PLAN).encode() + b"\n", b'{"PATH": "/usr/bin"}\n'])
    assert (done.returncode, done.stdout, answers) == (0, "ran\n64\n", [b"ready"])


@pytest.mark.parametrize(
    "told",
    [[], [json.dumps(PLAN).encode() + b"\n"], [json.dumps(PLAN).encode() + b"\n", b'{"PATH": "/usr/bin"}']],
    ids=["nothing", "the plan alone", "half of the environment"],
)
def test_it_runs_nothing_without_the_word_to_go(told: list[bytes]) -> None:
    """A conversation that breaks off, wherever, ends it."""
    done, _, _ = start(told)
    assert (done.returncode, done.stdout) == (inside.NOT_RUNNABLE, "")


def test_a_listener_comes_with_the_answer() -> None:
    """Only when it was asked for."""
    for listen in (True, False):
        plan = json.dumps({**PLAN, "listen": listen}).encode() + b"\n"
        assert start([plan])[2] == int(listen)


def test_it_holds_nothing_but_the_standard_library() -> None:
    """Its text is all of it: nothing of ours is there in a sandbox."""
    for name in ("inside", "outside", "reaper"):
        text = Path(inside.__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        assert "import affidavit" not in text
        assert "from affidavit" not in text
