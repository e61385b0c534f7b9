"""Closes what a run that stopped half-way left open on its record. Pure: events in, the closing events out.

Only the owner of a run may record them. They say what is known: that the action was admitted, and that its end was not seen.
"""

from __future__ import annotations

from affidavit.actors.conversation import Conversation
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.run_book import OpenAction

INTERRUPTED_TEXT = (
    "interrupted: this call had begun when the run stopped, and whether it took effect is unknown. "
    "It was not run again."
)
CANCELLED_TEXT = "cancelled: the run was stopped before this call ended."


def turn_completed(conversation: Conversation) -> Event:
    """Return the event that ends the open turn."""
    return Event(
        Kind.TURN_COMPLETED,
        turn=conversation.turn,
        stop_reason=conversation.stop_reason,
        usage=conversation.turn_usage,
    )


def result_events(conversation: Conversation, *results: Event) -> tuple[Event, ...]:
    """Return tool results, and with them the end of the turn if they answer its last open calls."""
    answered = {result.tool_use_id for result in results}
    left = conversation.pending.keys() - answered
    return results if left or not conversation.turn_open else (*results, turn_completed(conversation))


def closing_events(conversation: Conversation) -> tuple[Event, ...]:
    """Return the ends of all actions that have begun and not ended, as interrupted.

    A tool call that is not idempotent is answered too, so that nobody runs it again. One that is stays open, and resuming runs
    it anew.
    """
    lost = _lost(conversation)
    results = [
        unanswered(call.id, call.name, call.turn, INTERRUPTED_TEXT)
        for call in conversation.pending.values()
        if call.id in lost
    ]
    return _closing(conversation, results)


def ending_events(conversation: Conversation) -> tuple[Event, ...]:
    """Return what a run that ends still owes its transcript: the end of each begun action, an answer to each open tool call.

    Those that had begun and must not be repeated are answered as interrupted, all others as cancelled.
    """
    lost = _lost(conversation)
    results = [
        unanswered(call.id, call.name, call.turn, INTERRUPTED_TEXT if call.id in lost else CANCELLED_TEXT)
        for call in conversation.pending.values()
    ]
    return _closing(conversation, results)


def _lost(conversation: Conversation) -> set[str]:
    """Return the tool calls that have begun and must not be run again."""
    begun = conversation.book.open_actions.values()
    return {action.tool_use_id for action in begun if not action.idempotent and not action.goal}


def _closing(conversation: Conversation, results: list[Event]) -> tuple[Event, ...]:
    ends = [_interrupted(action) for action in conversation.book.open_actions.values()]
    return (*ends, *(result_events(conversation, *results) if results else ()))


def unanswered(tool_use_id: str, tool: str, turn: int, text: str) -> Event:
    """Return the result of a call that was given none."""
    return Event(Kind.TOOL_RESULT, tool_use_id=tool_use_id, tool=tool, turn=turn, result=text, is_error=True)


def _interrupted(action: OpenAction) -> Event:
    # An interrupted model call may have been billed in full, and how long the work went on is unknown: so what was held back
    # is spent. Tools hold back time alone.
    return Event(
        Kind.ACTION_COMPLETED,
        action=action.name,
        call=action.call,
        trust=action.trust,
        goal=action.goal,
        turn=action.turn,
        tool_use_id=action.tool_use_id,
        error_class=FaultClass.INTERRUPTED,
        detail={"used": action.reserved.as_detail()} if action.reserved else {},
    )
