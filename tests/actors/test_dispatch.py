"""The waist: admission before work, an end in one append with its effects, refusals on the record, budgets that hold."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.amounts import Amounts
from affidavit.actors.conversation import Conversation
from affidavit.actors.deciders.budgets import TimeBudget, TokenBudget
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action, Denial
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import LogError, LogFull
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.work import Done, Permit
from tests.actors.mission_kit import WriterOfLists

PAY = Action("pay", turn=1, tool_use_id="t1", args_digest=b"digest")
RESULT = Event(Kind.TOOL_RESULT, tool_use_id="t1", result="paid")


def waist(writer: WriterOfLists, *, tools: frozenset[str] | None = None, tokens: int = 0) -> Dispatcher:
    """A dispatcher that records with the writer."""
    return Dispatcher(MissionLedger(Conversation(), writer), CapabilityGrant(tools), (TokenBudget(tokens),))


def kinds(writer: WriterOfLists) -> list[list[str]]:
    """The kinds of each append."""
    return [[event.kind for event in append] for append in writer.appends]


async def paid(permit: Permit) -> Done[str]:
    """Work that ends well."""
    await trio.lowlevel.checkpoint()
    return Done("ok", events=(RESULT,))


async def never(permit: Permit) -> Done[str]:
    """Work that must not begin."""
    raise AssertionError("the work began")


async def test_g1_the_admission_is_durable_before_the_work_begins() -> None:
    """When the work begins, dispatch.start already stands on the record, with what it is bound to (G1)."""
    writer = WriterOfLists()
    seen: list[list[str]] = []

    async def work(permit: Permit) -> Done[None]:
        await trio.lowlevel.checkpoint()
        seen.extend(kinds(writer))
        return Done(None)

    await waist(writer).govern(PAY, work, opening=(Event(Kind.TURN_STARTED, turn=1),))
    assert seen == [[Kind.TURN_STARTED, Kind.ACTION_ADMITTED]]
    admitted = writer.events[1]
    assert (admitted.action, admitted.call, admitted.tool_use_id) == ("pay", 1, "t1")
    assert admitted.detail["args"] == b"digest"
    assert admitted.detail["grant"] == CapabilityGrant(None).digest


async def test_g1_when_the_admission_cannot_be_recorded_the_work_does_not_begin() -> None:
    """The append of the admission fails: the error comes out, no work was done, nothing is on the record (G1)."""
    writer = WriterOfLists(fail_at=1)
    with pytest.raises(LogFull):
        await waist(writer).govern(PAY, never)
    assert writer.appends == []


async def test_an_end_and_what_it_produced_are_one_append() -> None:
    """The end stands first, what was produced beside it, in one append."""
    writer = WriterOfLists()
    done = await waist(writer).govern(PAY, paid)
    assert isinstance(done, Done)
    assert done.value == "ok"
    assert kinds(writer) == [[Kind.ACTION_ADMITTED], [Kind.ACTION_COMPLETED, Kind.TOOL_RESULT]]
    assert writer.events[1].call == writer.events[0].call


async def test_when_the_end_cannot_be_recorded_nothing_of_it_stands() -> None:
    """The append of the end fails: the error comes out, and the start stands alone for whoever resumes."""
    writer = WriterOfLists(fail_at=2)
    with pytest.raises(LogFull):
        await waist(writer).govern(PAY, paid)
    assert kinds(writer) == [[Kind.ACTION_ADMITTED]]


async def test_a_refusal_stands_with_its_fault_and_its_answer_in_one_append() -> None:
    """A refused action leaves dispatch.rejected with class and code, its answer beside it, and no opening (G2)."""
    writer = WriterOfLists()
    denial = await waist(writer, tools=frozenset({"look"})).govern(
        PAY, never, opening=(Event(Kind.TURN_STARTED, turn=1),), refused=lambda _: (RESULT,)
    )
    assert isinstance(denial, Denial)
    assert kinds(writer) == [[Kind.ACTION_REJECTED, Kind.TOOL_RESULT]]
    rejected = writer.events[0]
    assert (rejected.error_class, rejected.error_code) == (FaultClass.FORBIDDEN, "capability_denied")
    assert rejected.reason == denial.reason


async def test_numbers_go_on_over_refusals() -> None:
    """Each action, refused ones too, has a number of its own, counting up."""
    writer = WriterOfLists()
    govern = waist(writer, tools=frozenset({"pay"})).govern
    await govern(PAY, paid)
    await govern(Action("other"), never)
    await govern(PAY, paid)
    assert [e.call for e in writer.events if e.kind in {Kind.ACTION_ADMITTED, Kind.ACTION_REJECTED}] == [
        1,
        2,
        3,
    ]


async def test_cancelled_before_the_admission_nothing_happened() -> None:
    """A caller that is cancelled while its admission is being recorded leaves nothing."""
    writer = WriterOfLists(hang_at=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(waist(writer).govern, PAY, never))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert writer.appends == []


@pytest.mark.parametrize("fault", [FaultClass.INTERRUPTED, FaultClass.CANCELLED])
async def test_cancelled_work_is_closed_with_the_reason_it_was_stopped_for(fault: str) -> None:
    """Cancelling the work records its end, and what stands for its result, in one append; the reservation is spent."""
    writer = WriterOfLists()
    dispatcher = waist(writer, tokens=100)
    dispatcher.stop_fault = fault
    action = Action("model.generate", reserve=Amounts(40))

    async def forever(permit: Permit) -> Done[None]:
        await trio.sleep_forever()
        raise AssertionError

    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            partial(dispatcher.govern, action, forever, stopped=lambda f: (Event("note", text=f),))
        )
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert kinds(writer) == [[Kind.ACTION_ADMITTED], [Kind.ACTION_COMPLETED, "note"]]
    assert writer.events[1].error_class == fault
    assert writer.events[2].text == fault
    assert writer.events[1].detail["used"] == {"tokens": 40}


async def test_stopped_work_has_used_what_it_may_have_used_and_the_time_it_took(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of money and tokens all that was held back is gone, since nobody knows better; of time only what has passed."""
    writer = WriterOfLists()
    dispatcher = Dispatcher(
        MissionLedger(Conversation(), writer), CapabilityGrant(None), (TimeBudget(60_000),)
    )

    async def slow(permit: Permit) -> Done[None]:
        await trio.sleep(30)
        raise AssertionError

    with trio.move_on_after(1.5):
        await dispatcher.govern(Action("model.generate", reserve=Amounts(40)), slow)
    assert writer.events[0].detail["reserved"] == {"tokens": 40, "ms": 60_000}
    assert writer.events[1].detail["used"] == {"tokens": 40, "ms": 1_500}


