"""When a session seals its run: at its end, at park, on demand, and on the way after so many events or so much time.

A going run is only signed on the way; the check is left to the next seal at an end, at park or on demand. That a seal nobody
waits for failed is told to the host's log; the events stand and can be sealed later. The timer visits a session for this only
while it has events that no seal covers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import final

from affidavit.actors.errors import LogError
from affidavit.actors.events import RECORD_KINDS, Event
from affidavit.actors.recovery import closing_events
from affidavit.actors.sealer import Sealer
from affidavit.actors.sealing import Sealing
from affidavit.actors.session_record import SessionRecord
from affidavit.actors.stream import Committed
from affidavit.actors.timer import Timer

logger = logging.getLogger(__name__)


@final
class SessionSeals:
    """The seals of one session. Without a sealer it seals nothing."""

    def __init__(
        self, record: SessionRecord, sealer: Sealer | None, timer: Timer, sign: Callable[[], None]
    ) -> None:
        """Bind a run's record to the sealer.

        Args:
            record: What is sealed.
            sealer: Seals it.
            timer: Tells when it is time to.
            sign: Has `sign_quietly` called soon. It neither blocks nor raises.
        """
        self._record = record
        self._sealing = Sealing(record.stream, record.state, sealer) if sealer is not None else None
        self._every = 0 if sealer is None else sealer.every
        self._beat = timer.every(sealer.interval) if sealer is not None and sealer.interval else None
        self._sign = sign
        self._is_signing = False
        # Events since the last one about the record: since the last seal, or as good as.
        self._unsigned = record.state.since_record

    @property
    def is_possible(self) -> bool:
        """Whether there is a sealer."""
        return self._sealing is not None

    def count(self, committed: Committed) -> None:
        """Count what was recorded, and have it signed if that is due. It must see every commit."""
        for event in committed.events:
            self._unsigned = 0 if event.kind in RECORD_KINDS else self._unsigned + 1
        self.follow()
        if self._is_going and 0 < self._every <= self._unsigned:
            self._sign_soon()

    def follow(self) -> None:
        """Have the timer look after what no seal covers, as long as there is such."""
        if self._beat is not None:
            if self._is_going and self._unsigned:
                self._beat.enrol(self, self._visit)
            else:
                self._beat.leave(self)

    def close(self) -> None:
        """Be visited no more."""
        if self._beat is not None:
            self._beat.drop(self)

    @property
    def _is_going(self) -> bool:
        # What has ended is sealed for that reason.
        return self._record.is_live and self._record.state.terminal is None

    async def _visit(self) -> None:
        if self._is_going:
            self._sign_soon()

    def _sign_soon(self) -> None:
        if not self._is_signing:
            self._is_signing = True
            self._sign()

    async def seal(self, principal: str = "", causation_id: str = "", *, anew: bool = True) -> Event:
        """Seal and check what is recorded; of a run that nobody drives, close first what its last driver left open.

        Args:
            principal: Who asked for it, where somebody did.
            causation_id: The request it is the effect of.
            anew: As for `Sealing.seal`; likewise the errors.

        Raises:
            RuntimeError: There is no sealer.
        """
        if self._sealing is None:
            raise RuntimeError("this session was opened without a sealer")
        try:
            await self._close_open_calls()
            await self._record.stream.settled()
            return await self._sealing.seal(principal=principal, causation_id=causation_id, anew=anew)
        except LogError as error:
            self._record.fail(error)
            raise

    async def seal_quietly(self) -> None:
        """Seal because it is time to."""
        try:
            await self.seal(anew=False)
        except Exception:
            logger.exception("run %s could not be sealed", self._record.stream.id)

    async def sign_quietly(self) -> None:
        """Sign, unchecked, because it is time to."""
        try:
            if self._sealing is not None and self._record.is_live:
                await self._sealing.sign()
        except LogError as error:
            self._record.fail(error)
        except Exception:
            logger.exception("run %s could not be signed on the way", self._record.stream.id)
        finally:
            self._is_signing = False

    async def _close_open_calls(self) -> None:
        record = self._record
        if record.driven is None and record.state.opened and record.state.terminal is None:
            await record.close_calls(closing_events)
