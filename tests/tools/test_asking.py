"""Asking the owner of a run: what is shown while it is waited for, and when that is gone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from affidavit.actors.errors import RunOwned
from affidavit.actors.events import Kind
from affidavit.actors.inbox import Outcome, request_event
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.tools import asking
from affidavit.tools.asking import OwnerSilent, take_or_ask
from affidavit.tools.place import Place

REQUEST = request_event(Kind.REQUEST_SEAL, principal="ada", reason="")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said to be waited for just now, and for how long at most; on a run that has an owner at first."""
    now: list[str] = []

    @contextmanager
    def open_wait(what: str, most: float) -> Iterator[None]:
        now.append(f"{what}, {most:g} s")
        try:
            yield
        finally:
            now.clear()

    monkeypatch.setattr(asking, "open_wait", open_wait)
    monkeypatch.setattr(asking, "_LOOKS", 1)
    return now


async def place_of_a_store(folder: Path) -> Place:
    """A store without runs."""
    place = Place(folder, named=True)
    async with open_sqlite_log(place.runs):
        pass
    return place


async def test_what_is_waited_for_is_shown_until_the_run_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: list[str]
) -> None:
    """It says so while the owner is looked for, and is gone once a passphrase may be asked for on that terminal."""
    looks: list[list[str]] = []

    async def is_owned(*_: object) -> bool:
        looks.append(list(shown))
        return len(looks) == 1

    taken: list[list[str]] = []

    async def take() -> None:
        taken.append(list(shown))
        raise _Taken

    monkeypatch.setattr(asking, "is_owned", is_owned)
    with pytest.raises(_Taken):
        await take_or_ask(await place_of_a_store(tmp_path), "mine", REQUEST, take, needs_signer=True)
    assert looks == [[], ["the process that drives the run, 30 s"]]
    assert taken == [[]]


async def test_it_is_gone_when_the_owner_stays_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: list[str]
) -> None:
    """The sentence that says so stands alone on the terminal."""

    async def is_owned(*_: object) -> bool:
        return True

    async def take() -> None:
        raise RunOwned("never called")

    monkeypatch.setattr(asking, "is_owned", is_owned)
    monkeypatch.setattr(asking, "OWNER_GRACE", 0.0)
    with pytest.raises(OwnerSilent):
        await take_or_ask(await place_of_a_store(tmp_path), "mine", REQUEST, take)
    assert shown == []


async def test_nothing_is_shown_where_nobody_is_waited_for(tmp_path: Path, shown: list[str]) -> None:
    """A run that nobody drives is taken at once, and what takes it shows what it does itself."""
    seen: list[list[str]] = []

    async def take() -> None:
        seen.append(list(shown))

    answer = await take_or_ask(await place_of_a_store(tmp_path), "mine", REQUEST, take)
    assert (answer.outcome, seen) == (Outcome.DONE, [[]])


class _Taken(Exception):
    """The run was taken."""
