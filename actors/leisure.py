"""Leisure: what can wait is done in the moments in which the loop would sleep, such as while a disk syncs.

Only for pure work whose result somebody would otherwise have to wait for later: to leave an offer out must cost time and
nothing else. So offers are few and may be dropped, and whoever needs a result does the work itself if nobody has yet.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Final, final

import trio

# A disk syncs for about as long. A commit's thread that comes back has to wait for the interpreter while the loop works.
_BUDGET: Final = 0.0001  # seconds
_MOST: Final = 64


def offer(work: Callable[[], object]) -> None:
    """Have some work done before the loop next sleeps, or never. The newest comes first, as its result is needed first.

    Args:
        work: Does it, in some microseconds. It neither waits nor wakes a task; what it raises it must raise again for whoever
            needs its result, since here it is left aside.
    """
    try:
        offers = _OFFERS.get()
    except LookupError:
        # Behind all instruments that are there by now, so that a log's commit is handed to the disk first.
        leisure = _Leisure()
        offers = leisure.offers
        _OFFERS.set(offers)
        trio.lowlevel.add_instrument(leisure)
    offers.append(work)


_Offers = deque[Callable[[], object]]
_OFFERS: Final[trio.lowlevel.RunVar[_Offers]] = trio.lowlevel.RunVar("offers")


@final
class _Leisure(trio.abc.Instrument):
    """Does what was offered, for a moment, whenever the loop is about to sleep."""

    def __init__(self) -> None:
        self.offers: _Offers = deque(maxlen=_MOST)

    def before_io_wait(self, timeout: float) -> None:
        if timeout > 0 and self.offers:
            end = time.perf_counter() + _BUDGET
            while self.offers and time.perf_counter() < end:
                with contextlib.suppress(Exception):
                    self.offers.pop()()
