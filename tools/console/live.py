"""The live view at work: folds what it is given, paints at its own pace, and does what the keys say.

The rule: whoever tells it of an event never waits for the terminal. There is one frame on its way at most; while the terminal
does not take it, events are folded all the same, and the next frame shows them all. Painting has its share of the time at most.
"""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, final

import trio

from affidavit.actors.deltas import LiveReader
from affidavit.actors.events import Event
from affidavit.actors.nurseries import open_owned_nursery
from affidavit.tools.console.held_errors import held_errors
from affidavit.tools.console.keymap import Decide, Intent, Scroll, Stop, press, settled
from affidavit.tools.console.keys import Key, KeyReader
from affidavit.tools.console.painter import FramePainter
from affidavit.tools.console.screen import Screen
from affidavit.tools.console.terminal_modes import FullScreen, open_full_screen
from affidavit.tools.console.ui import Mode, Ui
from affidavit.tools.console.view import View, fold, fold_live
from affidavit.tools.errors import notice, sentence

_FRAME_SECONDS: Final = 1 / 12
# A frame that took so long is followed by so many times as long without one.
_REST: Final = 30
# After so long without more, what may be the beginning of a longer key is an Escape.
_ESCAPE_SECONDS: Final = 0.05
# Events that follow one another within so many seconds were at hand together.
_AT_HAND: Final = 0.001
_GATHER_SECONDS: Final = 0.02
# How long the last frame may take to get out.
_LAST_GRACE: Final = 2.0

Decider = Callable[[Decide], Awaitable[str]]
"""Has a decision recorded, and returns what to tell the person. What it raises is told in its stead."""


