"""The inbox of a run: what other processes ask of its owner, and what became of it. The stream `<id>.inbox`, of many writers.

Whoever asks appends a request; the owner carries it out, records the effect on the run with the request's id as its cause, and
only then appends the answer here. Crash states. Before the answer: the request stands; the next owner finds the effect on the
run, if there is one, and only answers. After it: nobody reads the request again. An inbox is never sealed, exported or listed:
the evidence is the effect.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, final

from affidavit.actors.approvals import Decision
from affidavit.actors.clock import Clock
from affidavit.actors.codec import decode, encode
from affidavit.actors.errors import LogLocked, WriterFenced
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.port import Entry, Log, LogReader
from affidavit.actors.text import recordable
from affidavit.crypto.approval import APPROVED, REFUSED
from affidavit.crypto.failures import ProducerError, VerificationError

logger = logging.getLogger(__name__)

INBOX_SUFFIX: Final = ".inbox"
_PREFIX: Final = "request."
_MOST_TRIES: Final = 100


class Outcome(StrEnum):
    """What became of a request."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked of a run's owner.

    Attributes:
        id: `<run>.inbox/<seq>`; its effect on the run names it as its cause.
        seq: Its position in the inbox.
        kind: What is asked, such as `request.cancel`.
        principal: Who asks.
        reason: Why.
        expires: Unix nanoseconds after which it is refused; 0 for never.
        call: The call it is about; 0 for none.
        goal: The goal it is about; empty for the whole run.
        text: What is to be said.
        detail: What else it says, by its own names. Anyone who may write the store may have written it.
    """

    id: str
    seq: int
    kind: str
    principal: str = ""
    reason: str = ""
    expires: int = 0
    call: int = 0
    goal: str = ""
    text: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    Attributes:
        outcome: Done, or refused.
        code: Why it was refused, such as `finished`.
        reason: The same in words.
        seq: The seq of the effect on the run; 0 if there is none.
    """

    outcome: str
    code: str = ""
    reason: str = ""
    seq: int = 0


def inbox_of(run_id: str) -> str:
    """Return the name of a run's inbox stream."""
    return f"{run_id}{INBOX_SUFFIX}"


async def post(log: Log, run_id: str, event: Event, clock: Clock) -> int:
    """Append one event to a run's inbox, behind whatever others append at the same time.

    Returns:
        Its seq.

    Raises:
        LogError: As the log's `append`.

    Cancellation: Cancelled means that nothing was appended.
    """
    stream = inbox_of(run_id)
    for _ in range(_MOST_TRIES):
        info = await log.info(stream)
        tip = 0 if info is None else info.tip
        (outcome,) = await log.append(
            [Entry(stream, tip, (_encode(event, stream, tip + 1, clock.now_ns()),))]
        )
        if not isinstance(outcome, WriterFenced):
            return outcome
    raise LogLocked(f"the inbox of run {run_id} is written by others all the time")


def _encode(event: Event, stream: str, seq: int, time: int) -> bytes:
    try:
        return encode(event, stream=stream, seq=seq, time=time)
    except ProducerError:
        return encode(recordable(event), stream=stream, seq=seq, time=time)


