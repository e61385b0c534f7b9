"""The projection as properties over any stream, and over whole plausible runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.projection import (
    MAX_EGRESS,
    MAX_LEDGER,
    ActionEntry,
    ActionState,
    FanoutState,
    Projection,
    RecordState,
    project,
    reduce,
)
from tests import strategies

STREAMS = st.lists(strategies.garbage_events(), max_size=30) | strategies.runs()
BADGE = list(RecordState)


def _without_bound(events: list[Event]) -> list[ActionEntry]:
    """The action ledger as it would be if nothing ever fell off, worked out the slow and plain way."""
    rows: list[ActionEntry] = []
    states = {
        Kind.ACTION_ADMITTED: ActionState.RUNNING,
        Kind.ACTION_COMPLETED: ActionState.DONE,
        Kind.ACTION_REJECTED: ActionState.BLOCKED,
    }
    for event in events:
        state = states.get(event.kind)  # type: ignore[call-overload]  # a str equals its Kind
        if state is None:
            continue
        fault = "" if state is ActionState.RUNNING else event.fault
        found = [index for index, row in enumerate(rows) if event.call and row.call == event.call]
        if not found:
            rows.append(ActionEntry(event.call, event.action, event.trust, state, fault))
        elif rows[found[0]].state is ActionState.RUNNING and state is not ActionState.RUNNING:
            row = rows[found[0]]
            rows[found[0]] = ActionEntry(
                row.call, row.action or event.action, row.trust or event.trust, state, fault
            )
    return rows


@given(STREAMS)
def test_folding_on_from_any_prefix_gives_the_same_status(events: list[Event]) -> None:
    """A live client, a replay and a client that comes back at any cursor compute the same status."""
    whole = project(events)
    for cut in range(len(events) + 1):
        p = project(events[:cut])
        for event in events[cut:]:
            p = reduce(p, event)
        assert whole == p


@given(STREAMS)
def test_reduce_leaves_the_status_it_was_given_as_it_was(events: list[Event]) -> None:
    """`reduce` is pure: the status before an event is still the status of the events before it."""
    seen = [Projection()]
    for event in events:
        seen.append(reduce(seen[-1], event))
    assert [project(events[:count]) for count in range(len(events) + 1)] == seen
    assert all(hash(p) is not None for p in seen)


@given(STREAMS, strategies.unknown_kinds(), strategies.events(), st.integers(0, 1 << 40))
def test_an_unknown_kind_moves_nothing_but_events(
    events: list[Event], kind: str, event: Event, seq: int
) -> None:
    """A kind from a later vocabulary leaves every field but `events` alone, whatever its fields hold."""
    before = project(events)
    after = reduce(before, replace(event, kind=kind, seq=seq))
    assert replace(before, events=max(before.events, seq)) == after


@given(STREAMS)
def test_the_badge_never_goes_back(events: list[Event]) -> None:
    """Recording, sealed, verified: the badge and each child's only move on, `sealed_through` only grows."""
    p = Projection()
    for event in events:
        after = reduce(p, event)
        assert BADGE.index(after.record) >= BADGE.index(p.record)
        assert after.sealed_through >= p.sealed_through
        for child, later in zip(p.fanout, after.fanout, strict=False):
            assert child.id == later.id
            assert BADGE.index(later.seal) >= BADGE.index(child.seal)
        p = after


@given(STREAMS)
def test_counts_are_those_of_the_events(events: list[Event]) -> None:
    """Every scalar count equals the number of its events, and usage is the sum of the completed turns'."""
    p = project(events)
    kinds = Counter(event.kind for event in events)
    egress = [event.allowed for event in events if event.kind == Kind.EGRESS_DECISION]
    turns = [event for event in events if event.kind == Kind.TURN_COMPLETED]
    assert (p.admitted, p.completed, p.rejected) == (
        kinds[Kind.ACTION_ADMITTED],
        kinds[Kind.ACTION_COMPLETED],
        kinds[Kind.ACTION_REJECTED],
    )
    assert (p.egress_allowed, p.egress_blocked) == (egress.count(True), egress.count(False))
    assert len(turns) == p.turns
    assert sum((turn.usage for turn in turns if turn.usage), Usage()) == p.usage


@given(STREAMS)
def test_ledgers_are_the_tail_of_what_they_would_be_without_a_bound(events: list[Event]) -> None:
    """A ledger holds the newest rows, newest last, and what fell off never comes back."""
    p = project(events)
    assert _without_bound(events)[-MAX_LEDGER:] == list(p.actions)
    dials = [event for event in events if event.kind == Kind.EGRESS_DECISION]
    assert [(dial.host, dial.allowed, dial.reason) for dial in dials[-MAX_EGRESS:]] == [
        (row.host, row.allowed, row.reason) for row in p.egress
    ]


