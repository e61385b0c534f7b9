"""The session's actor: its mailbox loop, and what it has to hand: record, seals, ends, inbox and the timer's visits.

A session that is idle holds no task and no timer: the mailbox loop is started by the first command, and the timer visits only
sessions that drive a goal or have a reader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar, final

from affidavit.actors.approvals import Decision
from affidavit.actors.clock import Clock
from affidavit.actors.crew import Stop
from affidavit.actors.deltas import LiveTexts
from affidavit.actors.errors import LogError
from affidavit.actors.events import TERMINAL_KINDS, Event
from affidavit.actors.logs.port import Log
from affidavit.actors.mailbox import Mailbox, Reply, answer
from affidavit.actors.nurseries import StartService
from affidavit.actors.run_state import RunState
from affidavit.actors.sealer import Sealer
from affidavit.actors.session_commands import (
    AttendInbox,
    CancelGoal,
    CancelRun,
    Command,
    InboxDue,
    SealDue,
    SealRun,
    SignDue,
)
from affidavit.actors.session_ends import SessionEnds
from affidavit.actors.session_inbox import SessionInbox
from affidavit.actors.session_record import SessionRecord
from affidavit.actors.session_rulings import SessionRulings
from affidavit.actors.session_say import SessionTalk
from affidavit.actors.session_seals import SessionSeals
from affidavit.actors.session_watch import SessionWatch
from affidavit.actors.stream import Committed, Stream
from affidavit.actors.timer import Timer

logger = logging.getLogger(__name__)

R = TypeVar("R")


@final
class SessionCore:
    """One run's actor. Owned by `open_session`, which runs its loops; shown to callers only through `Session`.

    Attributes:
        record: What is recorded on the run, and whether it still may be.
        seals: Seals it.
        ends: Ends or parks it.
        rulings: What people decide about it.
        talk: What people say on it once it has ended.
        inbox: What others ask of it.
        live: Its answers in the making.
    """

    def __init__(
        self,
        log: Log,
        stream: Stream,
        state: RunState,
        clock: Clock,
        sealer: Sealer | None,
        timer: Timer,
        start: StartService,
    ) -> None:
        """Take over a run whose stream is folded into `state`.

        Args:
            log: Where the run is.
            stream: The run's stream.
            state: Its fold.
            clock: Tells whether a request has expired.
            sealer: Seals the run.
            timer: Visits the session while it waits for something.
            start: Starts the mailbox loop once it is needed.
        """
        self.record = SessionRecord(log, stream, state)
        self.seals = SessionSeals(self.record, sealer, timer, lambda: self._post(SignDue()))
        self.ends = SessionEnds(self.record, self.seals)
        self.rulings = SessionRulings(self.record, clock)
        self.talk = SessionTalk(self.record, self.watch)
        self.inbox = SessionInbox(log, state, clock, stream.id, self, stream.as_recorded)
        self.live = LiveTexts()
        self._watch = SessionWatch(self.record, self.inbox, self.wake, timer)
        self._mailbox = Mailbox[Command](f"the session of run {stream.id}")
        self._start = start
        self._log = log
        self._is_running = False
        self._closed = False
        # Commands that found the mailbox full: it is busy, so its loop looks at these after the command it is at.
        self._due: set[SealDue | SignDue | InboxDue] = set()
        self.record.on_release = self._watch.enrol
        stream.observe(self._observe)
        stream.readers.on_change = self._watch.enrol
        if sealer is not None:
            stream.observe(sealer.feed)

    async def ask(self, command: Callable[[Reply[R]], Command], expected: type[R]) -> R:
        """Post a command and wait for its answer; see `Mailbox.ask`."""
        self._run_mailbox()
        return await self._mailbox.ask(command, expected)

    def _post(self, command: SealDue | SignDue | InboxDue) -> None:
        self._run_mailbox()
        if not self._mailbox.post_nowait(command):
            self._due.add(command)

    def _run_mailbox(self) -> None:
        if not self._is_running and not self._closed:
            self._is_running = True
            self._start(self._mailbox_loop, name=f"mailbox of run {self.record.stream.id}")

    def wake(self) -> None:
        """Others may have asked for something. Called by the bus."""
        if self.record.is_live:
            self._post(InboxDue())

    def bus_ended(self) -> None:
        """The bus is gone: requests are found by the floor from now on."""

    def _observe(self, committed: Committed) -> None:
        for event in committed.events:
            self.record.state.apply(event)
        driven, listening = self.record.driven, self.record.listening
        if driven is not None and listening is not None:
            try:
                listening.hear(driven[1], committed.events)
            except Exception as error:
                # What was recorded stands, and whoever recorded it is not to blame; but what drives the run has lost its place.
                self.record.fail(error)
        self.seals.count(committed)
        if any(event.kind in TERMINAL_KINDS for event in committed.events):
            self._watch.enrol()
            if self.seals.is_possible:
                self._post(SealDue())

    def watch(self) -> None:
        """Follow the goal, and answer what others have asked for while nobody owned the run."""
        self._watch.follow()
        self.seals.follow()
        self.wake()

    def close(self) -> None:
        """Record nothing more: the run's ownership is about to end."""
        self.record.close()
        self._closed = True
        self.live.close()
        self._watch.close()
        self.seals.close()
        if not self._is_running:
            self._mailbox.close(_discard)

    async def _mailbox_loop(self) -> None:
        """The actor's loop: one command at a time."""
        try:
            while True:
                await self._handle(await self._mailbox.take())
                while self._due:
                    await self._handle(self._due.pop())
        finally:
            self._mailbox.close(_discard)

    async def _handle(self, command: Command) -> None:
        match command:
            case SealRun(reply):
                await answer(reply, self.seals.seal)
            case CancelRun(principal, reason, reply):
                await answer(reply, lambda: self.ends.cancel(principal, reason))
            case CancelGoal(goal, stop, reply):
                await answer(reply, lambda: self.ends.cancel_goal(goal, stop))
            case AttendInbox(reply):
                await answer(reply, self._attend)
            case SealDue():
                await self.seals.seal_quietly()
            case SignDue():
                await self.seals.sign_quietly()
            case InboxDue():
                await self._attend_quietly()

    async def attend_if_asked(self) -> None:
        """Carry out what others have asked by now, so that an action that follows is judged in that light.

        Raises:
            LogError: It could not be recorded.
        """
        (tip,) = await self._log.tips((self.inbox.stream,))
        if self.inbox.has_more(tip):
            await self.ask(AttendInbox, int)

    async def _attend(self) -> int:
        await self.inbox.attend()
        return self.record.stream.tip

    async def _attend_quietly(self) -> None:
        if self.record.failure is not None:
            return
        try:
            await self._attend()
        except LogError:
            # An effect that could not be recorded has stopped the session. A request that could not be read or answered stands:
            # for the next look, or for the next owner.
            logger.warning(
                "the inbox of run %s could not be attended to", self.record.stream.id, exc_info=True
            )

    async def cancel_run(self, principal: str, reason: str, causation_id: str) -> Event:
        """End the run because a request asks for it. Called by the inbox."""
        return await self.ends.cancel(principal, reason, causation_id)

    async def cancel_goal(self, goal: str, stop: Stop) -> Event:
        """End one goal of the run because a request asks for it. Called by the inbox."""
        return await self.ends.cancel_goal(goal, stop)

    async def brake_run(self, *, engage: bool, principal: str, reason: str, causation_id: str) -> Event:
        """Pull the brake, or let it go, because a request asks for it. Called by the inbox."""
        return await self.rulings.brake(
            engage=engage, principal=principal, reason=reason, causation_id=causation_id
        )

    async def say_on_run(self, text: str, principal: str, causation_id: str) -> int:
        """Open the run again with what a person says, because a request asks for it. Called by the inbox."""
        return await self.talk.say(text, principal, causation_id)

    async def decide_call(self, decision: Decision, causation_id: str) -> Event:
        """Decide about a call because a request asks for it. Called by the inbox."""
        return await self.rulings.decide(decision, causation_id)

    async def seal(self, principal: str = "", causation_id: str = "") -> Event:
        """Seal the run because a request asks for it. Called by the inbox."""
        return await self.seals.seal(principal, causation_id)


def _discard(command: Command) -> None:
    if isinstance(command, SealRun | CancelRun | CancelGoal | AttendInbox):
        command.reply.close()
