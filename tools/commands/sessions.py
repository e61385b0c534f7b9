"""`affidavit sessions`: the runs of a store, oldest first."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from affidavit.actors.directory import RunInfo, runs
from affidavit.actors.event_json import format_time
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.tools._verify_report import plain
from affidavit.tools.errors import CONVERGED, notice
from affidavit.tools.options import AsJson, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.terminal import style_of

_OBJECTIVE = 60
_SHORTEST = 16


async def sessions(*, as_json: AsJson = False, store: Store = None) -> int:
    """List the runs of this store, oldest first; the last line is what @last means.

    For example:

      affidavit sessions
    """
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        found = await runs(log)
    output = Output()
    if as_json:
        for info in found:
            await output.line(json.dumps(_as_json(info)))
        return CONVERGED
    if not found:
        notice("this store holds no run yet")
        return CONVERGED
    for line in _table(found):
        await output.line(line)
    return CONVERGED


def _as_json(info: RunInfo) -> dict[str, object]:
    return {
        "id": info.id,
        "started": format_time(info.started),
        "state": info.state,
        "waits_for": list(info.waits_for),
        "events": info.events,
        "sealed": info.sealed,
        "tip": info.tip,
        "objective": info.objective,
    }


def _table(found: Sequence[RunInfo]) -> list[str]:
    rows = [("ID", "STARTED (UTC)", "STATE", "EVENTS", "SEALED", "OBJECTIVE")]
    rows += [
        (
            info.id,
            format_time(info.started)[:19].replace("T", " "),
            _state(info),
            str(info.events),
            f"{info.sealed}/{info.events}",
            " ".join(info.objective.split()),
        )
        for info in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    screen = style_of(sys.stdout).width
    room = _OBJECTIVE if screen is None else max(_SHORTEST, screen - sum(widths) - 2 * len(widths))
    return [_line(row, widths, room) for row in rows]


def _state(info: RunInfo) -> str:
    calls = ", ".join(map(str, info.waits_for))
    return f"waits for approval of call {calls}" if calls else info.state


def _line(row: tuple[str, ...], widths: list[int], room: int) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    objective = row[-1] if len(row[-1]) <= room else f"{row[-1][: room - 3]}..."
    return "  ".join([*cells, plain(objective)]).rstrip()
