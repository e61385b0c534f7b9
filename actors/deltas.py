"""Live pieces of a model's answer, for those in the owner's process who ask: never recorded, never sealed, never waited for.

What counts is the recorded answer, whole and once. A piece is shown as soon as it is certain that no secret begins in it; a
reader that is late, or slower than the model, loses pieces and nothing else, and sees from `offset` that it did.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, final

import trio

from affidavit.actors.models.port import Delta
from affidavit.actors.secrets import Secrets, StreamScrubber

MAX_PENDING_CHARS: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class LiveText:
    """A piece of an answer in the making.

    Attributes:
        goal: The goal it is made for; empty for the run's root goal.
        turn: The turn.
        call: The model call. Another attempt at the same turn is another call, and begins anew.
        thinking: Whether it is of the model's thinking, and not of its words.
        offset: How many characters of this call's words (or thinking) came before it.
        text: The piece.
    """

    goal: str
    turn: int
    call: int
    thinking: bool
    offset: int
    text: str

    def followed_by(self, other: LiveText) -> bool:
        """Tell whether the other goes on exactly where this one ends."""
        return other == replace(self, offset=self.offset + len(self.text), text=other.text)


Show = Callable[[LiveText], None]


@final
class LiveReader:
    """One reader's view: an async iterator of pieces, joined while it was busy. Made by `LiveTexts.subscribe`."""

    def __init__(self) -> None:
        self._pending: deque[LiveText] = deque()
        self._size = 0
        self._ended = False
        self._news = trio.Event()

    def offer(self, piece: LiveText) -> None:
        """Keep a piece for the reader, and let the oldest ones go where there are too many. Never waits."""
        last = self._pending[-1] if self._pending else None
        if last is not None and last.followed_by(piece):
            self._pending[-1] = replace(last, text=last.text + piece.text)
        else:
            self._pending.append(piece)
        self._size += len(piece.text)
        while self._size > MAX_PENDING_CHARS:
            self._forget(self._size - MAX_PENDING_CHARS)
        self._news.set()

    def end(self) -> None:
        """Let the reader have what is pending, and then end."""
        self._ended = True
        self._news.set()

    def _forget(self, count: int) -> None:
        first = self._pending.popleft()
        gone = min(count, len(first.text))
        self._size -= gone
        if gone < len(first.text):
            self._pending.appendleft(replace(first, offset=first.offset + gone, text=first.text[gone:]))

    def __aiter__(self) -> AsyncIterator[LiveText]:
        """Return itself."""
        return self

    async def __anext__(self) -> LiveText:
        """Return the next piece, or wait for one.

        Cancellation: nothing is lost.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._pending:
            if self._ended:
                raise StopAsyncIteration
            self._news = trio.Event()
            await self._news.wait()
        await trio.lowlevel.cancel_shielded_checkpoint()
        piece = self._pending.popleft()
        self._size -= len(piece.text)
        return piece


@final
class LiveTexts:
    """Hands the pieces of one run on to whoever reads them just now."""

    def __init__(self) -> None:
        self._readers: list[LiveReader] = []
        self._closed = False

    def show(self, piece: LiveText) -> None:
        """Give a piece to every reader. Neither waits nor raises."""
        for reader in self._readers:
            reader.offer(piece)

    @contextmanager
    def subscribe(self) -> Iterator[LiveReader]:
        """Read the pieces that come from now on, for as long as the block lasts or the run's session is open."""
        reader = LiveReader()
        if self._closed:
            reader.end()
        self._readers.append(reader)
        try:
            yield reader
        finally:
            self._readers.remove(reader)

    def close(self) -> None:
        """End every reader."""
        self._closed = True
        for reader in self._readers:
            reader.end()


@final
class LiveFeed:
    """Turns one model call's deltas into pieces that may be shown. Its owner calls `end` once the answer is whole."""

    def __init__(self, show: Show, secrets: Secrets, *, turn: int, call: int, goal: str = "") -> None:
        """Begin an answer.

        Args:
            show: Takes the pieces.
            secrets: What must not be shown, however it is cut into deltas.
            turn: The turn.
            call: The model call.
            goal: The goal; empty for the root.
        """
        self._show = show
        self._next = {thinking: LiveText(goal, turn, call, thinking, 0, "") for thinking in (False, True)}
        self._scrubbers = {thinking: StreamScrubber(secrets) for thinking in (False, True)}

    def take(self, delta: Delta) -> None:
        """Take a delta; implements `OnDelta`."""
        # The end of thinking is certain once words come, and the other way round.
        self._release(not delta.thinking)
        self._pass_on(delta.thinking, self._scrubbers[delta.thinking].feed(delta.text))

    def end(self) -> None:
        """Show what was held back."""
        self._release(thinking=True)
        self._release(thinking=False)

    def _release(self, thinking: bool) -> None:  # noqa: FBT001  # a key, and no switch
        self._pass_on(thinking, self._scrubbers[thinking].end())

    def _pass_on(self, thinking: bool, text: str) -> None:  # noqa: FBT001  # as above
        if text:
            piece = replace(self._next[thinking], text=text)
            self._next[thinking] = replace(piece, offset=piece.offset + len(text), text="")
            self._show(piece)
