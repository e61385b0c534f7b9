"""SIGKILL between a model's thinking and the result of the tool it called: the next process asks with the very same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from affidavit.actors.conversation import fold
from affidavit.actors.errors import StoreUnusable
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from tests.actors.mission_kit import RUN, check_record
from tests.actors.models.dialects import ANTHROPIC
from tests.actors.models.test_anthropic import SIGNATURE, stream, thinking_turn
from tests.crash.test_kill import KILLED, Victims
from tests.crash.victim import Order
from tests.loopback import serving

# The arguments do not survive being read and written again.
THINKS = stream(*thinking_turn('{"n": 1.10, "path": "\\u00fc"}'))
ENDS = "".join(ANTHROPIC.events("All is looked at.", ())).encode()


@dataclass(frozen=True)
class Endpoint:
    """An endpoint on loopback that thinks until it is shown a tool's result.

    Attributes:
        url: Its address.
        bodies: What it was asked, oldest first.
    """

    url: str
    bodies: list[bytes]

    def taken(self) -> list[bytes]:
        """What it was asked since the last time."""
        taken, self.bodies[:] = list(self.bodies), []
        return taken


@contextmanager
def served() -> Iterator[Endpoint]:
    """Serve the endpoint from a thread, so that it outlives every process that asks it."""
    bodies: list[bytes] = []

    def answer(body: bytes) -> bytes:
        bodies.append(body)
        return ENDS if b'"tool_result"' in body else THINKS

    with serving(answer) as url:
        yield Endpoint(url, bodies)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    """One endpoint for all processes."""
    with served() as made:
        yield made


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    """One forking program for all tests."""
    program = Victims("tests.crash.thinking_victim")
    yield program
    program.close()


def events_of(folder: Path) -> tuple[Event, ...]:
    """What stands on the record, none where there is no store yet."""

    async def read() -> tuple[Event, ...]:
        async with open_sqlite_reader(folder / "store.sqlite3") as log:
            return await history(log, RUN)

    try:
        return trio.run(read)
    except StoreUnusable:
        return ()


def place(folder: Path, endpoint: Endpoint) -> Path:
    """A new folder whose processes ask this endpoint."""
    folder.mkdir()
    (folder / "url").write_text(endpoint.url, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def undisturbed(
    victims: Victims, endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bytes, bytes]:
    """The two requests of a run that nobody kills."""
    endpoint.taken()
    folder = place(tmp_path_factory.mktemp("undisturbed") / "run", endpoint)
    assert victims.run(Order(str(folder))) == 0
    first, second = endpoint.taken()
    assert first.endswith(b"]}")
    assert second.startswith(first[:-2])
    assert SIGNATURE.encode() in second
    return first, second


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after", "committed"])
def test_killed_between_thinking_and_result_a_run_asks_with_the_same_bytes(
    moment: str,
    victims: Victims,
    endpoint: Endpoint,
    undisturbed: tuple[bytes, bytes],
    memory_disk: Path,
) -> None:
    """At every append: what the next process sends is what the undisturbed run sent, thinking and signature byte for byte."""
    first, second = undisturbed
    between = 0
    number, ended = 0, KILLED
    while ended == KILLED:
        number += 1
        folder = place(memory_disk / f"{moment}-{number}", endpoint)
        ended = victims.run(Order(str(folder), moment, number))
        before, asked = events_of(folder), endpoint.taken()
        kinds = [event.kind for event in before]
        assert asked == [first, second][: len(asked)]
        assert victims.run(Order(str(folder))) == 0
        answers = kinds.count(Kind.ASSISTANT)
        # A process that was killed before the answer stood asks again, with the same bytes too.
        assert endpoint.taken() == [first, second][answers:]
        between += answers == 1
        after = events_of(folder)
        check_record(after)
        assert after[: len(before)] == before
        assert fold(after).last_text == "All is looked at."
    assert number > 8
    # The answer, the admission of the tool, its end with the result, and the next admission are appends of their own.
    assert between >= 3
