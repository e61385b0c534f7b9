"""SIGKILL at every append of a conversation that goes on after its end and is forked: nothing is said or done twice (G4, S9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
import trio

from affidavit.actors.errors import StoreUnusable
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.evidence import export
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.crypto import Keyring, verify_record
from tests.actors.mission_kit import RUN, SIGNER, check_record
from tests.crash.talking_victim import ASKED, FORKED, SAID
from tests.crash.test_kill import KILLED, Made, Victims, lines, made
from tests.crash.victim import Order

KEYRING = Keyring()
KEYRING.add(SIGNER.kid, SIGNER.public_key)
ROUNDS = [Kind.SESSION_STARTED, Kind.CONVERGED, Kind.USER_MESSAGE, Kind.CONVERGED]


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    """One forking program for all tests."""
    program = Victims("tests.crash.talking_victim")
    yield program
    program.close()


def left(folder: Path) -> dict[str, tuple[Event, ...]]:
    """What stands on the records of both runs; nothing where there is no store yet."""

    async def read() -> dict[str, tuple[Event, ...]]:
        async with open_sqlite_reader(folder / "store.sqlite3") as log:
            return {run_id: await history(log, run_id) for run_id in (RUN, FORKED)}

    try:
        return trio.run(read)
    except StoreUnusable:
        return {RUN: (), FORKED: ()}


def check_end(folder: Path, before: dict[str, tuple[Event, ...]]) -> None:
    """Check both records at their end: what stood before stands, said once, paid at most once, sealed whole, and verified."""
    after = left(folder)
    for run_id, events in after.items():
        assert events[: len(before[run_id])] == before[run_id]
        check_record(events)
    told = [event.kind for event in after[RUN] if event.kind in {*ROUNDS, *TERMINAL_KINDS}]
    assert told == ROUNDS
    (said,) = (event for event in after[RUN] if event.kind == Kind.USER_MESSAGE)
    assert (said.text, said.causation_id, said.principal) == (SAID, ASKED, "ada")
    assert max(Counter(lines(folder / "effects")).values()) == 1
    assert [event.text for event in after[FORKED] if event.kind in TERMINAL_KINDS] == [
        "Nothing more is owed."
    ]
    assert [trio.run(is_complete, folder, run_id) for run_id in (RUN, FORKED)] == [True, True]


async def is_complete(folder: Path, run_id: str) -> bool | None:
    """Export a run's record and verify it at L4."""
    file = BytesIO()
    async with open_sqlite_reader(folder / "store.sqlite3") as log:
        await export(log, run_id, file)
    return verify_record(file.getvalue(), KEYRING).complete


@pytest.fixture(scope="module")
def moments(victims: Victims, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """How many appends and commits all of it takes when nothing is killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert victims.run(Order(str(folder))) == 0
    check_end(folder, {RUN: (), FORKED: ()})
    assert Counter(lines(folder / "effects")) == Counter(["pay-1", "pay-2"])
    return made(folder)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["after", "written"])
def test_killed_at_each_append_in_turn_a_conversation_is_finished(
    moment: str, victims: Victims, moments: Made, memory_disk: Path
) -> None:
    """For every append n: the process is killed there, and another one brings the run and its fork to their ends."""
    for number in range(1, moments[moment] + 1):
        folder = memory_disk / str(number)
        folder.mkdir()
        assert victims.run(Order(str(folder), moment, number)) == KILLED
        before = left(folder)
        assert victims.run(Order(str(folder))) == 0
        check_end(folder, before)


def test_killed_right_after_the_words_they_are_answered_and_not_said_again(
    victims: Victims, memory_disk: Path
) -> None:
    """The one append that opens the second round, found by trying each; with every run of the tests."""
    for number in range(8, 40):
        folder = memory_disk / str(number)
        folder.mkdir()
        assert victims.run(Order(str(folder), "after", number)) == KILLED
        before = left(folder)
        if before[RUN] and before[RUN][-1].kind == Kind.USER_MESSAGE:
            assert victims.run(Order(str(folder))) == 0
            check_end(folder, before)
            return
    raise AssertionError("nothing was said")
