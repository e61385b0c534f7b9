"""Where a run that is driven here is shown: in a live view, or line by line where there is none. Either way the same events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, final

from affidavit.actors.approvals import Decision
from affidavit.actors.codec import decode
from affidavit.actors.events import Event
from affidavit.actors.logs.port import LogReader
from affidavit.actors.session_handle import Session
from affidavit.tools.asking import principal_of
from affidavit.tools.console.keymap import Decide
from affidavit.tools.narrator import Narrator

if TYPE_CHECKING:
    from affidavit.tools.console.live import LiveView

# How many of the last events are left on the screen, line by line, once the view has gone.
TAIL: Final = 16


@final
class Stage:
    """Shows one run."""

    def __init__(self, narrator: Narrator) -> None:
        """Begin without a view.

        Args:
            narrator: Shows the run line by line, and its last events once a view has gone.
        """
        self._narrator = narrator
        self._view: LiveView | None = None

    @asynccontextmanager
    async def lit(self, run_id: str, *, live: bool, owns: bool = True) -> AsyncIterator[None]:
        """Show the run in a live view for the length of the block, if that is wanted.

        Args:
            run_id: The run's whole id.
            live: Whether to show it in a live view.
            owns: Whether this process drives the run.

        Raises:
            OSError: The terminal could not be opened.
            BaseException: The body's own exception, as itself.
        """
        if not live:
            yield
            return
        # Only where there is a view: what sets it takes a while to be imported.
        from affidavit.tools.console.live import open_live_view

        async with open_live_view(run_id, owns=owns) as view:
            self._view = view
            yield

    @property
    def is_live(self) -> bool:
        """Whether there is a live view."""
        return self._view is not None

    async def tell(self, event: Event) -> None:
        """Show one event; each is shown once."""
        if self._view is not None:
            await self._view.tell(event)
        if self._view is None or self._view.has_failed:
            await self._narrator.tell(event)

    def attend(self, session: Session) -> None:
        """Show answers in the making, and let a person decide about what waits."""
        if self._view is None:
            return

        async def decide(wanted: Decide) -> str:
            who = principal_of(None)
            decision = Decision(wanted.call, wanted.approved, who, wanted.reason, wanted.args)
            await session.decide(decision)
            return f"call {wanted.call} {decision.word} by {who}"

        self._view.attend(session.subscribe_live(), decide)

    def leave(self) -> None:
        """Give the terminal back now, so that something can be said on it."""
        if self._view is not None:
            self._view.leave()

    async def finish(self, log: LogReader, run_id: str) -> None:
        """Show what is on the log by now, give the terminal back, and leave the last events on it line by line.

        Raises:
            LogError: The log could not be read.
        """
        view = self._view
        if view is not None:
            seq = view.view.seq
            while not view.has_failed and (batch := await log.read(run_id, seq)):
                for row in batch:
                    view.fold(decode(row.data))
                seq = batch[-1].seq
            await view.paint_last()
            view.leave()
            if not view.has_failed:
                await self._narrator.skip_to(max(view.view.seq - TAIL, 0), run_id)
        await self._narrator.catch_up(log, run_id)
