"""The sentences of the session contract and of the design about the projection, one example each."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from affidavit.actors.events import Event, Usage
from affidavit.actors.projection import (
    MAX_EGRESS,
    MAX_LEDGER,
    ActionEntry,
    ActionState,
    EgressEntry,
    FanoutChild,
    FanoutState,
    Projection,
    RecordState,
    project,
)

RUNNING, DONE, BLOCKED = ActionState.RUNNING, ActionState.DONE, ActionState.BLOCKED


def admitted(call: int, **fields: object) -> Event:
    """An admission."""
    return Event("action.admitted", call=call, **fields)  # type: ignore[arg-type]  # by name


def completed(call: int, **fields: object) -> Event:
    """A completion."""
    return Event("action.completed", call=call, **fields)  # type: ignore[arg-type]  # by name


def rejected(call: int, **fields: object) -> Event:
    """A refusal."""
    return Event("action.rejected", call=call, **fields)  # type: ignore[arg-type]  # by name


def record(kind: str, seq: int, size: object) -> Event:
    """A record.* event over events 1..size."""
    return Event(f"record.{kind}", seq=seq, detail=MappingProxyType({"size": size}))


def family(*last: Event) -> list[Event]:
    """Two children, the second of which folds back at seq 4, and then `last`."""
    return [
        Event("child.spawned", seq=1, goal="run", child="c1", text="one"),
        Event("child.spawned", seq=2, goal="c1", child="c2", text="two"),
        Event("turn.completed", seq=3, goal="c2", turn=1),
        Event("child.completed", seq=4, goal="c1", child="c2", result="two is done"),
        *last,
    ]


def test_no_events_is_a_recording_run_with_no_activity() -> None:
    """`Projection()` is recording and otherwise zero; projecting nothing gives it."""
    assert Projection() == project([])
    assert Projection().record == RecordState.RECORDING


@pytest.mark.parametrize(
    ("events", "field", "expected"),
    [
        ([Event("session.started", text="settle")], "objective", "settle"),
        ([Event("session.converged", text="done")], "result", "done"),
        ([Event("session.converged", text="done")], "terminal", True),
        ([Event("session.converged", text="done")], "err", ""),
        ([Event("session.stalled", err="a"), Event("session.converged", text="b")], "err", ""),
        ([Event("session.converged", text="a"), Event("session.stalled", err="b")], "result", ""),
        ([Event("session.stalled", err="no budget")], "terminal", True),
        ([Event("session.stalled", err="no budget")], "err", "no budget"),
        ([Event("session.converged", text="a"), Event("user.message", text="b")], "terminal", False),
        ([Event("session.converged", text="a"), Event("user.message", text="b")], "result", ""),
        ([Event("session.stalled", err="a"), Event("user.message", text="b")], "err", ""),
        ([Event("session.started", text="a"), Event("user.message", text="b")], "objective", "a"),
        ([Event("turn.completed", usage=Usage(3, 2, 1)), Event("turn.completed")], "turns", 2),
        ([Event("turn.completed", usage=Usage(3, 2, 1))] * 2, "usage", Usage(6, 4, 2)),
        ([Event("assistant.message", usage=Usage(3, 2, 1)), Event("turn.started")], "usage", Usage()),
        ([admitted(1, trust="trusted")], "containment", "trusted"),
        ([admitted(1, trust="trusted"), rejected(2, trust="untrusted")], "containment", "untrusted"),
        ([admitted(1, trust="trusted"), completed(1, trust="untrusted")], "containment", "trusted"),
        ([admitted(1, trust="trusted"), admitted(2)], "containment", "trusted"),
        ([completed(1, trust="trusted")], "containment", ""),
        ([Event("net.egress", host="192.0.2.1", allowed=True)], "egress_allowed", 1),
        ([Event("net.egress", host="10.0.0.1")], "egress_blocked", 1),
        (
            [Event("net.egress", host="10.0.0.1", reason="private")],
            "egress",
            (EgressEntry("10.0.0.1", allowed=False, reason="private"),),
        ),
        ([record("sealed", 5, 4)], "record", RecordState.SEALED),
        ([record("sealed", 5, 4)], "sealed_through", 4),
        ([record("sealed", 5, "4")], "sealed_through", 0),
        ([record("sealed", 5, True)], "sealed_through", 0),
        ([record("sealed", 5, 4), record("sealed", 6, 2)], "sealed_through", 4),
        ([record("verified", 6, 4)], "record", RecordState.VERIFIED),
        ([record("verified", 6, 4), record("sealed", 7, 6)], "record", RecordState.VERIFIED),
        ([record("rejected", 6, 4)], "record", RecordState.RECORDING),
        ([record("sealed", 5, 4), record("rejected", 6, 4)], "record", RecordState.SEALED),
        ([Event("session.started", seq=1), record("sealed", 2, 1), record("other", 3, 1)], "events", 1),
        ([Event("session.started", seq=1), Event("never.heard.of", seq=2)], "events", 2),
    ],
)
def test_one_sentence_one_field(events: list[Event], field: str, expected: object) -> None:
    """Each row is one sentence of the contract about one field."""
    assert expected == getattr(project(events), field)


@pytest.mark.parametrize(
    ("events", "rows"),
    [
        pytest.param(
            [admitted(1, action="pay", trust="trusted")],
            [ActionEntry(1, "pay", "trusted", RUNNING)],
            id="an admission runs",
        ),
        pytest.param(
            [admitted(1, action="pay", trust="trusted"), completed(1, action="x", trust="y")],
            [ActionEntry(1, "pay", "trusted", DONE)],
            id="an outcome keeps the admission's name and trust",
        ),
        pytest.param(
            [admitted(1), completed(1, action="pay", trust="trusted")],
            [ActionEntry(1, "pay", "trusted", DONE)],
            id="an outcome names what its admission left unnamed",
        ),
        pytest.param(
            [admitted(1, action="pay"), completed(1, error_class="transient")],
            [ActionEntry(1, "pay", "", DONE, "transient")],
            id="a failed completion carries its fault",
        ),
        pytest.param(
            [admitted(1, action="pay"), rejected(1, error_class="forbidden", error_code="capability_denied")],
            [ActionEntry(1, "pay", "", BLOCKED, "capability_denied")],
            id="a refusal after an admission updates its row, with the finest fault",
        ),
        pytest.param(
            [rejected(7, action="pay", trust="untrusted", error_class="forbidden")],
            [ActionEntry(7, "pay", "untrusted", BLOCKED, "forbidden")],
            id="a refusal never admitted adds a blocked row",
        ),
        pytest.param(
            [completed(7, action="pay")],
            [ActionEntry(7, "pay", "", DONE)],
            id="a completion never admitted is not hidden",
        ),
        pytest.param(
            [admitted(0), completed(0), rejected(0)],
            [ActionEntry(0, "", "", RUNNING), ActionEntry(0, "", "", DONE), ActionEntry(0, "", "", BLOCKED)],
            id="call 0 always appends",
        ),
        pytest.param(
            [admitted(1), completed(1), rejected(1, error_class="forbidden"), admitted(1)],
            [ActionEntry(1, "", "", DONE)],
            id="the first outcome stands",
        ),
        pytest.param(
            [admitted(1), admitted(2), completed(1)],
            [ActionEntry(1, "", "", DONE), ActionEntry(2, "", "", RUNNING)],
            id="a row keeps its place",
        ),
    ],
)
def test_action_rows(events: list[Event], rows: list[ActionEntry]) -> None:
    """The action ledger pairs admissions with outcomes by call."""
    assert rows == list(project(events).actions)


def test_an_outcome_whose_row_fell_off_counts_but_adds_none() -> None:
    """Late outcomes of calls beyond a full ledger are counted and leave the ledger as it is."""
    events = [admitted(call) for call in range(1, MAX_LEDGER + 3)]
    before = project(events)
    after = project([*events, completed(1), rejected(2)])
    assert before.actions == after.actions
    assert (after.completed, after.rejected) == (1, 1)
    assert list(range(3, MAX_LEDGER + 3)) == [row.call for row in after.actions]


def test_a_late_refusal_that_was_never_admitted_still_adds_its_row() -> None:
    """An approval that waited through a whole ledger of later calls and is refused then has a blocked row."""
    events = [admitted(call) for call in range(2, MAX_LEDGER + 9)]
    after = project([*events, rejected(1, error_class="needs_approval")])
    assert ActionEntry(1, "", "", BLOCKED, "needs_approval") == after.actions[-1]
    assert len(after.actions) == MAX_LEDGER


def test_the_egress_ledger_keeps_the_newest() -> None:
    """The egress ledger is capped, older decisions fall off the front, and the counts go on."""
    p = project([Event("net.egress", host=str(number)) for number in range(MAX_EGRESS + 2)])
    assert [str(number) for number in range(2, MAX_EGRESS + 2)] == [row.host for row in p.egress]
    assert p.egress_blocked == MAX_EGRESS + 2


def test_the_tree_is_flat_in_spawn_order_with_parents() -> None:
    """Each child names its parent, counts its own turns and folds back with its answer."""
    assert (
        FanoutChild("c1", "run", "one"),
        FanoutChild("c2", "c1", "two", FanoutState.DONE, turns=1, result="two is done", completed_seq=4),
    ) == project(family()).fanout


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ([record("sealed", 5, 4)], RecordState.SEALED),
        ([record("sealed", 5, 3)], RecordState.RECORDING),
        ([record("sealed", 5, None)], RecordState.RECORDING),
        ([record("sealed", 5, 4), record("verified", 6, 4)], RecordState.VERIFIED),
        ([record("sealed", 5, 4), record("verified", 6, 3)], RecordState.SEALED),
        ([record("verified", 6, 4), record("sealed", 7, 6)], RecordState.VERIFIED),
        ([record("sealed", 5, 4), record("rejected", 6, 4)], RecordState.SEALED),
    ],
)
def test_a_child_is_covered_only_up_to_the_size(last: list[Event], expected: RecordState) -> None:
    """A child that folded back at seq 4 is covered by sizes of 4 and more; one that runs never is."""
    running, folded = project(family(*last)).fanout
    assert expected == folded.seal
    assert running.seal == RecordState.RECORDING


def test_a_childs_own_posture() -> None:
    """Trust and refusals of a child are those of its own actions; a completion moves neither."""
    events = [
        *family(),
        admitted(1, goal="c1", trust="semi-trusted"),
        rejected(2, goal="c1", trust="untrusted"),
        admitted(3, trust="trusted"),
        completed(1, goal="c1", trust="trusted"),
        rejected(4, goal="nobody", trust="trusted"),
    ]
    first, second = project(events).fanout
    assert (first.trust, first.blocked) == ("untrusted", 1)
    assert (second.trust, second.blocked) == ("", 0)


def test_a_failed_child_and_a_second_end() -> None:
    """A child that folds back as an error failed, and its first end stands."""
    failed = Event("child.completed", seq=5, child="c1", result="lost", is_error=True)
    again = Event("child.completed", seq=6, child="c1", result="found")
    child = project(family(failed, again)).fanout[0]
    assert (child.state, child.result, child.completed_seq) == (FanoutState.FAILED, "lost", 5)


def test_spawns_that_name_nobody_new_add_nothing() -> None:
    """A child has one row; a spawn without an id has none, so that the root's events match none."""
    events = family(Event("child.spawned", child="c1"), Event("child.spawned"), Event("turn.completed"))
    assert [child.id for child in project(events).fanout] == ["c1", "c2"]


@pytest.mark.parametrize(("size", "covered"), [(0, 0), (1, 1), (2, 2), (4, 2)])
def test_sealed_n_of_m(size: int, covered: int) -> None:
    """The view sealed n/m is n/n once the seal reaches the last event that is no record event."""
    p = project([Event("session.started", seq=1), Event("x", seq=2), record("sealed", 5, size)])
    assert (covered, 2) == (p.sealed_events, p.events)
