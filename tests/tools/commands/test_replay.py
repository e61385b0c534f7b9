"""`replay`: at once or at a speed, whole or up to an event, for people and for programs."""

from __future__ import annotations

import json

import pytest

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import NANOSECONDS
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.stream import Stream
from affidavit.tools.commands.replay import Replay
from affidavit.tools.output import Output
from affidavit.tools.pace import Pace
from affidavit.tools.terminal import Style
from tests.actors.fakes import JumpingClock
from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import Done, lines_that_begin
from tests.tools.test_pace import Waiting


def replayed(finished: Finished, *words: object) -> Done:
    """What `replay` says of the run that converged."""
    return finished.cli("replay", "converged-1", *words, "--store", finished.store, AFFIDAVIT_PASSPHRASE=None)


def test_a_prefix_is_shown_as_if_no_more_were_known(finished: Finished) -> None:
    """`--at SEQ` shows events 1 to SEQ and what they add up to, and nothing of what came later."""
    whole, part = replayed(finished), replayed(finished, "--at", 3)
    lines = part.out.splitlines()
    assert part.code == 0
    assert lines[:3] == whole.out.splitlines()[:3]
    assert lines[3] == "run converged-1"
    assert lines_that_begin(part.out, "state      unfinished")
    assert lines_that_begin(part.out, "record     recording, sealed 0/3")


def test_a_prefix_as_json_ends_with_the_status(finished: Finished) -> None:
    """One event a line, and then one object with the one key `status`; without `--at` there are events alone."""
    part = [json.loads(line) for line in replayed(finished, "--at", 3, "--json").out.splitlines()]
    whole = [json.loads(line) for line in replayed(finished, "--json").out.splitlines()]
    assert part[:3] == whole[:3]
    (status,) = part[3:]
    assert status.keys() == {"status"}
    assert (status["status"]["at"], status["status"]["events"], status["status"]["terminal"]) == (3, 3, False)
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--at", "99999"), "events: name one from 1 to "),
        (("--at", "0"), "--at"),
        (("--speed", "0"), "--speed"),
        (("--speed", "-1"), "--speed"),
        (("--speed", "inf"), "--speed"),
    ],
)
def test_what_cannot_be_meant(finished: Finished, words: tuple[str, ...], sentence: str) -> None:
    """An event that is not there, and a speed that is none, are refused in one sentence, and nothing is shown."""
    done = replayed(finished, *words)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


async def test_the_pauses_of_a_run_are_kept_and_its_children_are_a_tree(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each event is waited for before it is shown; the status of any prefix holds the children known by then."""
    log, clock, wall = MemoryLog(), Waiting(), JumpingClock(0)
    stream = Stream(log, MemoryBus(), "run", wall)
    for event in (
        Event(Kind.SESSION_STARTED, text="Pay"),
        Event(Kind.CHILD_SPAWNED, goal="run", child="read", text="Read the ledger"),
        Event(Kind.CHILD_COMPLETED, child="read", result="12"),
    ):
        await stream.append(event)
        wall.now += 2 * NANOSECONDS
    shown = Replay("run", Output(), Style(), Pace(clock, 2), as_json=False)
    await shown.play(log, 2)
    assert len(capfd.readouterr().out.splitlines()) == 2
    assert clock.slept == [1.0]
    lines = list(shown.status_lines())
    assert lines[-1] == "- read: running, 0 turns, recording: Read the ledger"
    (child,) = json.loads(json.dumps(shown.status_json(2)))["status"]["fanout"]
    assert (child["id"], child["state"]) == ("read", "running")
