"""Ctrl-C, SIGTERM and a closed terminal while a command is at work: the first one stops it in good order, a second one at once.

Only the commands that wait for a run use this. The others read what there is, and simply stop.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import final

import trio

from affidavit.actors.nurseries import open_owned_nursery
from affidavit.tools.errors import INTERRUPTED, notice


@final
class Interrupts:
    """The scope that a signal cancels, and whether one did. Made by `open_interrupts`."""

    def __init__(self) -> None:
        """Use `open_interrupts`."""
        self.scope = trio.CancelScope()
        self.name = ""

    @property
    def happened(self) -> bool:
        """Whether a signal came."""
        return bool(self.name)


@asynccontextmanager
async def open_interrupts(
    first_words: Callable[[str], str], last_words: Callable[[], str]
) -> AsyncIterator[Interrupts]:
    """Listen for signals for the length of the block; what they may cancel is entered with `with interrupts.scope`.

    Args:
        first_words: Said when the first signal comes, given its name: what happens now.
        last_words: Said when a second signal ends the process: how to resume.

    Raises:
        BaseException: The body's own exception, as itself.
    """
    interrupts = Interrupts()
    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        # Under `nohup` a closed terminal is meant to be nothing.
        heard.append(signal.SIGHUP)
    with trio.open_signal_receiver(*heard) as signals:
        async with open_owned_nursery() as nursery:
            nursery.start_soon(_listen, signals, interrupts, first_words, last_words)
            yield interrupts


async def _listen(
    signals: AsyncIterator[int],
    interrupts: Interrupts,
    first_words: Callable[[str], str],
    last_words: Callable[[], str],
) -> None:
    async for number in signals:
        if interrupts.happened:
            notice(last_words())
            # The process ends here and now, as if it were killed: the store holds every recorded event, and whoever
            # resumes the run closes what it leaves open.
            os._exit(INTERRUPTED)
        interrupts.name = signal.Signals(number).name
        notice(first_words(interrupts.name))
        interrupts.scope.cancel(reason=f"{interrupts.name} was received")
