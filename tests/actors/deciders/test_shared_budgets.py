"""The budgets that all goals of a run draw on: steps, money and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.amounts import NOTHING, Amounts
from affidavit.actors.deciders.budgets import CostBudget, SharedStepBudget, TimeBudget, TokenBudget
from affidavit.actors.deciders.chain import judge
from affidavit.actors.deciders.port import (
    MODEL_ACTION,
    Action,
    Decider,
    Denial,
    Judgement,
    Later,
    Standing,
    Trim,
)
from affidavit.actors.events import FaultClass, Usage
from affidavit.actors.pricing import Pricing


@pytest.mark.parametrize(
    ("action", "turns", "refused"),
    [
        (Action(MODEL_ACTION, opens_turn=True), 1, False),
        (Action(MODEL_ACTION, opens_turn=True), 2, True),
        (Action(MODEL_ACTION, opens_turn=True), 3, True),
        # Another attempt at a turn that has begun, and a tool call, open no turn.
        (Action(MODEL_ACTION), 2, False),
        (Action("look", tool_use_id="t1", opens_turn=True), 2, False),
    ],
)
def test_shared_steps_count_the_turns_of_all_goals(action: Action, turns: int, refused: bool) -> None:
    """A turn that would be one too many of the run is refused before it begins; nothing else is."""
    denial = SharedStepBudget(2).decide(action, Standing(turns=turns))
    assert (denial is not None) is refused
    assert denial is None or (denial.error_class, denial.error_code) == (FaultClass.BUDGET_EXCEEDED, "steps")


@pytest.mark.parametrize(
    ("spent", "need", "refused"),
    [(0, 100, False), (40, 60, False), (40, 61, True), (100, 0, False), (101, 0, False), (101, 1, True)],
)
def test_money_is_refused_before_it_could_be_overspent(spent: int, need: int, refused: bool) -> None:
    """What is spent and what the call may cost at most must fit; a call that costs nothing passes."""
    action, standing = Action("a", reserve=Amounts(cost_micros=need)), Standing(Amounts(cost_micros=spent))
    denial = CostBudget(100, "EUR").decide(action, standing)
    assert (denial is not None) is refused
    if refused:
        assert isinstance(denial, Denial)
        assert (denial.error_class, denial.error_code) == (FaultClass.BUDGET_EXCEEDED, "cost")


def test_a_refusal_of_money_names_the_amounts_as_people_write_them() -> None:
    """In the currency's own unit and without needless zeros."""
    action, standing = (
        Action("a", reserve=Amounts(cost_micros=1_500_000)),
        Standing(Amounts(cost_micros=9_000_001)),
    )
    denial = CostBudget(10_000_000, "EUR").decide(action, standing)
    assert isinstance(denial, Denial)
    assert denial.reason == "9.000001 of 10 EUR are used and this call may cost 1.5"


@pytest.mark.parametrize(
    ("limit", "spent", "own", "held"),
    [(1000, 0, 300, 300), (1000, 800, 300, 200), (1000, 0, 0, 1000), (1000, 999, 0, 1)],
)
def test_time_is_trimmed_to_what_is_left(limit: int, spent: int, own: int, held: int) -> None:
    """An action holds back its own limit, or what is left of the budget if that is less; other reservations stay."""
    action = Action("a", reserve=Amounts(tokens=7), limit_ms=own)
    trim = TimeBudget(limit).decide(action, Standing(Amounts(ms=spent)))
    assert trim == Trim(Amounts(tokens=7, ms=held))


@pytest.mark.parametrize("spent", [1000, 1001])
def test_time_that_is_used_up_refuses(spent: int) -> None:
    """With nothing left, nothing more begins."""
    denial = TimeBudget(1000).decide(Action("a"), Standing(Amounts(ms=spent)))
    assert isinstance(denial, Denial)
    assert (denial.error_class, denial.error_code) == (FaultClass.BUDGET_EXCEEDED, "time")


@given(
    limits=st.lists(st.integers(1, 1000), min_size=1, max_size=3),
    spent=st.integers(0, 999),
    own=st.integers(0, 2000),
)
def test_of_several_budgets_of_time_the_tightest_holds(limits: list[int], spent: int, own: int) -> None:
    """However many there are and in whatever order, what is held back fits into each of them."""
    judgement = judge(
        [TimeBudget(limit) for limit in limits], Action("a", limit_ms=own), Standing(Amounts(ms=spent))
    )
    if isinstance(judgement, Denial):
        assert spent >= min(limits)
    else:
        assert isinstance(judgement, Judgement)
        assert 0 < judgement.action.reserve.ms + spent <= min(limits)


BUDGETS: Sequence[tuple[Decider, Action, Callable[[int], Amounts]]] = (
    (TokenBudget(10), Action("a", reserve=Amounts(tokens=4)), lambda count: Amounts(tokens=count)),
    (CostBudget(10, "EUR"), Action("a", reserve=Amounts(cost_micros=4)), lambda count: Amounts(0, count)),
    (TimeBudget(10), Action("a", limit_ms=4), lambda count: Amounts(ms=count)),
)


@pytest.mark.parametrize(("budget", "action", "amount"), BUDGETS, ids=["tokens", "money", "time"])
def test_what_does_not_fit_only_because_others_hold_it_back_waits(
    budget: Decider, action: Action, amount: Callable[[int], Amounts]
) -> None:
    """Held back, it may come back; used, it does not, and the action is refused."""
    assert budget.decide(action, Standing(spent=amount(10), held=amount(5))) == Later()
    used = budget.decide(action, Standing(spent=amount(10)))
    assert isinstance(used, Denial)
    assert not isinstance(budget.decide(action, Standing(spent=amount(6), held=amount(6))), Denial | Later)


COUNTS = st.integers(0, 10**7)


@given(
    prices=st.tuples(COUNTS, COUNTS, COUNTS, COUNTS),
    used=st.tuples(COUNTS, COUNTS),
    cached=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_what_a_turn_costs_is_never_more_than_what_was_held_back_for_as_many_tokens(
    prices: tuple[int, int, int, int], used: tuple[int, int], cached: tuple[float, float]
) -> None:
    """However much of the input the cache read or wrote, and however the prices stand to each other."""
    pricing = Pricing(*prices)
    read = int(used[0] * cached[0])
    usage = Usage(used[0], used[1], read, int((used[0] - read) * cached[1]))
    assert 0 <= pricing.cost(usage) <= pricing.most(*used)


def test_a_fraction_of_a_micro_is_charged_as_a_whole_one() -> None:
    """Rounded up, so that many small turns cannot pass a budget by rounding."""
    assert Pricing(1, 0, 0, 0).cost(Usage(1, 0)) == 1
    assert Pricing(1_000_000, 0, 0, 0).cost(Usage(3, 0)) == 3


AMOUNTS = st.builds(Amounts, COUNTS, COUNTS, COUNTS)


@given(one=AMOUNTS, two=AMOUNTS)
def test_amounts_survive_their_payload_form(one: Amounts, two: Amounts) -> None:
    """What is written on an event is read back, and sums are exact."""
    assert Amounts.read(one.as_detail()) == one
    assert one + two == two + one
    assert one + NOTHING == one


@pytest.mark.parametrize(
    "value", [None, 3, "x", {"tokens": True}, {"tokens": -1}, {"tokens": "3"}, {"ms": 1.5}]
)
def test_what_is_no_count_is_read_as_nothing(value: object) -> None:
    """A foreign program's payload can neither give a budget back nor fail a reader."""
    assert Amounts.read(value) == NOTHING
