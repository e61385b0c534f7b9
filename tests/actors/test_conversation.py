"""The fold that a mission continues from: total over anything, deaf to children, exact about what is open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import Phase
from affidavit.actors.recovery import closing_events, ending_events
from tests import strategies


@given(st.lists(strategies.garbage_events(), max_size=30))
def test_the_fold_is_total(events: list[Event]) -> None:
    """No stream, however strange, makes the fold or the closing of it fail."""
    conversation = fold(tuple(events))
    closing_events(conversation)
    ending_events(conversation)


@given(strategies.runs())
def test_a_fold_can_be_cut_anywhere(events: list[Event]) -> None:
    """Folding a prefix and then the rest is folding the whole."""
    for cut in range(len(events) + 1):
        conversation = fold(tuple(events[:cut]))
        for event in events[cut:]:
            conversation.apply(event)
        assert conversation == fold(tuple(events))


@given(strategies.runs())
def test_closing_a_run_leaves_no_open_action(events: list[Event]) -> None:
    """Whatever was open, its closing events close it, its ending answers each call, and nothing is found again."""
    conversation = fold(tuple(events))
    for event in closing_events(conversation):
        conversation.apply(event)
    assert conversation.book.open_actions == {}
    for event in ending_events(conversation):
        conversation.apply(event)
    assert conversation.pending == {}
    assert closing_events(conversation) == ()


def test_a_childs_events_count_for_the_budget_alone() -> None:
    """A child's words and calls are no part of its parent's conversation; its tokens and call numbers are shared."""
    conversation = Conversation()
    conversation.apply(Event(Kind.SESSION_STARTED, text="x"))
    before = list(conversation.messages)
    for event in (
        Event(Kind.TURN_STARTED, turn=1, goal="kid"),
        Event(Kind.ACTION_ADMITTED, call=5, goal="kid", detail={"reserved": {"tokens": 9}}),
        Event(Kind.ACTION_COMPLETED, call=5, goal="kid", detail={"used": {"tokens": 7}}),
        Event(Kind.ASSISTANT, text="hello", goal="kid"),
        Event(Kind.TOOL_CALL, tool="look", tool_use_id="a", goal="kid"),
        Event(Kind.GOAL_PHASE, goal="kid", detail={"phase": "converged"}),
    ):
        conversation.apply(event)
    assert conversation.messages == before
    assert (conversation.turn, conversation.pending, conversation.phase) == (0, {}, Phase.PENDING)
    assert (conversation.book.used.tokens, conversation.book.last_call, conversation.book.open_actions) == (
        7,
        5,
        {},
    )