ACTIONS = st.builds(
    Event,
    kind=st.sampled_from([str(Kind.ACTION_ADMITTED)] * 3 + [Kind.ACTION_COMPLETED, Kind.ACTION_REJECTED]),
    call=st.integers(0, 150),
    action=st.sampled_from(["", "pay", "read"]),
    trust=strategies.TRUSTS,
    error_class=st.sampled_from(["", "forbidden"]),
)


@given(st.lists(ACTIONS, min_size=MAX_LEDGER, max_size=3 * MAX_LEDGER))
def test_the_action_ledger_is_the_tail_of_an_unbounded_one_when_it_overflows(events: list[Event]) -> None:
    """The same where rows fall off, and outcomes come late, doubled or never admitted."""
    p = project(events)
    assert _without_bound(events)[-MAX_LEDGER:] == list(p.actions)


@given(strategies.runs())
def test_in_a_plausible_run_counts_and_ledger_agree(events: list[Event]) -> None:
    """While nothing fell off, the rows by state are the counts; running rows are in flight."""
    p = project(events)
    states = Counter(row.state for row in p.actions)
    assert len(p.actions) <= MAX_LEDGER
    assert (p.admitted - p.completed, p.completed, p.rejected) == (
        states[ActionState.RUNNING],
        states[ActionState.DONE],
        states[ActionState.BLOCKED],
    )


@given(strategies.runs())
def test_a_plausible_runs_tree_is_that_of_its_events(events: list[Event]) -> None:
    """Children stand in spawn order, each with its own turns, refusals and answer."""
    p = project(events)
    spawned = [event for event in events if event.kind == Kind.CHILD_SPAWNED]
    done = {event.child: event for event in events if event.kind == Kind.CHILD_COMPLETED}
    assert [(event.child, event.goal, event.text) for event in spawned] == [
        (child.id, child.parent, child.objective) for child in p.fanout
    ]
    for child in p.fanout:
        own = Counter(event.kind for event in events if event.goal == child.id)
        assert (child.turns, child.blocked) == (own[Kind.TURN_COMPLETED], own[Kind.ACTION_REJECTED])
        end = done.get(child.id)
        if end is None:
            assert (child.state, child.result, child.completed_seq) == (FanoutState.RUNNING, "", 0)
        else:
            state = FanoutState.FAILED if end.is_error else FanoutState.DONE
            assert (child.state, child.result, child.completed_seq) == (state, end.result, end.seq)


@given(strategies.runs())
def test_a_child_is_covered_only_by_a_size_that_reaches_its_end(events: list[Event]) -> None:
    """A child's seal is the furthest of the record events, after its end, whose size reaches that end."""
    for child in project(events).fanout:
        reached = [RecordState.RECORDING]
        for event in events[child.completed_seq :] if child.completed_seq else ():
            size = event.detail.get("size", 0)
            assert isinstance(size, int)
            if event.kind in {Kind.RECORD_SEALED, Kind.RECORD_VERIFIED} and size >= child.completed_seq:
                reached.append(
                    RecordState.SEALED if event.kind == Kind.RECORD_SEALED else RecordState.VERIFIED
                )
        assert max(reached, key=BADGE.index) == child.seal


@given(strategies.runs())
def test_events_is_the_last_seq_that_is_no_record_event(events: list[Event]) -> None:
    """`events` is what a seal has to reach for the run to be covered, so seals themselves do not move it."""
    p = project(events)
    others = [event.seq for event in events if not event.kind.startswith("record.")]
    assert max(others) == p.events
    assert (p.sealed_events == p.events) == (p.sealed_through >= p.events)


@given(strategies.runs())
def test_terminal_result_and_err_are_those_of_the_latest_continuation(events: list[Event]) -> None:
    """A terminal event sets them and a user's message resets them; nothing else touches them."""
    p = project(events)
    marks = [event for event in events if event.kind in {Kind.CONVERGED, Kind.STALLED, Kind.USER_MESSAGE}]
    expected = {
        Kind.CONVERGED: (True, "settled", ""),
        Kind.STALLED: (True, "", "out of budget"),
        Kind.USER_MESSAGE: (False, "", ""),
    }
    last = Kind(marks[-1].kind) if marks else Kind.USER_MESSAGE
    assert expected[last] == (p.terminal, p.result, p.err)


@given(strategies.garbage_events())
def test_no_event_makes_the_fold_fail(event: Event) -> None:
    """`reduce` is total: any event gives a status with every field of its own type."""
    p = reduce(Projection(), event)
    fresh = Projection()
    assert all(
        isinstance(getattr(p, item.name), type(getattr(fresh, item.name))) for item in fields(Projection)
    )