async def test_time_is_rounded_up_and_never_beyond_what_was_held_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A thousand short actions cannot cost nothing by rounding; work that overstays is charged what it was given."""
    writer = WriterOfLists()
    dispatcher = Dispatcher(
        MissionLedger(Conversation(), writer), CapabilityGrant(None), (TimeBudget(2_000),)
    )
    for seconds in (0.0001, 5):

        async def works(permit: Permit, seconds: float = seconds) -> Done[None]:
            await trio.sleep(seconds)
            return Done(None)

        await dispatcher.govern(Action("look", tool_use_id="t1"), works)
    ends = [event for event in writer.events if event.kind == Kind.ACTION_COMPLETED]
    assert [end.detail["used"] for end in ends] == [{"ms": 1}, {"ms": 1_999}]


async def test_code_that_asks_for_the_programs_exit_is_recorded_and_raised() -> None:
    """A SystemExit out of the work leaves no action without an end."""
    writer = WriterOfLists()

    async def leaves(permit: Permit) -> Done[None]:
        await trio.lowlevel.checkpoint()
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await waist(writer).govern(PAY, leaves)
    assert (writer.events[1].error_class, writer.events[1].error_code) == (FaultClass.TERMINAL, "crashed")


async def test_work_that_crashes_while_it_is_cancelled_is_still_closed() -> None:
    """Cancellation and a crash in one: the end is recorded as stopped, and only the cancellation goes on."""
    writer = WriterOfLists()

    async def both(permit: Permit) -> Done[None]:
        try:
            await trio.sleep_forever()
        except trio.Cancelled as cancelled:
            raise BaseExceptionGroup("both", [cancelled, ValueError("late")]) from None  # noqa: ASYNC104
        raise AssertionError

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(waist(writer).govern, PAY, both))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    assert kinds(writer) == [[Kind.ACTION_ADMITTED], [Kind.ACTION_COMPLETED]]
    assert (writer.events[1].error_class, writer.events[1].error_code) == (FaultClass.INTERRUPTED, "crashed")


async def test_a_keyboard_interrupt_in_the_work_is_recorded_and_goes_on() -> None:
    """Ctrl-C that lands inside the work closes the action as interrupted and comes out as itself."""
    writer = WriterOfLists()

    async def pressed(permit: Permit) -> Done[None]:
        await trio.lowlevel.checkpoint()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await waist(writer).govern(PAY, pressed)
    assert writer.events[-1].error_class == FaultClass.INTERRUPTED


async def test_work_of_the_callers_that_crashes_is_recorded_and_raised() -> None:
    """A fault of our own code is a terminal end on the record, and an error of the caller."""
    writer = WriterOfLists()

    async def broken(permit: Permit) -> Done[None]:
        await trio.lowlevel.checkpoint()
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        await waist(writer).govern(PAY, broken)
    assert kinds(writer) == [[Kind.ACTION_ADMITTED], [Kind.ACTION_COMPLETED]]
    assert (writer.events[1].error_class, writer.events[1].error_code) == (FaultClass.TERMINAL, "crashed")


async def test_an_end_that_cannot_be_recorded_in_time_is_an_error(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A log that hangs on an end does not hang the session: after the grace it counts as a failed log."""
    with pytest.raises(LogError, match="could not be recorded within"):
        await waist(WriterOfLists(hang_at=2)).govern(PAY, paid)


