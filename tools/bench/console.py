"""The live view beside no view: a scripted run that makes 2,000 events a second, shown on a pseudo-terminal or not at all.

The run is a real one through the waist, on a log in memory, its tool keeping the pace. A process of its own reads the terminal,
as a terminal emulator would. The same without a pace shows what the view costs where nothing else limits the run.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, final

import trio
from pydantic import BaseModel

from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import Run, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.typed import TypedTool
from affidavit.tools.bench.figures import Figures
from affidavit.tools.bench.rotation import ratio, rotate
from affidavit.tools.console.live import open_live_view

EVENTS: Final = 4_000
PACE: Final = 2_000
_ROUNDS: Final = 7
# What one tool call comes to be on the record, and how many a turn asks for.
_PER_CALL: Final = 4
_CALLS: Final = 50
_SIZE: Final = (120, 40)
_RUN: Final = "run"
_WORDS: Final = "I look at the **ledger**, line by line:\n\n- it balances\n- it is `complete`\n"
_RESULT: Final = "The quick brown fox jumps over the lazy dog, and the ledger balances. " * 4


class _Line(BaseModel):
    """Which line to look at."""

    number: int


@final
class _Ledger:
    """A tool that keeps a pace: it answers its nth call when the nth is due."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._calls = 0
        self._began = trio.current_time()

    async def read(self, line: _Line) -> str:
        """Answer when it is time."""
        self._calls += 1
        await trio.lowlevel.checkpoint()
        if self._pace:
            await trio.sleep_until(self._began + self._calls * _PER_CALL / self._pace)
        return _RESULT


def _script(events: int) -> str:
    turns = max(events // (_PER_CALL * _CALLS), 1)
    calls = [{"name": "read_line", "input": {"number": number}} for number in range(_CALLS)]
    asking = [{"text": _WORDS, "tool_calls": calls} for _ in range(turns)]
    return json.dumps({"turns": [*asking, {"text": "It balances."}]})


async def _shown(run: Run, terminal: int) -> None:
    async with open_live_view(_RUN, owns=True, out=terminal, keys=terminal) as view:
        async with run.session.subscribe() as events:
            async for event in events:
                await view.tell(event)
        await run.closed()


async def _drive(events: int, pace: float, terminal: int | None) -> float:
    """Drive one run to its end, and return seconds per event."""
    ledger = _Ledger(pace)
    tools = Toolbox([TypedTool("read_line", "Read a line.", _Line, ledger.read, idempotent=True)])
    script = ScriptModel.from_text(_script(events))
    log = MemoryLog()
    began = time.perf_counter()
    async with open_host(log) as host:
        spec = GoalSpec("Balance the ledger.", max_steps=events)
        run = await host.submit(spec, MissionConfig(script, tools), id=_RUN)
        if terminal is None:
            await run.closed()
        else:
            await _shown(run, terminal)
        return (time.perf_counter() - began) / run.session.projection.events


@contextmanager
def _terminal() -> Iterator[int]:
    """Give a pseudo-terminal that another process reads as fast as it can."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _SIZE[1], _SIZE[0], 0, 0))
    with subprocess.Popen(
        ["/bin/cat"], stdin=master, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as reader:
        os.close(master)
        try:
            yield slave
        finally:
            os.close(slave)
            reader.kill()


def run(events: int | None = None) -> Figures:
    """Measure a scripted run with the view and without.

    Args:
        events: How many events a run has, about.
    """
    events = events or EVENTS
    with _terminal() as terminal:
        cases = {
            f"{name}{suffix}": partial(trio.run, _drive, events, pace, where)
            for name, pace in (("paced", float(PACE)), ("free", 0.0))
            for suffix, where in (("", None), ("_shown", terminal))
        }
        for case in cases.values():
            case()
        took = rotate(cases, _ROUNDS)
    median = {name: sorted(values)[len(values) // 2] for name, values in took.items()}
    return Figures(
        ratios={"run_slowdown": ratio(took["paced_shown"], took["paced"])},
        figures={
            "events_per_s": 1 / median["paced"],
            "shown_events_per_s": 1 / median["paced_shown"],
            "unpaced_slowdown": ratio(took["free_shown"], took["free"]),
            "unpaced_events_per_s": 1 / median["free"],
            "unpaced_shown_events_per_s": 1 / median["free_shown"],
        },
    )
