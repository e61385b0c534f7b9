"""A bus within one process: wakes are delivered at once, in the publisher's call."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import trio

from affidavit.actors.buses.port import Waker

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


@final
class MemoryBus:
    """The reference bus. `close()` ends every subscription, as a server going away would."""

    def __init__(self) -> None:
        """Make an empty bus."""
        self._wakers: dict[str, set[_Slot]] = {}
        # The patterns with a wildcard among them: only these cost a publisher anything when they are not its own subject.
        self._wild: set[str] = set()
        self._closed = False

    def publish(self, subject: str) -> None:
        """Wake every subscriber whose pattern matches the subject. On a closed bus it does nothing."""
        if self._closed:
            return
        wild = [pattern for pattern in self._wild if matches(pattern, subject)]
        for pattern in (subject, *wild):
            for slot in list(self._wakers.get(pattern, ())):
                slot.waker.wake()

    @asynccontextmanager
    async def subscribe(self, pattern: str, waker: Waker) -> AsyncIterator[None]:
        """Deliver wakes for the pattern while the block lasts."""
        check_pattern(pattern)
        await trio.lowlevel.checkpoint()
        slot = _Slot(waker)
        self._wakers.setdefault(pattern, set()).add(slot)
        if "*" in pattern or ">" in pattern:
            self._wild.add(pattern)
        if self._closed:
            waker.bus_ended()
        try:
            yield
        finally:
            self._wakers[pattern].discard(slot)
            if not self._wakers[pattern]:
                del self._wakers[pattern]
                self._wild.discard(pattern)

    def close(self) -> None:
        """End every subscription, present and future."""
        self._closed = True
        for slots in list(self._wakers.values()):
            for slot in list(slots):
                slot.waker.bus_ended()


class _Slot:
    """One subscription; compared by identity, so that one waker may subscribe twice."""

    def __init__(self, waker: Waker) -> None:
        self.waker = waker


def check_pattern(pattern: str) -> None:
    """Check a pattern against the NATS grammar.

    Raises:
        ValueError: A token is empty or malformed, or `>` is not the last.
    """
    tokens = pattern.split(".")
    for position, token in enumerate(tokens):
        if token == "*" or (token == ">" and position == len(tokens) - 1):
            continue
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"{pattern!r} is not a subject pattern")


def matches(pattern: str, subject: str) -> bool:
    """Tell whether a subject falls under a pattern: `*` stands for one token, a final `>` for one or more."""
    wanted, given = pattern.split("."), subject.split(".")
    for position, token in enumerate(wanted):
        if token == ">":
            return len(given) > position
        if position >= len(given) or token not in ("*", given[position]):
            return False
    return len(wanted) == len(given)