async def test_a_settled_action_frees_what_it_did_not_use() -> None:
    """Reserved before, settled after: what was used counts, what was only held back does not."""
    writer = WriterOfLists()
    dispatcher = waist(writer, tokens=100)

    async def frugal(permit: Permit) -> Done[None]:
        await trio.lowlevel.checkpoint()
        return Done(None, used=Amounts(10))

    action = Action("model.generate", reserve=Amounts(60))
    outcomes = [await dispatcher.govern(action, frugal) for _ in range(6)]
    # 10 tokens each: the sixth finds 50 used and needs 60.
    assert [isinstance(outcome, Denial) for outcome in outcomes] == [False] * 5 + [True]


@given(
    limit=st.integers(1, 60),
    wanted=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=12),
)
def test_concurrent_actions_never_overspend(limit: int, wanted: list[tuple[int, int]]) -> None:
    """However many actions ask at once, what is used and what is held back together never exceed the budget (G5)."""
    writer = WriterOfLists()

    async def main() -> None:
        dispatcher = waist(writer, tokens=limit)

        async def act(reserve: int, use: int) -> None:
            async def work(permit: Permit) -> Done[None]:
                for _ in range(use):
                    await trio.lowlevel.checkpoint()
                return Done(None, used=Amounts(min(use, reserve)))

            await dispatcher.govern(Action("model.generate", reserve=Amounts(reserve)), work)

        async with trio.open_nursery() as nursery:
            for reserve, use in wanted:
                nursery.start_soon(act, reserve, use)

    trio.run(main)
    held: dict[int, int] = {}
    used = 0
    for event in writer.events:
        if event.kind == Kind.ACTION_ADMITTED:
            held[event.call] = event.detail["reserved"]["tokens"]  # type: ignore[index]
        elif event.kind == Kind.ACTION_COMPLETED:
            del held[event.call]
            used += event.detail.get("used", {"tokens": 0})["tokens"]  # type: ignore[index]
        assert used + sum(held.values()) <= limit
    numbers = [e.call for e in writer.events if e.kind in {Kind.ACTION_ADMITTED, Kind.ACTION_REJECTED}]
    assert numbers == list(range(1, len(wanted) + 1))
