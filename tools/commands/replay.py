"""`affidavit replay`: a run from its first recorded event to its last, or to one in between, and what they add up to."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from typing import Annotated, final

from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.clock import SystemClock
from affidavit.actors.directory import find_run
from affidavit.actors.errors import UnknownRun
from affidavit.actors.history import each_row, event_of
from affidavit.actors.logs.port import LogReader, Row
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import Projection, reduce
from affidavit.tools.errors import CONVERGED, UsageError
from affidavit.tools.fanout_lines import fanout_lines
from affidavit.tools.options import AsJson, RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.pace import Pace
from affidavit.tools.place import place_of
from affidavit.tools.status import status_lines
from affidavit.tools.status_json import status_json
from affidavit.tools.terminal import Style, style_of
from affidavit.tools.transcript import Transcript
from affidavit.tools.waits import Waits


@final
class Replay:
    """Shows one run, event by event; none of them is kept."""

    def __init__(self, run_id: str, output: Output, style: Style, pace: Pace, *, as_json: bool) -> None:
        """Begin before the first event."""
        self._run_id = run_id
        self._output = output
        self._transcript = Transcript(style, as_json=as_json)
        self._pace = pace
        self._style = style
        self._status = Projection()
        self._waits = Waits()

    async def play(self, log: LogReader, upto: int) -> None:
        """Show events 1..upto.

        Raises:
            AffidavitError: The run could not be read.
            OSError: It could not be shown.

        Cancellation: at any event.
        """
        await each_row(log, self._run_id, upto, self._show)

    async def _show(self, row: Row) -> None:
        event = event_of(row, self._run_id)
        await self._pace.keep(event.time)
        self._status = reduce(self._status, event)
        self._waits.apply(event)
        await self._output.write(self._transcript.show(event))

    def status_lines(self) -> Iterator[str]:
        """Go through the lines that sum up what was shown, with the tree of children."""
        yield f"run {self._run_id}"
        yield from status_lines(self._status, self._waits.standing())
        yield from fanout_lines(self._status.fanout, self._style.width)

    def status_json(self, at: int) -> dict[str, object]:
        """Return the same for programs, after the event of some seq."""
        return status_json(self._run_id, at, self._status, self._waits.standing())


async def replay(
    run_id: RunId,
    /,
    *,
    speed: Annotated[
        float | None,
        Parameter(
            name="--speed",
            validator=Number(gt=0, lt=math.inf),
            help="As many times as fast as it was recorded: 1 for the same speed. By default at once.",
        ),
    ] = None,
    at: Annotated[
        int | None,
        Parameter(
            name="--at",
            validator=Number(gte=1),
            help="Stop after the event of this number, as if no more were known.",
        ),
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> int:
    """Show a run from its first recorded event to its last, and what they add up to.

    It reads and never writes; what is recorded after it began is not shown. At a
    speed no pause is longer than 5 seconds. With --at and --json the last line is
    the status at that event.

    For example:

      affidavit replay @last
      affidavit replay @last --speed 4
      affidavit replay @last --at 12
    """
    output, style = Output(), style_of(sys.stdout)
    async with open_sqlite_reader(place_of(store).runs) as log:
        whole_id = await find_run(log, run_id)
        upto = await _last(log, whole_id, at)
        shown = Replay(whole_id, output, style, Pace(SystemClock(), speed), as_json=as_json)
        await shown.play(log, upto)
    if not as_json:
        for line in shown.status_lines():
            await output.line(line)
    elif at is not None:
        await output.line(json.dumps(shown.status_json(at)))
    return CONVERGED


async def _last(log: LogReader, run_id: str, at: int | None) -> int:
    info = await log.info(run_id)
    if info is None:
        raise UnknownRun(f"there is no run {run_id}; `affidavit sessions` lists them")
    if at is not None and at > info.tip:
        raise UsageError(f"run {run_id} has {info.tip} events: name one from 1 to {info.tip}")
    return info.tip if at is None else at
