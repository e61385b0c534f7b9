"""The live view on a real pseudo-terminal: it paints, follows keys and sizes, gives the terminal back, and holds up no run."""

import os
import signal
import sys
import termios
from contextlib import suppress
from typing import TextIO

import pytest
import trio
import trio.testing

from affidavit.actors.deltas import LiveText, LiveTexts
from affidavit.actors.errors import ApprovalRefused
from affidavit.actors.events import Event, Kind
from affidavit.tools.console.keymap import Decide
from affidavit.tools.console.live import open_live_view
from affidavit.tools.console.screen import Screen
from affidavit.tools.console.ui import Ui
from tests.tools.console.ptys import PATIENCE, open_pty
from tests.tools.console.snapshots import text_of
from tests.tools.console.streams import ARGS, RUN, finished, hostile, numbered, waiting


async def test_the_screen_shows_the_frame_and_is_given_back() -> None:
    """What the terminal shows is the very frame of the regions; afterwards all modes are as they were."""
    with open_pty() as pty:
        before = termios.tcgetattr(pty.slave)
        async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave) as live:
            for event in numbered(waiting()):
                await live.tell(event)
            glass = await pty.shows("waits for you")
            wanted = text_of(Screen().frame(live.view, Ui(owns=True), 80, 24))
            await pty.until(lambda glass: glass.text + "\n" == wanted)
            assert {"?1049", "?2004"} <= glass.modes
            assert termios.tcgetattr(pty.slave) != before
        await pty.until(lambda glass: "?1049" not in glass.modes)
        assert {"?25", "?7"} <= glass.modes
        assert "?2004" not in glass.modes
        assert termios.tcgetattr(pty.slave) == before


async def test_a_hostile_run_sends_the_terminal_nothing_but_frames() -> None:
    """Text of a model or a tool never reaches the terminal as a control: the glass knows the view's own alone."""
    with open_pty(120, 40) as pty:
        async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave) as live:
            for event in numbered(hostile()):
                await live.tell(event)
            await pty.shows("\\x1b]0;owned")
            pty.type(b"t")
            await pty.shows("▾")


async def test_the_size_may_change_at_any_time() -> None:
    """After a resize the frame fills the new size, and nothing of the old one is left."""
    with open_pty() as pty:
        async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave) as live:
            for event in numbered(finished()):
                await live.tell(event)
            await pty.shows("converged")
            for size in ((120, 40), (30, 8), (80, 24)):
                pty.resize(*size)
                signal.raise_signal(signal.SIGWINCH)
                await pty.fills(*size)


async def test_a_person_decides_by_keys() -> None:
    """`a` and `y` hand over the call with the digest that was shown; what came of it is told on the bottom line."""
    asked = []

    async def decide(wanted: Decide) -> str:
        await trio.lowlevel.checkpoint()
        asked.append(wanted)
        if not wanted.approved:
            raise ApprovalRefused("approver", "bob may not decide about it")
        return "call 7 approved by alice"

    with open_pty() as pty:
        async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave) as live:
            live.attend(LiveTexts().subscribe(), decide)
            for event in numbered(waiting()):
                await live.tell(event)
            await pty.shows("a approve")
            # At once: the arguments were not to be seen when `y` was typed, so it counts for nothing.
            pty.type(b"ay")
            await pty.shows("with exactly these arguments")
            await trio.testing.wait_all_tasks_blocked()
            assert asked == []
            pty.type(b"y")
            await pty.shows("call 7 approved by alice")
            pty.type(b"rno\r")
            await pty.shows("nothing was decided: bob may not decide about it")
    assert asked == [
        Decide(7, approved=True, args=ARGS),
        Decide(7, approved=False, args=ARGS, reason="no"),
    ]


async def test_stopping_is_ctrl_c() -> None:
    """`q` twice does what Ctrl-C does: the process gets the signal."""
    with open_pty() as pty, trio.open_signal_receiver(signal.SIGINT) as signals:
        async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave):
            pty.type(b"q")
            await pty.shows("q again parks the run")
            pty.type(b"q")
            with trio.fail_after(PATIENCE):
                assert await anext(signals) == signal.SIGINT


