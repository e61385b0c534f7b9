"""`affidavit watch`: follow a run that another process drives, without disturbing it."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.directory import find_run
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import Projection, RecordState, project, reduce
from affidavit.actors.subscription import Subscription
from affidavit.actors.watch import watch as subscribe
from affidavit.tools.errors import CONVERGED, notice
from affidavit.tools.options import AsJson, RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.status import sealed_words
from affidavit.tools.terminal import style_of
from affidavit.tools.transcript import Transcript

# How long a run that has ended is waited for to be sealed and checked; its owner does both at once, if it lives.
SEAL_GRACE: Final = 5.0


async def watch(
    run_id: RunId,
    /,
    *,
    after: Annotated[
        int,
        Parameter(name="--after", validator=Number(gte=0), help="Begin after the event of this number."),
    ] = 0,
    follow: Annotated[
        bool, Parameter(name="--follow", help="Go on after the end, for a run that will be continued.")
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> int:
    """Follow a run that is going on in another terminal, from its first event on.

    It reads and never writes, so it holds nobody up. It ends once the run has ended
    and its record is sealed and checked. Of a run that has ended and is not sealed
    within 5 seconds, because nobody drives it any more, it says so.

    For example:

      affidavit watch @last
    """
    async with open_sqlite_reader(place_of(store).runs) as log:
        whole_id = await find_run(log, run_id)
        # The status of what is not shown, so that a watch that begins late knows of an end that lies before it.
        status = project(event for event in await history(log, whole_id) if event.seq <= after)
        async with subscribe(log, whole_id, after) as events:
            try:
                status = await _show(events, status, follow=follow, as_json=as_json)
            except KeyboardInterrupt:
                notice(f"stopped watching; the run is not affected. To go on: --after {events.cursor}")
                raise
    if status.sealed_events < status.events:
        notice(f"the run has ended and is not sealed ({sealed_words(status)}); `affidavit seal` does that")
    return CONVERGED


async def _show(events: Subscription, status: Projection, *, follow: bool, as_json: bool) -> Projection:
    """Show events until the run has ended and is sealed, or is not sealed in time; return the status it then has."""
    output = Output()
    transcript = Transcript(style_of(sys.stdout), as_json=as_json)
    while follow or not _is_over(status):
        grace = SEAL_GRACE if status.terminal and not follow else float("inf")
        event = None
        with trio.move_on_after(grace):
            event = await anext(events)
        if event is None:
            return status
        status = reduce(status, event)
        await output.write(transcript.show(event))
    return status


def _is_over(status: Projection) -> bool:
    return status.terminal and status.sealed_events == status.events and status.record is RecordState.VERIFIED
