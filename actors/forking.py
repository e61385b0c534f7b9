"""Opens a run that goes on from a point of another: finds the conversation there, and has the parent's events up to it signed.

Reads the parent alone: nothing is written to it, and it may be going on meanwhile. None of its events is copied: the fork holds
the conversation, and a checkpoint over exactly the events that led to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from affidavit.actors.conversation import Conversation
from affidavit.actors.errors import ForkRefused, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.fork_context import Fork
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.port import LogReader
from affidavit.actors.sealer import Sealer
from affidavit.actors.sealing import sealed_in
from affidavit.crypto import cbor
from affidavit.crypto.event_form import MAX_EVENT_BYTES

# Of the 1 MiB that the opening event may have, the rest is for the goal, its system prompt and what is said.
MAX_CONTEXT: Final = MAX_EVENT_BYTES - 256 * 1024


@dataclass(frozen=True, slots=True)
class Branch:
    """How a fork is to begin.

    Attributes:
        spec: Its goal: the parent's, with the words that are said as its objective, if any are.
        fork: Where it comes from.
    """

    spec: GoalSpec
    fork: Fork


async def branch_of(log: LogReader, sealer: Sealer, run_id: str, at: int, text: str = "") -> Branch:
    """Return how a run begins that goes on from a point of another.

    Args:
        log: Where the parent is.
        sealer: Signs the checkpoint.
        run_id: The parent.
        at: The seq of the parent's event after which the fork goes on.
        text: What is said there; empty to go on with what the parent was at.

    Raises:
        UnknownRun: There is no such run.
        ForkRefused: The conversation is not whole there, is too long, or has nothing to go on with.
        VerificationError: The parent's events are not those that were sealed.
        LogError: The log could not be read.

    Cancellation: nothing has been done.
    """
    events = await history(log, run_id)
    if not events:
        raise UnknownRun(f"there is no run {run_id}")
    spec, fork = _unsigned(events, run_id, at, text)
    seal = next((event for event in reversed(events) if event.kind == Kind.RECORD_SEALED), None)
    sealed = await sealer.seal(run_id, at, sealed_in(seal) if seal is not None else None)
    return Branch(spec, replace(fork, checkpoint=sealed.checkpoint))


def is_whole(conversation: Conversation) -> bool:
    """Tell whether a fork may begin where a conversation stands: no call is open, and no answer half told."""
    half_told = conversation.turn_open and conversation.answered
    open_calls = conversation.pending or conversation.in_flight or conversation.book.open_actions
    return conversation.spec is not None and not half_told and not open_calls


def _unsigned(events: tuple[Event, ...], run_id: str, at: int, text: str) -> tuple[GoalSpec, Fork]:
    if not 1 <= at <= len(events):
        raise ForkRefused(f"run {run_id} has events 1 to {len(events)}, and no {at}")
    conversation = Conversation()
    for event in events[:at]:
        conversation.apply(event)
    spec, context = conversation.spec, tuple(conversation.messages)
    if spec is None or not is_whole(conversation):
        raise ForkRefused(_where_instead(events, run_id, at))
    is_said = bool(text.strip())
    if not is_said and context[-1].role == "assistant":
        raise ForkRefused(
            f"at event {at} of run {run_id} the agent has had the last word; say something to go on with"
        )
    fork = Fork(run_id, at, b"", context, is_said)
    size = len(cbor.encode(fork.as_detail()))
    if size > MAX_CONTEXT:
        raise ForkRefused(
            f"the conversation up to event {at} of run {run_id} is {size:,} bytes, and a fork can begin with {MAX_CONTEXT:,}"
        )
    return replace(spec, objective=text if is_said else spec.objective, name=""), fork


def _where_instead(events: Iterable[Event], run_id: str, at: int) -> str:
    """Say where near a point the conversation is whole."""
    conversation, below, above = Conversation(), 0, 0
    for event in events:
        conversation.apply(event)
        if not is_whole(conversation):
            continue
        if event.seq < at:
            below = event.seq
        else:
            above = event.seq
            break
    nearest = " and ".join(str(seq) for seq in (below, above) if seq)
    if not nearest:
        return f"run {run_id} holds no conversation that a fork could go on from"
    return f"at event {at} of run {run_id} a call or an answer is not complete; the nearest events to fork at: {nearest}"
