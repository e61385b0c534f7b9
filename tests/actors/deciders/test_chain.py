"""The chain: the first refusal stands, nobody allows what another refuses, and requests for approval add up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.amounts import Amounts
from affidavit.actors.deciders.chain import judge
from affidavit.actors.deciders.port import Action, Answer, Ask, Denial, Judgement, Later, Standing, Trim

ACTION = Action("pay", reserve=Amounts(tokens=5))


@dataclass(frozen=True)
class Says:
    """A decider that says what the test gave, and keeps the actions that it was asked about."""

    answer: Answer

    def decide(self, action: Action, standing: Standing) -> Answer:
        """Say it."""
        return self.answer


def no(code: str) -> Denial:
    """A refusal with this code."""
    return Denial("forbidden", code, code)


ANSWERS = st.one_of(
    st.none(),
    st.just(no("no")),
    st.builds(
        Ask, st.integers(1, 9), st.sampled_from([(), ("ann",), ("ann", "ben"), ("cy",)]), st.booleans()
    ),
    st.builds(Trim, st.builds(Amounts, st.integers(0, 9))),
)


@given(answers=st.lists(ANSWERS, max_size=6))
def test_one_refusal_is_enough_and_the_first_is_the_one_named(answers: list[Answer]) -> None:
    """Whoever else would allow or ask, and in whatever order."""
    outcome = judge([Says(answer) for answer in answers], ACTION, Standing())
    refusals = [answer for answer in answers if isinstance(answer, Denial)]
    if refusals:
        assert isinstance(outcome, Denial)
        assert outcome.error_code in ("no", "no_approver")
    elif isinstance(outcome, Denial):
        assert outcome.error_code == "no_approver"
    else:
        assert isinstance(outcome, Judgement)
        asks = [answer for answer in answers if isinstance(answer, Ask)]
        assert (outcome.ask is not None) is bool(asks)
        trims = [answer.reserve for answer in answers if isinstance(answer, Trim)]
        assert outcome.action.reserve == (trims[-1] if trims else ACTION.reserve)


@given(asks=st.lists(ANSWERS.filter(lambda answer: isinstance(answer, Ask)), min_size=1, max_size=4))
def test_who_approves_satisfies_every_rule_that_asks(asks: list[Ask]) -> None:
    """The earliest expiry, a signature if any rule wants one, and only those whom every rule names."""
    named = [frozenset(ask.approvers) for ask in asks if ask.approvers]
    everywhere = frozenset.intersection(*named) if named else frozenset()
    outcomes = {
        repr(_sorted(judge([Says(ask) for ask in order], ACTION, Standing()))) for order in permutations(asks)
    }
    assert len(outcomes) == 1
    outcome = judge([Says(ask) for ask in asks], ACTION, Standing())
    if named and not everywhere:
        assert isinstance(outcome, Denial)
        assert outcome.error_code == "no_approver"
        return
    assert isinstance(outcome, Judgement)
    assert outcome.ask is not None
    assert outcome.ask.expires == min(ask.expires for ask in asks)
    assert outcome.ask.signed is any(ask.signed for ask in asks)
    assert frozenset(outcome.ask.approvers) == everywhere


def _sorted(outcome: Judgement | Denial | Later) -> object:
    if isinstance(outcome, Denial):
        return outcome.error_code
    assert isinstance(outcome, Judgement)
    assert outcome.ask is not None
    return (outcome.ask.expires, sorted(outcome.ask.approvers), outcome.ask.signed)


def test_each_sees_the_action_as_those_before_it_have_trimmed_it() -> None:
    """So two budgets of one thing both hold."""
    seen: list[int] = []

    class Looks:
        def decide(self, action: Action, standing: Standing) -> Answer:
            seen.append(action.reserve.tokens)
            return None

    judge([Looks(), Says(Trim(Amounts(3))), Looks()], ACTION, Standing())
    assert seen == [5, 3]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_must_wait_for_others_waits_before_anybody_is_asked_and_is_refused_at_once(place: int) -> None:
    """It waits whoever would ask or allow; a refusal needs no wait."""
    chain: list[Says] = [Says(Ask(9)), Says(None)]
    chain.insert(place, Says(Later()))
    assert judge(chain, ACTION, Standing()) == Later()
    chain.insert(place, Says(no("grant")))
    assert judge(chain, ACTION, Standing()) == no("grant")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nobody_is_asked_to_approve_what_is_refused_anyway(place: int) -> None:
    """A refusal wins over a request, before or after it."""
    chain = [Says(Ask(9)), Says(None)]
    chain.insert(place, Says(no("budget")))
    assert judge(chain, ACTION, Standing()) == no("budget")
