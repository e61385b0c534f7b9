"""The view model: a pure fold with bounded memory, that keeps arguments exact and forgets pieces once the answer is there."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.amounts import Amounts
from affidavit.actors.deltas import LiveText
from affidavit.actors.events import Event, Kind
from affidavit.actors.projection import project
from affidavit.tools.console.budget import Limits
from affidavit.tools.console.entries import MAX_ENTRIES, MAX_TEXT, Role
from affidavit.tools.console.governance_region import _budget_words
from affidavit.tools.console.view import MAX_DRAFT, MAX_DRAFTS, View, fold, fold_live
from tests.strategies import garbage_events
from tests.tools.console.streams import ARGS, PAYMENT, RUN, finished, numbered, reading, view_of, waiting


def test_the_status_is_the_projection_and_nothing_of_our_own() -> None:
    """What the screens say of a run is what every other view folds."""
    assert view_of(finished()).status == project(numbered(finished()))


@given(st.lists(garbage_events(), max_size=12))
def test_any_event_can_be_folded(events: list[Event]) -> None:
    """No event makes the fold fail, and a second time changes nothing."""
    view = View(RUN)
    for event in numbered(events):
        view = fold(view, event)
        assert fold(view, event) is view
    assert view.seq == len(events)


def test_a_result_joins_its_call() -> None:
    """A call and its result are one entry; a result whose call is not known has one of its own."""
    tools = [entry for entry in view_of(reading()).entries if entry.role is Role.TOOL]
    assert [(entry.name, entry.failed) for entry in tools] == [
        ("list_dir", False),
        ("shell", True),
        ("http_fetch", True),
    ]
    alone = view_of([Event(Kind.TOOL_RESULT, tool="x", tool_use_id="y", result="z")])
    assert [(entry.name, entry.result) for entry in alone.entries] == [("x", "z")]


def test_the_arguments_of_what_waits_are_exact_or_withheld() -> None:
    """They are those of the call that the request is bound to; of another call they are not shown."""
    (pending,) = view_of(waiting()).waiting.pending
    assert (pending.arguments, pending.args) == (PAYMENT, ARGS)
    events = waiting()
    swapped = [
        replace(event, args_digest=bytes(32)) if event.tool == "pay_invoice" else event for event in events
    ]
    (other,) = view_of(swapped).waiting.pending
    assert other.arguments is None


def test_what_was_decided_waits_no_longer() -> None:
    """Neither an approved call nor one that was refused stays in the panel."""
    assert view_of(finished()).waiting.pending == ()
    refused = Event(Kind.ACTION_REJECTED, action="pay_invoice", call=7)
    assert view_of([*waiting(), refused]).waiting.pending == ()


def test_the_budget_is_what_the_record_says() -> None:
    """Steps and tokens against the goal's limits; what running actions hold back is not left."""
    budget = view_of([*reading(), *waiting()[len(reading()) : len(reading()) + 2]]).budget
    assert (budget.steps, budget.max_steps) == (3, 16)
    assert budget.tokens_left == 50_000 - budget.used.tokens - 4_000


def test_what_the_policy_gives_is_told_by_what_is_left_of_it() -> None:
    """Money, time, tokens and the steps of all goals; a changed policy's budget takes the place of the one before."""
    stated = {"steps": 40, "tokens": 900, "cost_micros": 2_500_000, "ms": 30_000, "currency": "EUR"}
    spec = {"objective": "x", "max_steps": 16, "max_tokens": 5_000}
    events = [
        Event(Kind.SESSION_STARTED, text="x", detail={"spec": spec, "budget": stated}),
        Event(Kind.TURN_STARTED, turn=1),
        Event(Kind.TURN_STARTED, turn=1, goal="c1"),
        Event(Kind.ACTION_ADMITTED, call=1, detail={"reserved": {"tokens": 300, "ms": 5_000}}),
        Event(
            Kind.ACTION_COMPLETED, call=2, detail={"used": {"tokens": 100, "cost_micros": 4_200, "ms": 3_000}}
        ),
    ]
    budget = view_of(events).budget
    assert (budget.steps, budget.all_steps, budget.limits.steps) == (1, 2, 40)
    assert (budget.tokens, budget.left) == (900, Amounts(500, 2_495_800, 22_000))
    assert list(_budget_words(budget)) == [
        "steps 1 of 16, 2 of 40 in all",
        "tokens 100 used, 300 held, 500 of 900 left",
        "work 3.0 s used, 22.0 of 30 s left",
        "cost 0.0042 used, 2.4958 of 2.5 EUR left",
    ]
    changed = Event(Kind.GOAL_PHASE, detail={"phase": "running", "digests": {}})
    assert view_of([*events, changed]).budget.limits == Limits()


def test_memory_is_bounded() -> None:
    """However long a run and its texts, the view keeps the newest entries and the beginnings of long texts."""
    long = Event(Kind.ASSISTANT, text="x" * (3 * MAX_TEXT))
    view = view_of([long] * (MAX_ENTRIES + 50))
    assert len(view.entries) == MAX_ENTRIES
    assert view.entries[-1].seq == MAX_ENTRIES + 50
    assert max(len(entry.text) for entry in view.entries) < MAX_TEXT + 200
    assert "the record has them all" in view.entries[-1].text


def piece(text: str, *, call: int = 1, goal: str = "", offset: int = 0, thinking: bool = False) -> LiveText:
    """A piece of an answer."""
    return LiveText(goal, 1, call, thinking, offset, text)


def test_pieces_are_joined_until_the_answer_is_there() -> None:
    """Thoughts give way to words, another attempt begins anew, and the recorded answer takes the draft's place."""
    view = fold_live(View(RUN), piece("hm", thinking=True))
    assert view.drafts[0].thinking
    view = fold_live(fold_live(view, piece("one ")), piece("two", offset=4))
    assert [(draft.text, draft.thinking) for draft in view.drafts] == [("one two", False)]
    view = fold_live(view, piece("again", call=2))
    assert fold_live(view, piece("late", call=1)) is view
    assert [draft.text for draft in view.drafts] == ["again"]
    view = fold(view, Event(Kind.ASSISTANT, seq=1, text="again and whole"))
    assert view.drafts == ()


def test_drafts_are_bounded() -> None:
    """Only so many answers, and of each only so much, are kept while they are made."""
    view = View(RUN)
    for number in range(MAX_DRAFTS + 5):
        view = fold_live(view, piece("x" * (2 * MAX_DRAFT), goal=f"g{number}"))
    assert len(view.drafts) == MAX_DRAFTS
    assert max(len(draft.text) for draft in view.drafts) == MAX_DRAFT
