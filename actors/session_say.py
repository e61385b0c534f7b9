"""How a conversation goes on after its terminal event: what stands behind `Session.say`.

Crash states. Before user.message is durable: the run has ended, and nothing was said. After it: the run is open again, and
whoever resumes it answers what was said; it is never said twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from affidavit.actors.asker import checked_asker, checked_words
from affidavit.actors.errors import NotDriven, RunGoing, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.runtime_port import ConversingRuntime
from affidavit.actors.session_record import CLOSED, Driver, SessionRecord


@final
class SessionTalk:
    """What is said on one run."""

    def __init__(self, record: SessionRecord, watch: Callable[[], None]) -> None:
        """Bind to a run's record; `watch` has its goal looked after once it is driven on."""
        self._record = record
        self._watch = watch

    async def say(self, text: str, principal: str, causation_id: str = "") -> int:
        """Open the ended run again with a person's words, and hand its goal back to what drove it; see `Session.say`."""
        checked_words(text)
        checked_asker(principal)
        record = self._record
        async with record.talk:
            if causation_id and causation_id in record.state.effects:
                return record.state.effects[causation_id]
            driver, runtime = _conversing(record)
            _require_ended(record)
            await runtime.may_go_on(driver.key, driver.reporter)
            # A pair of its own, so that what was asked about the round before is not taken for news of this one.
            record.attach(driver.runtime, driver.key)
            said = Event(Kind.USER_MESSAGE, text=text, principal=principal, causation_id=causation_id)
            (recorded,) = await record.record((said,), lambda: _require_ended(record))
            record.stopped = ""
            await self._hand_over(driver, runtime, recorded.text)
            return recorded.seq

    async def _hand_over(self, driver: Driver, runtime: ConversingRuntime, text: str) -> None:
        record = self._record
        try:
            await runtime.say(driver.key, text, driver.reporter)
        except Exception as error:
            # If this is cancelled, the run is parked and can be resumed.
            await record.end_unbegun(f"the goal could not be gone on with: {error}")  # noqa: ASYNC120
            raise
        except BaseException as error:
            record.release(f"its goal was not gone on with: {error}")
            raise
        self._watch()


def _conversing(record: SessionRecord) -> tuple[Driver, ConversingRuntime]:
    if not record.state.opened:
        raise UnknownRun(f"there is no run {record.stream.id} to say anything on")
    if record.driver is None:
        raise NotDriven(f"nothing here drives run {record.stream.id}; resume it with a runtime first")
    runtime = record.driver.runtime
    if not isinstance(runtime, ConversingRuntime):
        raise NotDriven(
            f"what drives run {record.stream.id} cannot go on with a run that has ended: it has no `say`"
        )
    return record.driver, runtime


def _require_ended(record: SessionRecord) -> None:
    if record.stopped == CLOSED:
        raise NotDriven(f"the session of run {record.stream.id} is being closed")
    if record.state.terminal is None:
        raise RunGoing(f"run {record.stream.id} has not ended; say it once it has")
