"""Carries out what other processes ask of a session: each request once, answered when its effect is durable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, final

from affidavit.actors.approvals import Decision
from affidavit.actors.asker import checked_asker, checked_words
from affidavit.actors.clock import Clock
from affidavit.actors.crew import Stop
from affidavit.actors.errors import (
    ApprovalRefused,
    GuardLost,
    LogError,
    NotDriven,
    RunFinished,
    RunGoing,
    SealRefused,
    UnknownGoal,
)
from affidavit.actors.events import Event, Kind
from affidavit.actors.inbox import Answer, InboxReader, Outcome, Request, answer_event, decision_asked, post
from affidavit.actors.logs.port import Guard, Log
from affidavit.actors.run_state import RunState
from affidavit.actors.stream import Scrub
from affidavit.crypto.failures import CodedError

FINISHED: Final = "finished"
EXPIRED: Final = "expired"
UNSUPPORTED: Final = "unsupported"
NOT_OPENED: Final = "not_opened"
MALFORMED: Final = "malformed"
FAILED: Final = "failed"
UNKNOWN_GOAL: Final = "unknown_goal"
GOING: Final = "going"
NOT_DRIVEN: Final = "not_driven"
_SHOWN: Final = 64


class Effects(Protocol):
    """What a session can do for others."""

    async def cancel_run(self, principal: str, reason: str, causation_id: str) -> Event:
        """End the run as cancelled."""
        ...

    async def cancel_goal(self, goal: str, stop: Stop) -> Event:
        """End one goal of the run as cancelled."""
        ...

    async def seal(self, principal: str = "", causation_id: str = "") -> Event:
        """Seal what is recorded."""
        ...

    async def say_on_run(self, text: str, principal: str, causation_id: str) -> int:
        """Open the run again with what a person says; return the seq of it."""
        ...

    async def decide_call(self, decision: Decision, causation_id: str) -> Event:
        """Decide about a call that waits for approval."""
        ...

    async def brake_run(self, *, engage: bool, principal: str, reason: str, causation_id: str) -> Event:
        """Pull the brake, or let it go."""
        ...


@final
class SessionInbox:
    """The owner's side of one run's inbox. Only the session's mailbox loop calls `attend`."""

    def __init__(
        self, log: Log, state: RunState, clock: Clock, run_id: str, effects: Effects, scrub: Scrub
    ) -> None:
        """Bind a run's inbox to what its session can do; `scrub` takes the run's secrets out of each answer."""
        self._log = log
        self._state = state
        self._clock = clock
        self._run_id = run_id
        self._effects = effects
        self._scrub = scrub
        self._reader = InboxReader(log, run_id)

    @property
    def stream(self) -> str:
        """The inbox's own stream."""
        return self._reader.stream

    def has_more(self, tip: int) -> bool:
        """Tell whether there are rows that were not read yet, or requests that could not be answered.

        Args:
            tip: The seq of the inbox's last event on the log.
        """
        return bool(self._reader.pending) or tip > self._reader.seen

    def guard(self) -> Guard:
        """Return how far the inbox was read, for what is only right if nothing more was asked.

        Raises:
            GuardLost: A request was read that is not answered yet.
        """
        if self._reader.pending:
            raise GuardLost(self.stream)
        return Guard(self.stream, self._reader.seen)

    async def attend(self) -> None:
        """Carry out and answer every request that has no answer.

        Raises:
            LogError: An effect or an answer could not be recorded. The request stands for the next owner.

        Cancellation: at any point; what was done and not answered is answered by the next owner, and not done again.
        """
        await self._reader.catch_up()
        for request in list(self._reader.pending.values()):
            answer = await self._carry_out(request)
            # It may repeat what was asked, or what an effect failed with.
            answered = self._scrub(answer_event(request, answer))
            await post(self._log, self._run_id, answered, self._clock)
            self._reader.pending.pop(request.seq, None)

    async def _carry_out(self, request: Request) -> Answer:
        effect = self._state.effects.get(request.id)
        if effect is not None:
            # Done by an owner that could not answer any more.
            return Answer(Outcome.DONE, seq=effect)
        if request.expires and self._clock.now_ns() > request.expires:
            return _refused(EXPIRED, "the request had expired before it was read")
        match request.kind:
            case Kind.REQUEST_CANCEL:
                work = self._cancel
            case Kind.REQUEST_CANCEL_GOAL:
                work = self._cancel_goal
            case Kind.REQUEST_SAY:
                work = self._say
            case Kind.REQUEST_SEAL:
                work = self._seal
            case Kind.REQUEST_DECIDE:
                work = self._decide
            case Kind.REQUEST_BRAKE:
                work = self._brake
            case _:
                return _refused(UNSUPPORTED, f"this owner knows no {request.kind[:_SHOWN]}")
        try:
            checked_asker(request.principal, request.reason)
        except ValueError as error:
            return _refused(MALFORMED, str(error))
        return await _answer(lambda: work(request))

    async def _cancel(self, request: Request) -> Answer:
        if not self._state.opened:
            return _refused(NOT_OPENED, "nothing was ever recorded on this run")
        if self._state.terminal is None:
            await self._effects.cancel_run(request.principal, request.reason, request.id)
        effect = self._state.effects.get(request.id)
        if effect is None:
            return _refused(FINISHED, "the run had ended already")
        return Answer(Outcome.DONE, seq=effect)

    async def _cancel_goal(self, request: Request) -> Answer:
        goal = request.goal
        if not goal:
            return _refused(MALFORMED, "the request does not say which goal is to end")
        await self._effects.cancel_goal(goal, Stop(request.principal, request.reason, request.id))
        effect = self._state.effects.get(request.id)
        if effect is None:
            return _refused(FINISHED, f"goal {goal} had ended already")
        return Answer(Outcome.DONE, seq=effect)

    async def _seal(self, request: Request) -> Answer:
        sealed = await self._effects.seal(request.principal, request.id)
        return Answer(Outcome.DONE, seq=sealed.seq)

    async def _say(self, request: Request) -> Answer:
        try:
            checked_words(request.text)
        except ValueError as error:
            return _refused(MALFORMED, str(error))
        if not self._state.opened:
            return _refused(NOT_OPENED, "nothing was ever recorded on this run")
        said = await self._effects.say_on_run(request.text, request.principal, request.id)
        return Answer(Outcome.DONE, seq=said)

    async def _decide(self, request: Request) -> Answer:
        decision = decision_asked(request)
        if decision is None:
            return _refused(MALFORMED, "the request does not say who decides what about which call")
        if not self._state.opened:
            return _refused(NOT_OPENED, "nothing was ever recorded on this run")
        decided = await self._effects.decide_call(decision, request.id)
        return Answer(Outcome.DONE, seq=decided.seq)

    async def _brake(self, request: Request) -> Answer:
        engage = request.detail.get("engage")
        if not isinstance(engage, bool):
            return _refused(MALFORMED, "the request does not say whether the brake is pulled or let go")
        if not self._state.opened:
            return _refused(NOT_OPENED, "nothing was ever recorded on this run")
        braked = await self._effects.brake_run(
            engage=engage, principal=request.principal, reason=request.reason, causation_id=request.id
        )
        return Answer(Outcome.DONE, seq=braked.seq)


async def _answer(work: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await work()
    except LogError:
        raise
    except Exception as error:
        return _refused(_code(error), str(error))


def _code(error: Exception) -> str:
    match error:
        case CodedError() | ApprovalRefused():
            return str(error.code)
        case SealRefused():
            return "seal_refused"
        case RunFinished():
            return FINISHED
        case UnknownGoal():
            return UNKNOWN_GOAL
        case RunGoing():
            return GOING
        case NotDriven():
            return NOT_DRIVEN
        case _:
            return FAILED


def _refused(code: str, reason: str) -> Answer:
    return Answer(Outcome.REFUSED, code, reason)
