"""Mailboxes: whoever asks gets an answer, the error, or learns that the actor has gone; nobody is left waiting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.mailbox import MAILBOX_SIZE, ActorGone, Answer, Mailbox, Reply, answer


@dataclass(frozen=True, slots=True)
class Double:
    number: int
    reply: Reply[int]


def discard(command: Double) -> None:
    """Close the reply channel of a command that was never taken."""
    command.reply.close()


async def ask(mailbox: Mailbox[Double], number: int) -> int:
    """Ask for the double of a number."""
    return await mailbox.ask(lambda reply: Double(number, reply), int)


async def serve(mailbox: Mailbox[Double], count: int) -> None:
    """Answer so many commands, then end; odd numbers fail."""

    async def work(number: int) -> int:
        await trio.lowlevel.checkpoint()
        if number % 2:
            raise ValueError(f"{number} is odd")
        return 2 * number

    try:
        for _ in range(count):
            command = await mailbox.take()
            await answer(command.reply, partial(work, command.number))
    finally:
        mailbox.close(discard)


@given(numbers=st.lists(st.integers(0, 99), max_size=40), served=st.integers(0, 40))
async def test_each_asker_gets_its_answer_its_error_or_hears_that_the_actor_is_gone(
    numbers: list[int], served: int
) -> None:
    """For any number of askers, more than the mailbox holds too, and an actor that ends at any point."""
    mailbox = Mailbox[Double]("the doubler")
    outcomes: list[tuple[int, object]] = []

    async def asker(number: int) -> None:
        try:
            outcomes.append((number, await ask(mailbox, number)))
        except (ValueError, ActorGone) as error:
            outcomes.append((number, type(error)))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(asker, number)
            await trio.testing.wait_all_tasks_blocked()
            with trio.move_on_after(0) if served > len(numbers) else trio.CancelScope():
                await serve(mailbox, served)
    assert sorted(number for number, _ in outcomes) == sorted(numbers)
    answered = [(number, outcome) for number, outcome in outcomes if outcome is not ActorGone]
    assert all(outcome == (ValueError if number % 2 else 2 * number) for number, outcome in answered)
    assert len(answered) <= served
    if served <= len(numbers):
        assert len(answered) == served


async def test_asking_an_actor_that_has_ended_says_so() -> None:
    """By name, and posting to it does nothing."""
    mailbox = Mailbox[Double]("the doubler")
    mailbox.close(discard)
    with pytest.raises(ActorGone, match="the doubler has ended"):
        await ask(mailbox, 2)
    send, _receive = trio.open_memory_channel[Answer[int]](1)
    assert mailbox.post_nowait(Double(1, send)) is False


async def test_a_full_mailbox_refuses_a_post_and_holds_back_an_asker() -> None:
    """Bounded memory: a post that has no room is told so at once."""
    mailbox = Mailbox[int]("the counter")
    assert [mailbox.post_nowait(number) for number in range(MAILBOX_SIZE + 1)] == [True] * MAILBOX_SIZE + [
        False
    ]
    assert await mailbox.take() == 0
    assert mailbox.post_nowait(99) is True


async def test_an_asker_cancelled_before_its_command_is_posted_never_asked() -> None:
    """Full mailbox, cancelled asker: the actor never sees the command."""
    mailbox = Mailbox[Double]("the doubler")
    async with trio.open_nursery() as nursery:
        for _ in range(MAILBOX_SIZE):
            nursery.start_soon(ask, mailbox, 2)
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await ask(mailbox, 4)
        assert scope.cancelled_caught
        for _ in range(MAILBOX_SIZE):
            command = await mailbox.take()
            assert command.number == 2
            command.reply.send_nowait(Answer(4))
    left: list[Double] = []
    mailbox.close(left.append)
    assert left == []


async def test_the_work_of_an_asker_that_went_away_is_done_all_the_same() -> None:
    """Its answer is dropped, and the actor goes on to the next."""
    mailbox = Mailbox[Double]("the doubler")
    done: list[int] = []

    async def work(number: int) -> int:
        done.append(number)
        return number

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_blocked, scope)
            await ask(mailbox, 7)
    command = await mailbox.take()
    await answer(command.reply, lambda: work(command.number))
    assert done == [7]


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


async def test_an_actor_cancelled_in_the_middle_tells_its_asker() -> None:
    """The reply channel closes without an answer."""
    mailbox = Mailbox[Double]("the doubler")
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def actor() -> None:
            command = await mailbox.take()
            with trio.CancelScope() as scope:
                scope.cancel()
                await answer(command.reply, trio.sleep_forever)

        with pytest.raises(ActorGone, match="before it answered"):
            await ask(mailbox, 2)


async def test_an_answer_of_another_type_than_was_expected_is_a_type_error() -> None:
    """A wrong answer does not travel on as a right one."""
    mailbox = Mailbox[Double]("the doubler")
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def actor() -> None:
            command = await mailbox.take()
            command.reply.send_nowait(Answer("four"))  # type: ignore[arg-type]  # on purpose

        with pytest.raises(TypeError, match="answered with str, not int"):
            await ask(mailbox, 2)