@final
class LiveView:
    """One run on one terminal. Made by `open_live_view`.

    Attributes:
        view: What there is to show.
        has_failed: Whether it has ended by a fault of its own; the terminal is as before then.
    """

    def __init__(self, screen: FullScreen, nursery: trio.Nursery, view: View, ui: Ui) -> None:
        """Use `open_live_view`."""
        self._nursery = nursery
        self.view = view
        self._ui = ui
        # What the terminal shows: what has been written whole.
        self._seen = ui
        self._terminal = screen
        self._layout = Screen()
        self._painter = FramePainter()
        self._decide: Decider | None = None
        self.has_failed = False
        self._told = 0.0
        self._left = False
        self._changed = trio.Event()
        # Whoever holds it has the one frame that may be on its way.
        self._painting = trio.Lock()
        self._intents, self._wanted = trio.open_memory_channel[Decide](1)
        self.release: Callable[[], None] = lambda: None

    async def tell(self, event: Event) -> None:
        """Take one event; it is shown with the next frame. Never waits for the terminal.

        Cancellation: the event has been taken.
        """
        self.fold(event)
        if trio.current_time() - self._told > _AT_HAND:
            # It had to be waited for. The next ones are let gather for a moment: to be woken for each costs more than to fold it.
            await trio.sleep(_GATHER_SECONDS)
        self._told = trio.current_time()

    def fold(self, event: Event) -> None:
        """Take one event; it is shown with the next frame. Never raises."""
        try:
            self.view = fold(self.view, event)
        except Exception as error:
            if not self.has_failed:
                self._fail(error)
        self._changed.set()

    def notice(self, text: str) -> None:
        """Show a person a line, until they press a key."""
        self._ui = replace(self._ui, notice=text)
        self._changed.set()

    def attend(self, answers: AbstractContextManager[LiveReader], decide: Decider) -> None:
        """Show answers in the making, and let a person approve and refuse, from here on."""
        self._decide = decide
        self._ui = replace(self._ui, can_decide=self._terminal.has_keys)
        self._changed.set()
        self._start(partial(self._follow_live, answers))

    def leave(self) -> None:
        """Give the terminal back now, and say what was held back. Never waits for long; may be called twice."""
        self._left = True
        self._terminal.restore()
        self.release()

    async def paint_last(self) -> None:
        """Paint what there is, so that the end has been seen, unless the terminal does not take it."""
        if not self._left:
            with trio.move_on_after(_LAST_GRACE):
                await self._paint()

    def work(self) -> None:
        """Begin to paint and to attend to keys; this ends with the block of `open_live_view`."""
        self._terminal.enter()
        for task in (self._paint_on, self._resized, self._decide_on):
            self._start(task)
        if self._terminal.has_keys:
            self._start(self._read_keys)

    def _start(self, task: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(self._fenced, task)

    async def _fenced(self, task: Callable[[], Awaitable[None]]) -> None:
        """Do a part of the work. If it fails, the view ends and the run does not."""
        try:
            await task()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.has_failed = True
        self.leave()
        notice(f"affidavit: the live view has ended: {sentence(error)}. The run goes on, line by line")

    async def _follow_live(self, answers: AbstractContextManager[LiveReader]) -> None:
        with answers as pieces:
            async for piece in pieces:
                self.view = fold_live(self.view, piece)
                self._changed.set()

    async def _paint_on(self) -> None:
        while not self._left:
            self._changed = trio.Event()
            cost = await self._paint()
            await trio.sleep(max(_FRAME_SECONDS, cost * _REST))
            await self._changed.wait()

    async def _paint(self) -> float:
        """Paint a frame, and return how many seconds it took to make."""
        async with self._painting:
            began = time.perf_counter()
            data, shown = self._frame()
            cost = time.perf_counter() - began
            try:
                await self._terminal.write(data)
                self._has_shown(shown)
            except OSError:
                # The terminal is gone; whoever drives the run is told of that by a signal.
                self._left = True
            return cost

    def _has_shown(self, shown: Ui) -> None:
        """Take note that a person sees a state, and with it how much of what they are asked about."""
        self._seen = shown
        if self._ui.asked is not None and self._ui.asked == shown.asked:
            self._ui = replace(self._ui, read=shown.read)

    def _frame(self) -> tuple[bytes, Ui]:
        """Return what paints a frame, and the state once that has been shown."""
        self._ui = settled(self._ui, self.view)
        width, height = self._terminal.size
        shown = self._layout.having_read(self.view, self._ui, width, height)
        self._ui = replace(self._ui, page=shown.page)
        return self._painter.paint(self._layout.frame(self.view, shown, width, height), width, height), shown

    async def _resized(self) -> None:
        with trio.open_signal_receiver(signal.SIGWINCH, signal.SIGCONT) as signals:
            async for number in signals:
                if number == signal.SIGCONT and not self._left:
                    # Whoever stopped it may have given the terminal to another program meanwhile.
                    self._terminal.enter()
                    self._painter.forget()
                self._changed.set()

    async def _read_keys(self) -> None:
        reader = KeyReader()
        while True:
            data = b""
            with trio.move_on_after(_ESCAPE_SECONDS if reader.is_unsure else float("inf")) as waited:
                data = await self._terminal.read()
            if waited.cancelled_caught:
                self._press(reader.flush())
            elif not data:
                return
            else:
                self._press(reader.feed(data))

    def _press(self, keys: list[Key]) -> None:
        for key in keys:
            # Against what the run waits for now, and not against what it waited for when the last frame was painted.
            self._ui = settled(self._ui, self.view)
            if self._ui.mode is Mode.APPROVE and (self._seen.asked, self._seen.page) != (
                self._ui.asked,
                self._ui.page,
            ):
                # Typed, or pasted on a terminal that does not tell, before this page of the arguments was to be seen.
                continue
            self._ui, intent = press(self._ui, key, self.view)
            self._carry_out(intent)
        self._changed.set()

    def _carry_out(self, intent: Intent) -> None:
        match intent:
            case Scroll(by):
                size = self._layout.transcript_size(self.view, self._ui, *self._terminal.size)
                anchor = self._layout.transcript.scrolled(self.view, self._ui, *size, by)
                self._ui = replace(self._ui, anchor=anchor)
            case Stop():
                # The very way that Ctrl-C goes.
                signal.raise_signal(signal.SIGINT)
            case Decide():
                try:
                    self._intents.send_nowait(intent)
                except trio.WouldBlock:
                    self.notice("the last decision is still being recorded")
            case None:
                pass

    async def _decide_on(self) -> None:
        async for intent in self._wanted:
            if self._decide is None:
                continue
            try:
                self.notice(await self._decide(intent))
            except Exception as error:
                # Whatever hindered it, the person is told, and the call goes on waiting.
                self.notice(f"nothing was decided: {sentence(error)}")


@asynccontextmanager
async def open_live_view(run_id: str, *, owns: bool, out: int = 1, keys: int = 0) -> AsyncIterator[LiveView]:
    """Show a live view for the length of the block; the terminal is as before at its end, whatever ends it.

    Args:
        run_id: The run.
        owns: Whether this process drives the run, so that stopping parks it.
        out: A descriptor of the terminal to paint on.
        keys: A descriptor of the terminal to read keys from.

    Raises:
        OSError: The terminal cannot be opened by its name.
        BaseException: The body's own exception, as itself.

    Cancellation: the terminal is given back first.
    """
    with open_full_screen(out, keys) as screen:
        async with open_owned_nursery() as nursery:
            live = LiveView(screen, nursery, View(run_id), Ui(owns=owns))
            with held_errors(live.notice) as release:
                live.release = release
                live.work()
                try:
                    yield live
                    await live.paint_last()
                finally:
                    live.leave()
