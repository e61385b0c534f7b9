"""Closes what a run that stopped half-way left open on its record. Pure: the fold of the run in, the closing events out.

Only the owner of a run may record them. They say what is known: that the action was admitted, and that its end was not seen.
Each takes the conversation of the run's root goal, and sees to all its goals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from affidavit.actors.conversation import Conversation, PendingCall
from affidavit.actors.crew import Stop
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalStatus, Phase
from affidavit.actors.run_book import OpenAction

INTERRUPTED_TEXT = (
    "interrupted: this call had begun when the run stopped, and whether it took effect is unknown. "
    "It was not run again."
)
CANCELLED_TEXT = "cancelled: the run was stopped before this call ended."
CANCELLED_ABOVE = GoalStatus(
    Phase.STALLED, "the goal that it worked for ended before it", error_class=FaultClass.CANCELLED
)


def turn_completed(conversation: Conversation) -> Event:
    """Return the event that ends the open turn."""
    return Event(
        Kind.TURN_COMPLETED,
        goal=conversation.goal,
        turn=conversation.turn,
        stop_reason=conversation.stop_reason,
        usage=conversation.turn_usage,
    )


def result_events(conversation: Conversation, *results: Event) -> tuple[Event, ...]:
    """Return tool results, and with them the end of the turn if they answer its last open calls."""
    answered = {result.tool_use_id for result in results}
    left = conversation.pending.keys() - answered
    return results if left or not conversation.turn_open else (*results, turn_completed(conversation))


def closing_events(root: Conversation) -> tuple[Event, ...]:
    """Return the ends of all actions that have begun and not ended, as interrupted.

    A tool call that is not idempotent is answered too, so that nobody runs it again. One that is stays open, and resuming runs
    it anew; so does one that a goal in flight works for.
    """
    events = list(_interrupted(root))
    for each in root.going:
        lost = _lost(each)
        results = [
            _unanswered(each, call, INTERRUPTED_TEXT) for call in each.pending.values() if call.id in lost
        ]
        events += result_events(each, *results) if results else ()
    return tuple(events)


def ending_events(root: Conversation) -> tuple[Event, ...]:
    """Return what a run that ends still owes its transcript: each begun action's end, each open call's answer, each child's end.

    Calls that had begun and must not be repeated are answered as interrupted, all others as cancelled.
    """
    return (*_interrupted(root), *_endings(root, root, CANCELLED_ABOVE))


def child_ending_events(
    root: Conversation,
    child: Conversation,
    status: GoalStatus,
    *,
    principal: str = "",
    causation_id: str = "",
) -> tuple[Event, ...]:
    """Return the end of a goal that work was handed to, with what it owes: see `ending_events`.

    Args:
        root: The run.
        child: The goal, which has not folded back.
        status: How it ended.
        principal: Who asked for that; empty where nobody did.
        causation_id: The request that this is the effect of.
    """
    below = {each.goal for each in _subtree(root, child)}
    ends = (event for event in _interrupted(root) if event.goal in below)
    events = (*ends, *_endings(root, child, CANCELLED_ABOVE), *_fold_back(root, child, status))
    # A runtime other than ours may hand out work of its own accord, which answers no tool call.
    answer = result_events(root.above(child), _answer(root, child, status)) if child.served else ()
    return tuple(
        replace(event, principal=principal, causation_id=causation_id)
        if event.kind == Kind.GOAL_PHASE and event.goal == child.goal
        else event
        for event in (*events, *answer)
    )


def child_cancelled(root: Conversation, goal: str, stop: Stop) -> tuple[Event, ...]:
    """Return the end of a goal that somebody wants ended; nothing of one that has ended, or that the fold does not know."""
    child = root.goals.get(goal)
    if child is None or child.folded_back:
        return ()
    status = GoalStatus(Phase.STALLED, stop.reason, error_class=FaultClass.CANCELLED)
    return child_ending_events(root, child, status, principal=stop.principal, causation_id=stop.causation_id)


def _endings(root: Conversation, top: Conversation, status: GoalStatus) -> Iterator[Event]:
    """Answer what is open below a goal and on it, each goal after those that it waits for."""
    for each in _subtree(root, top):
        lost = _lost(each)
        results = [
            _answer(root, root.goals[each.in_flight[call.id]], status)
            if call.id in each.in_flight
            else _unanswered(each, call, INTERRUPTED_TEXT if call.id in lost else CANCELLED_TEXT)
            for call in each.pending.values()
        ]
        yield from result_events(each, *results) if results else ()
        if each is not top and not each.folded_back:
            yield from _fold_back(root, each, status)


def _subtree(root: Conversation, top: Conversation) -> list[Conversation]:
    """Return the goals at and below one that owe something still, each after those that it waits for.

    One that another runtime has let fold back may owe answers, and those below it their ends.
    """
    every = (*reversed(root.goals.values()), root)
    owing = (each for each in every if not each.folded_back or each.pending)
    return [each for each in owing if _is_below(root, each, top)]


def _is_below(root: Conversation, goal: Conversation, top: Conversation) -> bool:
    """Tell whether a goal is one, or below it."""
    while goal is not top and goal is not root:
        goal = root.above(goal)
    return goal is top


def _fold_back(root: Conversation, child: Conversation, status: GoalStatus) -> tuple[Event, ...]:
    detail: dict[str, object] = {
        "phase": str(status.phase),
        "message": status.message,
        "steps": status.steps or child.turn,
    }
    return (
        Event(
            Kind.GOAL_PHASE,
            goal=child.goal,
            error_class=status.error_class,
            error_code=status.error_code,
            detail=detail,
        ),
        Event(
            Kind.CHILD_COMPLETED,
            goal=child.parent or _name(root),
            child=child.goal,
            tool_use_id=child.served,
            result=status.message,
            is_error=status.phase is not Phase.CONVERGED,
            error_class=status.error_class,
            error_code=status.error_code,
        ),
    )


def _answer(root: Conversation, child: Conversation, status: GoalStatus) -> Event:
    """Return the result of the tool call that a child has worked for."""
    above = root.above(child)
    call = above.pending.get(child.served)
    failed = status.phase is not Phase.CONVERGED
    return Event(
        Kind.TOOL_RESULT,
        goal=above.goal,
        tool_use_id=child.served,
        tool=call.name if call else "",
        turn=call.turn if call else above.turn,
        result=f"{child.goal} failed: {status.message}" if failed else status.message,
        is_error=failed,
    )


def _name(root: Conversation) -> str:
    return root.spec.name if root.spec is not None else ""


def _lost(conversation: Conversation) -> set[str]:
    """Return the tool calls that have begun and must not be run again."""
    begun = conversation.book.open_actions.values()
    return {
        action.tool_use_id
        for action in begun
        if not action.idempotent and action.goal == conversation.goal and action.tool_use_id
    }


def unanswered(tool_use_id: str, tool: str, turn: int, text: str, goal: str = "") -> Event:
    """Return the result of a call that was given none."""
    return Event(
        Kind.TOOL_RESULT,
        goal=goal,
        tool_use_id=tool_use_id,
        tool=tool,
        turn=turn,
        result=text,
        is_error=True,
    )


def _unanswered(conversation: Conversation, call: PendingCall, text: str) -> Event:
    return unanswered(call.id, call.name, call.turn, text, conversation.goal)


def _interrupted(root: Conversation) -> Iterator[Event]:
    return (_interrupted_end(action) for action in root.book.open_actions.values())


def _interrupted_end(action: OpenAction) -> Event:
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
