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
from affidavit.tools.console.choice import Plain, wants_view
from affidavit.tools.console.stage import Stage
from affidavit.tools.errors import CONVERGED, INTERRUPTED, notice
from affidavit.tools.interrupts import open_interrupts
from affidavit.tools.narrator import Narrator
from affidavit.tools.options import AsJson, RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.showing import Teller
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


@final
class _Lines:
    """Shows events line by line. Unlike a run that is driven, a watch ends when nobody reads any more."""

    def __init__(self, output: Output, transcript: Transcript) -> None:
        self._output = output
        self._transcript = transcript

    async def tell(self, event: Event) -> None:
        """Show an event."""
        await self._output.write(self._transcript.show(event))


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
    plain: Plain = False,
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
        info = await log.info(whole_id)
        # Of a run that went on after its end, the first end is not where this stops.
        tip = 0 if info is None else info.tip
        state = Followed()
        output, transcript = Output(), Transcript(style_of(sys.stdout), as_json=as_json)
        live = wants_view(plain=plain, as_json=as_json)
        stage = Stage(Narrator(output, transcript, after=after))
        teller = stage if live else _Lines(output, transcript)
        async with subscribe(log, whole_id, after) as events:
            farewell = partial(_farewell, events, stage)
            async with (
                open_interrupts(lambda _: farewell(), farewell) as interrupts,
                stage.lit(whole_id, live=live, owns=False),
            ):
                with interrupts.scope:
                    for row in await rows(log, whole_id, upto=after):
                        # What is not shown is folded all the same: the end may lie before the place where this begins.
                        event = event_of(row, whole_id)
                        state.apply(event)
                        if live:
                            await stage.tell(event)
                    await _show(events, state, teller, tip=tip, follow=follow)
                if live and not interrupts.happened:
                    await stage.finish(log, whole_id)
    if interrupts.happened:
        return INTERRUPTED
    if not state.is_over:
        words = sealed_words(state.status)
        notice(f"the run has ended, and nobody seals and checks it ({words}); `affidavit seal` does that")
    return CONVERGED


def _farewell(events: Subscription, stage: Stage) -> str:
    stage.leave()
    return f"stopped watching; the run is not affected. To go on: --after {events.cursor}"


async def _show(events: Subscription, state: Followed, teller: Teller, *, tip: int, follow: bool) -> None:
    """Show events, and fold them, until the run has ended and is sealed, or is not sealed in time, but at least up to `tip`."""
    while follow or events.cursor < tip or not state.is_over:
        ended = state.status.terminal and not follow
        event = None
        with trio.move_on_after(SEAL_GRACE if ended else math.inf):
            event = await anext(events, None)
        if event is None:
            return
        state.apply(event)
        await teller.tell(event)