@final
class InboxReader:
    """A fold of one inbox, as far as it was read.

    Attributes:
        seen: The seq of the last row that was read.
        pending: The requests without an answer, by seq.
        answers: The answers to the requests that were asked for in `expect`, by seq.
    """

    def __init__(self, log: LogReader, run_id: str) -> None:
        """Begin before the first row."""
        self._log = log
        self._stream = inbox_of(run_id)
        self._expected: set[int] = set()
        self.seen = 0
        self.pending: dict[int, Request] = {}
        self.answers: dict[int, Answer] = {}

    @property
    def stream(self) -> str:
        """The inbox's stream."""
        return self._stream

    def expect(self, seq: int) -> None:
        """Keep the answer to a request when it is read."""
        self._expected.add(seq)

    async def catch_up(self) -> None:
        """Read what is new.

        Raises:
            LogError: The log could not be read.

        Cancellation: what was read is folded; nothing is read twice.
        """
        while batch := await self._log.read(self._stream, self.seen):
            for row in batch:
                self._fold(row.seq, row.data)
                self.seen = row.seq

    def _fold(self, seq: int, data: bytes) -> None:
        try:
            event = decode(data)
        except VerificationError:
            # Anyone who may write the store may write an inbox; what is no event must not stop the owner.
            logger.warning("row %d of %s is not an event and was left aside", seq, self._stream)
            return
        if event.kind == Kind.REQUEST_ANSWERED:
            self._answered(event)
        elif event.kind.startswith(_PREFIX):
            expires = event.detail.get("expires")
            self.pending[seq] = Request(
                id=f"{self._stream}/{seq}",
                seq=seq,
                kind=event.kind,
                principal=event.principal,
                reason=event.reason,
                expires=expires if isinstance(expires, int) else 0,
                call=event.call,
                goal=event.goal,
                text=event.text,
                detail=event.detail,
            )

    def _answered(self, event: Event) -> None:
        seq = event.detail.get("request")
        if not isinstance(seq, int):
            return
        self.pending.pop(seq, None)
        if seq in self._expected and seq not in self.answers:
            outcome, effect = event.detail.get("outcome"), event.detail.get("effect")
            self.answers[seq] = Answer(
                outcome=outcome if isinstance(outcome, str) else "",
                code=event.error_code,
                reason=event.reason,
                seq=effect if isinstance(effect, int) else 0,
            )


def request_event(kind: str, *, principal: str, reason: str, expires: int = 0) -> Event:
    """Return the event that asks for something.

    Args:
        kind: `request.cancel`, `request.seal`.
        principal: Who asks.
        reason: Why.
        expires: Unix nanoseconds after which it is to be refused; 0 for never.
    """
    detail: dict[str, object] = {"expires": expires} if expires else {}
    return Event(kind, principal=principal, reason=reason, detail=detail)


def say_event(text: str, *, principal: str, expires: int) -> Event:
    """Return the event that asks for something to be said on a run that has ended.

    Args:
        text: What.
        principal: Who says it.
        expires: Unix nanoseconds after which it is to be refused; nobody wants to be answered long after they have gone.
    """
    return Event(Kind.REQUEST_SAY, text=text, principal=principal, detail={"expires": expires})


def decision_event(decision: Decision) -> Event:
    """Return the event that asks for a decision about a call to be recorded."""
    detail: dict[str, object] = {"decision": decision.word}
    if decision.args is not None:
        detail["args"] = decision.args
    if decision.statement:
        detail["statement"] = decision.statement
    return Event(
        Kind.REQUEST_DECIDE,
        call=decision.call,
        principal=decision.principal,
        reason=decision.reason,
        detail=detail,
    )


def decision_asked(request: Request) -> Decision | None:
    """Return the decision that a request asks to be recorded; None if it states none."""
    word, args = request.detail.get("decision"), request.detail.get("args")
    statement = request.detail.get("statement", b"")
    if request.call < 1 or not request.principal or word not in (APPROVED, REFUSED):
        return None
    if not isinstance(statement, bytes) or not (args is None or isinstance(args, bytes)):
        return None
    try:
        return Decision(request.call, word == APPROVED, request.principal, request.reason, args, statement)
    except ValueError:
        return None


def brake_event(*, engage: bool, principal: str, reason: str) -> Event:
    """Return the event that asks for the brake to be pulled, or let go."""
    return Event(Kind.REQUEST_BRAKE, principal=principal, reason=reason, detail={"engage": engage})


def cancel_goal_event(goal: str, *, principal: str, reason: str) -> Event:
    """Return the event that asks for one goal of the run to be ended, and those below it."""
    return Event(Kind.REQUEST_CANCEL_GOAL, goal=goal, principal=principal, reason=reason)


def answer_event(request: Request, answer: Answer) -> Event:
    """Return the event that answers a request."""
    detail: dict[str, object] = {"request": request.seq, "outcome": str(answer.outcome)}
    if answer.seq:
        detail["effect"] = answer.seq
    return Event(
        Kind.REQUEST_ANSWERED,
        error_code=answer.code,
        reason=answer.reason,
        causation_id=request.id,
        detail=detail,
    )
