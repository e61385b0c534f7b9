"""Delegation: a goal's dispatcher hands down less than it has, over one gate, one book and one way to stop (G5)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.amounts import Amounts
from affidavit.actors.conversation import Conversation
from affidavit.actors.deciders.budgets import SharedStepBudget, TokenBudget
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import MODEL_ACTION, Action, Decider, Denial
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.events import FaultClass, Kind
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.work import Done, Permit
from tests.actors.mission_kit import WriterOfLists

TOOLS = st.one_of(st.none(), st.frozensets(st.sampled_from("abcd")))


def root(writer: WriterOfLists, tools: frozenset[str] | None, *deciders: Decider) -> Dispatcher:
    """The dispatcher of a run's root goal."""
    return Dispatcher(MissionLedger(Conversation(), writer), CapabilityGrant(tools), deciders)


async def idle(permit: Permit) -> Done[None]:
    """Work that does nothing."""
    await trio.lowlevel.checkpoint()
    return Done(None)


async def use_it_up(permit: Permit) -> Done[None]:
    """Work that uses ten tokens."""
    await trio.lowlevel.checkpoint()
    return Done(None, used=Amounts(10))


async def use_some(permit: Permit) -> Done[None]:
    """Work that uses less than it held back."""
    await trio.lowlevel.checkpoint()
    return Done(None, used=Amounts(2))


async def test_g5_what_children_hold_back_and_do_not_use_is_there_for_the_others() -> None:
    """Five children at once, each of which may need the whole pool: one after another gets it, and nobody is refused (G5)."""
    writer = WriterOfLists()
    parent = root(writer, None, TokenBudget(18))
    outcomes: list[object] = []

    async def ask() -> None:
        action = Action(MODEL_ACTION, reserve=Amounts(10))
        outcomes.append(await parent.narrowed(None).govern(action, use_some))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert len(outcomes) == 5
    assert not any(isinstance(outcome, Denial) for outcome in outcomes)
    kinds = [event.kind for event in writer.events]
    assert kinds == [Kind.ACTION_ADMITTED, Kind.ACTION_COMPLETED] * 5


@given(granted=TOOLS, wanted=st.lists(TOOLS, max_size=4))
def test_g5_a_grant_only_narrows_down_a_delegation(
    granted: frozenset[str] | None, wanted: Sequence[frozenset[str] | None]
) -> None:
    """Whatever is asked for at each step down, nobody may use what somebody above may not, and all that both allow is left."""
    dispatcher = root(WriterOfLists(), granted)
    for asked in wanted:
        above, dispatcher = dispatcher, dispatcher.narrowed(asked)
        for tool in "abcd":
            permitted = above.grant.permits(tool) and (asked is None or tool in asked)
            assert dispatcher.grant.permits(tool) is permitted


async def test_g5_what_refuses_above_refuses_below() -> None:
    """A child's own deciders come on top of its parent's, and can allow nothing that those refuse."""
    writer = WriterOfLists()
    child = root(writer, None, TokenBudget(10)).narrowed(None, (TokenBudget(1_000),))
    denial = await child.govern(Action(MODEL_ACTION, reserve=Amounts(11)), idle)
    assert isinstance(denial, Denial)
    assert denial.error_code == "tokens"
    strict = root(WriterOfLists(), None, TokenBudget(1_000)).narrowed(None, (TokenBudget(10),))
    assert isinstance(await strict.govern(Action(MODEL_ACTION, reserve=Amounts(11)), idle), Denial)


async def test_g5_children_share_one_gate() -> None:
    """Two children that ask at once for the last of a pool, and use it: one is admitted, the other refused (G5)."""
    writer = WriterOfLists()
    parent = root(writer, None, SharedStepBudget(1), TokenBudget(10))
    children = [parent.narrowed(None), parent.narrowed(None)]
    outcomes: list[object] = []

    async def ask(child: Dispatcher) -> None:
        outcomes.append(await child.govern(Action(MODEL_ACTION, reserve=Amounts(10)), use_it_up))

    async with trio.open_nursery() as nursery:
        for child in children:
            nursery.start_soon(ask, child)
    assert sorted(isinstance(outcome, Denial) for outcome in outcomes) == [False, True]
    admissions = [event for event in writer.events if event.kind == Kind.ACTION_ADMITTED]
    assert len(admissions) == 1


@pytest.mark.parametrize("through", ["parent", "child"])
async def test_the_reason_to_stop_is_handed_down(through: str) -> None:
    """Said of a goal, it is what the begun actions of that goal and of those below it are closed with, and of no other."""
    writer = WriterOfLists()
    parent = root(writer, None)
    child = parent.narrowed(frozenset())

    async def forever(permit: Permit) -> Done[None]:
        await trio.sleep_forever()
        raise AssertionError

    async with trio.open_nursery() as nursery:
        for dispatcher in (parent, child):
            nursery.start_soon(dispatcher.govern, Action(MODEL_ACTION), forever)
        await trio.testing.wait_all_tasks_blocked()
        (parent if through == "parent" else child).stop_fault = FaultClass.CANCELLED
        nursery.cancel_scope.cancel()
    ends = [event.error_class for event in writer.events if event.kind == Kind.ACTION_COMPLETED]
    alone = [FaultClass.CANCELLED, FaultClass.INTERRUPTED]
    assert sorted(ends) == ([FaultClass.CANCELLED, FaultClass.CANCELLED] if through == "parent" else alone)


async def test_an_admission_stands_under_the_grant_it_was_made_under() -> None:
    """The digest on a child's admission is that of the narrowed grant."""
    writer = WriterOfLists()
    child = root(writer, frozenset("ab")).narrowed(frozenset("bc"))
    await child.govern(Action("b", tool_use_id="t1"), idle)
    assert writer.events[0].detail["grant"] == CapabilityGrant(frozenset("b")).digest
