"""What an admitted action is given and what comes of it: its permit, its work, how it ended, and what of its time counts.

Values alone; `affidavit.actors.dispatch` admits, and records the end.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import trio

from affidavit.actors.amounts import NOTHING, Amounts
from affidavit.actors.deciders.port import Action
from affidavit.actors.events import Event

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Permit:
    """What an admitted action may do.

    Attributes:
        call: Its correlation id.
        seconds: How long its work may take; None for as long as it likes.
    """

    call: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """How an action ended.

    Attributes:
        value: What the caller gets.
        events: What the action produced, recorded in one append with its end.
        error_class: Fault class if it failed, else empty.
        error_code: A finer code.
        used: What it used of the budgets; the waist itself adds the time.
    """

    value: T
    events: tuple[Event, ...] = ()
    error_class: str = ""
    error_code: str = ""
    used: Amounts = NOTHING


Work = Callable[[Permit], Awaitable[Done[T]]]


def allowed_seconds(action: Action) -> float | None:
    """Return how long an action's work may take; None for as long as it likes."""
    limit = action.reserve.ms or action.limit_ms
    return limit / 1000 if limit else None


def with_time(action: Action, used: Amounts, begun: float) -> Amounts:
    """Add the time to what was used, where time is budgeted: never more than was held back, since work is cut at that."""
    if not action.reserve.ms:
        return used
    elapsed = math.ceil((trio.current_time() - begun) * 1000)
    return Amounts(used.tokens, used.cost_micros, min(elapsed, action.reserve.ms))
