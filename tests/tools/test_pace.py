"""The pace of a replay: as recorded, a share of it, or none; no test waits for it."""

from __future__ import annotations

import pytest

from affidavit.actors.clock import NANOSECONDS
from affidavit.tools.pace import LONGEST, Pace


class Waiting:
    """A clock that does not wait, and remembers for how long it should have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now_ns(self) -> int:
        return 0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def slept(speed: float | None, *times: float) -> list[float]:
    """How long is waited for events that were recorded at these seconds."""
    clock = Waiting()
    pace = Pace(clock, speed)
    for time in times:
        await pace.keep(int(time * NANOSECONDS))
    return clock.slept


@pytest.mark.parametrize(
    ("speed", "expected"), [(None, []), (1.0, [1.0, 0.5]), (2.0, [0.5, 0.25]), (0.5, [2.0, 1.0])]
)
async def test_pauses_are_those_of_the_run(speed: float | None, expected: list[float]) -> None:
    """Divided by the speed; none before the first event, and none at all without a speed."""
    assert await slept(speed, 100, 101, 101.5) == expected


async def test_a_long_pause_is_cut_and_a_clock_that_was_set_back_is_not_waited_for() -> None:
    """A night in which a call waited for a person lasts a few seconds; an event that seems older comes at once."""
    assert await slept(1, 100, 40_000, 90, 91) == [LONGEST, 1.0]
