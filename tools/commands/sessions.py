"""`affidavit sessions`: the runs of a store as a table, newest first, and those alone that a person asks for."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.clock import SystemClock
from affidavit.actors.directory import NO_RUN, Listed, listed_runs
from affidavit.actors.event_json import format_time
from affidavit.actors.logs.sqlite_locks import is_owned
from affidavit.actors.logs.sqlite_place import resolve
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.run_info import RunInfo, RunState, run_info
from affidavit.tools.errors import CONVERGED, STALLED, notice
from affidavit.tools.options import AsJson, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.progress import Tell, open_bar
from affidavit.tools.short_ids import short_ids
from affidavit.tools.since import parse_since
from affidavit.tools.tables import Cell, Column, table_text
from affidavit.tools.terminal import Style, Tone, style_of

# Written out for the parser; a test holds it to the members of RunState.
State = Literal["running", "waiting", "parked", "converged", "stalled", "cancelled", "unreadable"]

_COLUMNS: Final = (
    Column("ID"),
    Column("STARTED (UTC)"),
    Column("STATE"),
    Column("SEALED", right=True, spare=True),
    Column("MODEL", spare=True),
    Column("OBJECTIVE", flexible=True),
)
# Below this many columns ids are shortened.
_WIDE: Final = 140
_CALLS: Final = 3
_TONES: Final = {
    RunState.RUNNING: Tone.STRONG,
    RunState.WAITING: Tone.STRONG,
    RunState.PARKED: Tone.PLAIN,
    RunState.CONVERGED: Tone.GOOD,
    RunState.STALLED: Tone.BAD,
    RunState.CANCELLED: Tone.QUIET,
    RunState.UNREADABLE: Tone.BAD,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs to list; an attribute that is empty asks for nothing.

    Attributes:
        states: How they stand.
        since: The earliest beginning, Unix nanoseconds.
        model: Stands in the name of the model that they began with, in upper or lower case.
        words: Stands in their objective, in upper or lower case.
    """

    states: frozenset[str] = frozenset()
    since: int = 0
    model: str = ""
    words: str = ""

    def takes(self, info: RunInfo) -> bool:
        """Tell whether a run is wanted. Of one that cannot be read only its state is known, so only that can rule it out."""
        if self.states and info.state not in self.states:
            return False
        if info.state is RunState.UNREADABLE:
            return True
        return (
            info.started >= self.since
            and self.model.casefold() in info.model.casefold()
            and self.words.casefold() in info.objective.casefold()
        )


async def sessions(
    *,
    state: Annotated[
        tuple[State, ...],
        Parameter(
            name="--state",
            help="running, waiting, parked, converged, stalled, cancelled or unreadable; may be given several times.",
            show_default=False,
        ),
    ] = (),
    since: Annotated[
        str,
        Parameter(
            name="--since", help="Begun since then: 12h, 7d, 2026-11-30, or a whole time.", show_default=False
        ),
    ] = "",
    model: Annotated[
        str,
        Parameter(name="--model", help="Begun with a model whose name has this in it.", show_default=False),
    ] = "",
    find: Annotated[
        str,
        Parameter(name="--find", help="Asked for something that has these words in it.", show_default=False),
    ] = "",
    limit: Annotated[
        int | None, Parameter(name="--limit", validator=Number(gte=1), help="At most so many.")
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> int:
    """List the runs of this store, newest first; the first line is what @last means.

    A run that has not ended is running while somebody drives it, waiting where a
    call of it waits for a person, and parked where nobody drives it. A run that
    cannot be read is listed all the same, and told of.

    Exit codes: 0 all that was asked for was read, 1 a run could not be read, 2
    misuse or environment.

    For example:

      affidavit sessions
      affidavit sessions --state waiting --since 7d
      affidavit sessions --model openai: --find invoice --limit 5
    """
    now = SystemClock().now_ns()
    wanted = Wanted(frozenset(state), parse_since(since, now) if since else 0, model, find)
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        every = await listed_runs(log)
        describe = partial(run_info, log, is_owned=partial(is_owned, resolve(place.runs)), now=now)
        with open_bar("reading") as tell:
            found = await _wanted_runs(every, wanted, limit, describe, tell)
    output = Output()
    if as_json:
        for info in found:
            await output.line(json.dumps(run_json(info)))
    elif found:
        await output.write(runs_text(style_of(sys.stdout), found, [run.id for run in every]))
    elif every:
        notice(f"none of the {len(every)} runs of this store is of this kind; `affidavit sessions` lists all")
    else:
        notice(NO_RUN)
    return _told_of_trouble(found)


async def _wanted_runs(
    every: Sequence[Listed],
    wanted: Wanted,
    limit: int | None,
    describe: Callable[[Listed], Awaitable[RunInfo]],
    tell: Tell | None,
) -> list[RunInfo]:
    found: list[RunInfo] = []
    for done, run in enumerate(every):
        if limit is not None and len(found) == limit:
            break
        if tell is not None:
            tell(done, len(every))
        if not run.trouble and run.started < wanted.since:
            continue
        info = await describe(run)
        if wanted.takes(info):
            found.append(info)
    return found


def _told_of_trouble(found: Sequence[RunInfo]) -> int:
    broken = [info for info in found if info.trouble]
    for info in broken:
        notice(f"run {info.id} cannot be read: {info.trouble}")
    if broken:
        notice("`affidavit fsck` tells what is wrong with this store")
    return STALLED if broken else CONVERGED


def run_json(info: RunInfo) -> dict[str, object]:
    """Return a run for `--json`: the same keys for each."""
    return {
        "id": info.id,
        "started": format_time(info.started) if info.started else None,
        "state": info.state,
        "waits_for": list(info.waits_for),
        "braked": info.braked,
        "model": info.model or None,
        "events": info.events,
        "sealed": info.sealed,
        "tip": info.tip,
        "objective": info.objective,
        "trouble": info.trouble or None,
    }


def runs_text(style: Style, found: Sequence[RunInfo], ids: Sequence[str]) -> str:
    """Return runs as a table; `ids` are those of all runs of the store, so that shortened ones still name one run."""
    short = short_ids(ids) if style.width is not None and style.width < _WIDE else {}
    return table_text(style, _COLUMNS, [tuple(_cells(info, short.get(info.id, info.id))) for info in found])


def _cells(info: RunInfo, name: str) -> Iterator[Cell]:
    yield Cell(name)
    yield Cell(format_time(info.started)[:16].replace("T", " ") if info.started else "unknown", Tone.QUIET)
    yield Cell(_state_words(info), _TONES[info.state])
    yield Cell(f"{info.sealed}/{info.events}")
    yield Cell(info.model, Tone.QUIET)
    yield Cell(" ".join(info.objective.split()))


def _state_words(info: RunInfo) -> str:
    words = str(info.state)
    if info.waits_for:
        more = ", ..." if len(info.waits_for) > _CALLS else ""
        words += f" {', '.join(map(str, info.waits_for[:_CALLS]))}{more}"
    return f"{words}, braked" if info.braked else words
