"""Which guard a piece of work goes out through: that of the goal it is done for, set by the mission around each action.

A tool or a model is made once and serves many runs, so it cannot hold the guard of one; it asks for it here. The work's own tasks
and threads inherit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from affidavit.actors.netguard.guard import Guard

_CURRENT: Final[ContextVar[Guard | None]] = ContextVar("affidavit-guard", default=None)


@contextmanager
def going_out_through(guard: Guard) -> Iterator[None]:
    """Have everything that is done in the block, and in tasks started from it, find this guard."""
    token = _CURRENT.set(guard)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def guard_in_force() -> Guard | None:
    """Return the guard of the work that asks; None outside of any run."""
    return _CURRENT.get()


def current_guard() -> Guard:
    """Return the guard of the work that asks.

    Raises:
        RuntimeError: It is not done for any run, so there is no policy by which it may connect and no record for it.
    """
    guard = guard_in_force()
    if guard is None:
        raise RuntimeError("nothing may connect outside of a run's own work")
    return guard
