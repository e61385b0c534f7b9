"""Where a run is shown: in the view, and line by line once the view has gone or failed; each event once."""

from collections.abc import Iterator

import pytest
import trio
import trio.testing

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.events import Event
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.stream import Stream
from affidavit.tools.console import live
from affidavit.tools.console.screen import Screen
from affidavit.tools.console.stage import TAIL, Stage
from affidavit.tools.console.terminal_modes import open_full_screen
from affidavit.tools.narrator import Narrator
from affidavit.tools.output import Output
from affidavit.tools.terminal import Style
from affidavit.tools.transcript import Transcript
from tests.tools.console.ptys import Pty, open_pty
from tests.tools.console.streams import finished


@pytest.fixture
def pty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pty]:
    """A terminal on which the stage's view is shown, in the place of the standard streams."""
    real = open_full_screen
    with open_pty() as made:
        monkeypatch.setattr(live, "open_full_screen", lambda *_: real(made.slave, made.slave))
        yield made


async def recorded() -> tuple[MemoryLog, tuple[Event, ...]]:
    """A log with a run, and its events."""
    log = MemoryLog()
    stream = Stream(log, MemoryBus(), "live-1", SystemClock())
    for event in finished():
        await stream.append(event)
    return log, await history(log, "live-1")


def stage() -> Stage:
    """A stage that prints lines to standard output."""
    return Stage(Narrator(Output(), Transcript(Style(), as_json=False)))


def numbers(printed: str) -> list[int]:
    """The seqs of the lines that were printed."""
    return [int(line[:4]) for line in printed.splitlines() if line[:4].strip().isdigit()]


async def test_the_last_events_are_left_line_by_line(pty: Pty, capfd: pytest.CaptureFixture[str]) -> None:
    """While the view is there nothing is printed; after it come the last events, and where the others are."""
    log, events = await recorded()
    shown = stage()
    async with shown.lit("live-1", live=True):
        for event in events[:10]:
            await shown.tell(event)
        await pty.shows("list_dir")
        assert capfd.readouterr().out == ""
        await shown.finish(log, "live-1")
    printed = capfd.readouterr().out
    first = len(events) - TAIL
    assert f"(events 1 to {first}: `affidavit replay live-1` shows them)" in printed
    assert numbers(printed) == list(range(first + 1, len(events) + 1))
    await pty.until(lambda glass: "?1049" not in glass.modes)
    assert "● verified" in pty.glass.last


async def test_a_view_that_fails_is_followed_by_lines(
    pty: Pty, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the fault on every event is printed, none is missing, and the fault is said."""

    def frame(*_: object) -> None:
        raise ValueError("a defect of the screen")

    monkeypatch.setattr(Screen, "frame", frame)
    log, events = await recorded()
    shown = stage()
    async with shown.lit("live-1", live=True):
        await trio.testing.wait_all_tasks_blocked()
        for event in events:
            await shown.tell(event)
        await shown.finish(log, "live-1")
    printed = capfd.readouterr()
    assert numbers(printed.out) == list(range(1, len(events) + 1))
    assert "the live view has ended" in printed.err


async def test_without_a_view_it_is_lines(capfd: pytest.CaptureFixture[str]) -> None:
    """Every event, as it comes, once."""
    log, events = await recorded()
    shown = stage()
    async with shown.lit("live-1", live=False):
        assert not shown.is_live
        for event in events[:3]:
            await shown.tell(event)
        await shown.finish(log, "live-1")
    assert numbers(capfd.readouterr().out) == list(range(1, len(events) + 1))
