"""Lets a person choose a run from a numbered list, on a terminal or by a line of standard input."""

from __future__ import annotations

import sys
from typing import Final

from affidavit.actors.clock import SystemClock
from affidavit.actors.directory import NO_RUN, listed_runs
from affidavit.actors.event_json import format_time
from affidavit.actors.logs.sqlite_locks import is_owned
from affidavit.actors.logs.sqlite_place import resolve
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.run_info import RunInfo, RunState, run_info
from affidavit.tools.errors import UsageError, notice
from affidavit.tools.lines_in import LinesIn
from affidavit.tools.place import Place
from affidavit.tools.tables import Cell, Column, table_text
from affidavit.tools.terminal import style_of

_SHOWN: Final = 15
_HEADS: Final = (
    Column("", right=True),
    Column("STARTED (UTC)"),
    Column("STATE"),
    Column("OBJECTIVE", flexible=True),
)


async def pick(place: Place, lines: LinesIn) -> str:
    """Return the id of the run that a person chooses of the newest ones.

    Raises:
        UsageError: There is none, or none was chosen.
        LogError: The store could not be read.
    """
    found = await _newest(place)
    if not found:
        raise UsageError(NO_RUN)
    rows = [
        [
            Cell(str(number)),
            Cell(format_time(info.started)[:16].replace("T", " ") if info.started else "-"),
            Cell(str(info.state)),
            Cell(info.objective),
        ]
        for number, info in enumerate(found, 1)
    ]
    notice(table_text(style_of(sys.stderr), _HEADS, rows).rstrip())
    notice(f"Which one? 1 to {len(found)}:")
    answer = await lines.next()
    if answer is None or not answer.strip().isdecimal() or not 1 <= int(answer) <= len(found):
        raise UsageError(f"none was chosen: write a number from 1 to {len(found)}")
    return found[int(answer) - 1].id


async def _newest(place: Place) -> list[RunInfo]:
    now = SystemClock().now_ns()
    async with open_sqlite_reader(place.runs) as log:
        every = await listed_runs(log)
        lock = resolve(place.runs)
        infos = [
            await run_info(log, run, is_owned=lambda run_id: is_owned(lock, run_id), now=now)
            for run in every[:_SHOWN]
        ]
    return [info for info in infos if info.state not in {RunState.UNREADABLE, RunState.RUNNING}]
