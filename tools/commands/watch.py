"""`affidavit watch`: follow a run that another process drives, without disturbing it."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import Annotated, Final, final

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.directory import find_run
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import event_of, rows
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import Projection, reduce
from affidavit.actors.subscription import Subscription
from affidavit.actors.watch import watch as subscribe
from affidavit.tools.errors import CONVERGED, INTERRUPTED, notice
from affidavit.tools.interrupts import open_interrupts
from affidavit.tools.options import AsJson, RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.status import sealed_words
from affidavit.tools.terminal import style_of
from affidavit.tools.transcript import Transcript

# How long a run that has ended is waited for to be sealed and checked; its owner does both at once, if it lives.
SEAL_GRACE: Final = 5.0
_CHECKS: Final = frozenset({Kind.RECORD_VERIFIED, Kind.RECORD_REJECTED})


@final
class Followed:
    """What is known of a run that is being followed."""

    def __init__(self) -> None:
        """Begin before its first event."""
        self.status = Projection()
        self._kind = ""

    def apply(self, event: Event) -> None:
        """Fold one event."""
        self.status = reduce(self.status, event)
        self._kind = event.kind

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, all of it is sealed, and that seal was checked."""
        sealed = self.status.sealed_events == self.status.events
        return self.status.terminal and sealed and self._kind in _CHECKS


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
        state = Followed()
        for row in await rows(log, whole_id, upto=after):
            # What is not shown is folded all the same: the end may lie before the place where this begins.
            state.apply(event_of(row, whole_id))
        async with subscribe(log, whole_id, after) as events:
            farewell = partial(_farewell, events)
            async with open_interrupts(lambda _: farewell(), farewell) as interrupts:
                with interrupts.scope:
                    await _show(events, state, follow=follow, as_json=as_json)
    if interrupts.happened:
        return INTERRUPTED
    if not state.is_over:
        words = sealed_words(state.status)
        notice(f"the run has ended, and nobody seals and checks it ({words}); `affidavit seal` does that")
    return CONVERGED


def _farewell(events: Subscription) -> str:
    return f"stopped watching; the run is not affected. To go on: --after {events.cursor}"


async def _show(events: Subscription, state: Followed, *, follow: bool, as_json: bool) -> None:
    """Show events, and fold them, until the run has ended and is sealed, or is not sealed in time."""
    output = Output()
    transcript = Transcript(style_of(sys.stdout), as_json=as_json)
    while follow or not state.is_over:
        ended = state.status.terminal and not follow
        event = None
        with trio.move_on_after(SEAL_GRACE if ended else math.inf):
            event = await anext(events, None)
        if event is None:
            return
        state.apply(event)
        await output.write(transcript.show(event))