def fill(terminal: int) -> None:
    """Write to a terminal until it takes nothing more."""
    filler = os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(filler, b"x" * 4096):
            pass
    os.close(filler)


async def test_a_terminal_that_nobody_reads_holds_up_nothing() -> None:
    """The terminal takes nothing more; events are folded all the same, one frame waits, and leaving gives the modes back."""
    with open_pty(300, 90) as pty:
        before = termios.tcgetattr(pty.slave)
        fill(pty.slave)
        with trio.fail_after(PATIENCE):
            async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave) as live:
                for event in numbered(finished() * 200):
                    await live.tell(event)
                    await trio.lowlevel.checkpoint()
                assert live.view.seq == 200 * len(finished())
        assert termios.tcgetattr(pty.slave) == before


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt()])
async def test_whatever_ends_it_the_terminal_is_given_back(error: BaseException) -> None:
    """An error of the run leaves as itself, and the terminal is as before."""
    with open_pty() as pty:
        before = termios.tcgetattr(pty.slave)

        async def fail() -> None:
            async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave):
                await pty.shows("affidavit")
                raise error

        with pytest.raises(type(error)):
            await fail()
        await pty.until(lambda glass: "?1049" not in glass.modes)
        assert termios.tcgetattr(pty.slave) == before


async def test_a_terminal_that_goes_away_ends_the_painting_alone() -> None:
    """The other end is closed: the run goes on, and the view ends without an error."""
    master, slave = os.openpty()
    with trio.fail_after(PATIENCE):
        async with open_live_view(RUN, owns=True, out=slave, keys=slave) as live:
            os.close(master)
            for event in numbered(finished()):
                await live.tell(event)
            await trio.testing.wait_all_tasks_blocked()
            assert live.view.status.terminal
    os.close(slave)


def text_of_terminal(terminal: int) -> TextIO:
    """A text stream to a terminal."""
    return os.fdopen(os.dup(terminal), "w")


async def test_what_is_said_meanwhile_is_said_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning does not break into the screen: its line is shown at the bottom, and all of it stands below afterwards."""
    with open_pty() as pty:
        with text_of_terminal(pty.slave) as errors:
            monkeypatch.setattr(sys, "stderr", errors)
            async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave):
                await pty.shows("affidavit")
                print("affidavit: warning: the \x1b[2J disk is slow", file=sys.stderr)
                await pty.shows("warning: the \\x1b[2J disk is slow")
            assert sys.stderr is errors
        assert "?1049" in pty.glass.modes
        await pty.until(lambda glass: "?1049" not in glass.modes)


async def test_an_answer_in_the_making_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces appear as they come, and give way to the recorded answer."""

    async def decide(_: Decide) -> str:
        raise AssertionError

    texts = LiveTexts()
    with open_pty() as pty:
        async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave) as live:
            live.attend(texts.subscribe(), decide)
            await trio.testing.wait_all_tasks_blocked()
            texts.show(LiveText("", 1, 1, False, 0, "the first half"))
            await pty.shows("the first half▌")
            await live.tell(Event(Kind.ASSISTANT, seq=1, text="the first half and the second"))
            await pty.shows("the first half and the second")
            assert "▌" not in pty.glass.text


async def test_a_view_that_fails_takes_no_run_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the view's own gives the terminal back and says so; the block around the run goes on."""

    def frame(*_: object) -> None:
        raise ValueError("a defect of the screen")

    monkeypatch.setattr(Screen, "frame", frame)
    with open_pty() as pty:
        before = termios.tcgetattr(pty.slave)
        async with open_live_view(RUN, owns=True, out=pty.slave, keys=pty.slave) as live:
            await trio.testing.wait_all_tasks_blocked()
            assert live.has_failed
            assert termios.tcgetattr(pty.slave) == before
            await live.tell(Event(Kind.ASSISTANT, seq=1, text="still told"))
            assert live.view.seq == 1
