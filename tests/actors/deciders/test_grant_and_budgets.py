"""The deciders of the waist, each by name: pure functions of an action and of what is spent."""

from __future__ import annotations

import pytest

from affidavit.actors.amounts import Amounts
from affidavit.actors.deciders.budgets import StepBudget, TokenBudget
from affidavit.actors.deciders.chain import judge
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import MODEL_ACTION, Action, Answer, Denial, Judgement, Later, Standing
from affidavit.actors.events import FaultClass

NOTHING = Standing()


def code(denial: Answer) -> str | None:
    """The code of a denial; None for another answer."""
    return denial.error_code if isinstance(denial, Denial) else None


@pytest.mark.parametrize(
    ("tools", "action", "expected"),
    [
        (None, Action("look"), None),
        (None, Action("ghost", known=False), "unknown_tool"),
        (frozenset({"look"}), Action("look"), None),
        (frozenset({"look"}), Action("pay"), "capability_denied"),
        (frozenset({"ghost"}), Action("ghost", known=False), "unknown_tool"),
        (frozenset(), Action(MODEL_ACTION), None),
        # A tool call is never taken for a model call, whatever name the model wrote.
        (None, Action(MODEL_ACTION, tool_use_id="t1", known=False), "unknown_tool"),
    ],
)
def test_a_grant_permits_what_it_names(
    tools: frozenset[str] | None, action: Action, expected: str | None
) -> None:
    """Tools outside the grant and tools that do not exist are refused; the model call of a run never is."""
    denial = CapabilityGrant(tools).decide(action, NOTHING)
    assert code(denial) == expected
    assert denial is None or denial.error_class == FaultClass.FORBIDDEN


def test_a_grants_digest_tells_grants_apart() -> None:
    """Everything, nothing and each set of tools have digests of their own, whatever order the names came in."""
    grants = [None, frozenset[str](), frozenset({"a"}), frozenset({"a", "b"})]
    assert len({CapabilityGrant(tools).digest for tools in grants}) == len(grants)
    assert CapabilityGrant(frozenset(["b", "a"])).digest == CapabilityGrant(frozenset(["a", "b"])).digest


def test_a_step_budget_counts_turns_and_not_attempts() -> None:
    """The last turn may be tried again; the one after it is refused; tools cost no step."""
    budget = StepBudget(2)
    assert budget.decide(Action(MODEL_ACTION, turn=2), NOTHING) is None
    assert code(budget.decide(Action(MODEL_ACTION, turn=3), NOTHING)) == "steps"
    assert budget.decide(Action("look", turn=3), NOTHING) is None


@pytest.mark.parametrize(
    ("limit", "spent", "reserve", "expected"),
    [
        (0, 10**9, 10**9, None),
        (10, 4, 6, None),
        (10, 4, 7, "tokens"),
        (10, 10, 1, "tokens"),
        (10, 11, 0, None),
    ],
)
def test_a_token_budget_refuses_what_would_not_fit(
    limit: int, spent: int, reserve: int, expected: str | None
) -> None:
    """What is used or held back plus the reservation must fit; no limit is 0, and what reserves nothing passes."""
    denial = TokenBudget(limit).decide(Action("a", reserve=Amounts(reserve)), Standing(Amounts(spent)))
    assert code(denial) == expected
    assert denial is None or isinstance(denial, Denial)
    assert denial is None or denial.error_class == FaultClass.BUDGET_EXCEEDED


def test_the_first_denial_stands() -> None:
    """Deciders are asked in order, and only as far as the first that objects."""
    action = Action("pay", turn=9, reserve=Amounts(9))
    chain = (CapabilityGrant(frozenset()), TokenBudget(1))
    assert code(refusal(judge(chain, action, NOTHING))) == "capability_denied"
    assert code(refusal(judge(tuple(reversed(chain)), action, NOTHING))) == "tokens"
    assert judge((), action, NOTHING) == Judgement(action)


def refusal(judgement: Judgement | Denial | Later) -> Denial | None:
    """The denial that the chain came to, if it came to one."""
    return judgement if isinstance(judgement, Denial) else None
