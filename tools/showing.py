"""Shows a run that is driven here, and parks it once it can only go on after a person has decided, where it is not to wait."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, final

import trio

from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.port import LogReader
from affidavit.actors.session_handle import Session
from affidavit.tools.errors import notice
from affidavit.tools.place import Place
from affidavit.tools.waits import Wait, Waits, decision_lines, wait_lines

# How long a run may be silent before it counts as waiting: one that has just been taken up first goes by what was decided before.
_QUIET: Final = 0.5


class Teller(Protocol):
    """Shows events, each once."""

    async def tell(self, event: Event) -> None:
        """Show an event."""


@final
class Showing:
    """Shows one run.

    Attributes:
        scope: Entered around whatever drives the run; cancelled when the run is to be parked.
        parked: Whether it was.
    """

    def __init__(
        self,
        place: Place,
        run_id: str,
        narrator: Teller,
        *,
        patient: bool,
        asks: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """Bind to a run.

        Args:
            place: The store, for the lines that decide.
            run_id: The run's whole id.
            narrator: Tells the events.
            patient: Whether to go on waiting for a decision.
            asks: Whether to say then how one is made; not where a person is asked by other means.
            clock: Tells what has expired.
        """
        self.scope = trio.CancelScope()
        self.parked = False
        self._place = place
        self._run_id = run_id
        self._narrator = narrator
        self._patient = patient
        self._asks = asks
        self._clock = clock or SystemClock()

    async def follow(self, log: LogReader, session: Session, after: int) -> None:
        """Tell events after a seq until the run has ended, or park it.

        Raises:
            LogError: The log could not be read.

        Cancellation: only the telling ends.
        """
        waits = Waits(await history(log, self._run_id))
        self._say(waits.standing())
        async with session.subscribe(after) as events:
            while True:
                held = not self._patient and waits.on_nothing_else(self._clock.now_ns())
                event: Event | None = None
                with trio.move_on_after(_QUIET if held else math.inf) as quiet:
                    event = await anext(events, None)
                if quiet.cancelled_caught:
                    self.parked = True
                    self.scope.cancel(reason="the run waits for a person")
                    return
                if event is None:
                    return
                await self._narrator.tell(event)
                is_new = event.seq > waits.seq
                waits.apply(event)
                if event.kind == Kind.APPROVAL_REQUESTED and is_new:
                    self._say([wait for wait in waits.standing() if wait.approval.call == event.call])

    def _say(self, waits: Sequence[Wait]) -> None:
        for wait in waits if self._patient and self._asks else ():
            for line in waiting_lines(self._place, self._run_id, wait):
                notice(line)


def waiting_lines(place: Place, run_id: str, wait: Wait) -> Iterator[str]:
    """Go through the lines that tell what a person is to decide, and how."""
    yield from wait_lines(wait)
    yield "To decide about it:"
    yield from decision_lines(place, run_id, wait.approval)
