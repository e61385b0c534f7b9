"""Owned nurseries and services: the body's exception stays itself, cancellation finds its scope, no task is left (E1)."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from affidavit.actors.nurseries import TasksFailed, open_owned_nursery, open_services, unwrapped


async def raises(error: BaseException) -> None:
    """Fail as a background task."""
    raise error


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        KeyboardInterrupt(),
        SystemExit(),
        ExceptionGroup("g", [ValueError()]),
        StopAsyncIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_the_bodys_exception_comes_out_as_itself(error: BaseException) -> None:
    """The very object; the tasks have ended by then."""
    ended = False

    async def task() -> None:
        nonlocal ended
        try:
            await trio.sleep_forever()
        finally:
            ended = True

    with pytest.raises(type(error)) as caught:
        async with open_owned_nursery() as nursery:
            nursery.start_soon(task)
            await trio.testing.wait_all_tasks_blocked()
            raise error
    assert caught.value is error
    assert ended


async def test_leaving_normally_ends_the_tasks() -> None:
    """Nobody waits for a task that would go on for ever."""
    async with open_owned_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)


async def test_a_failing_task_cancels_the_body_and_comes_out_as_tasks_failed() -> None:
    """Every failure is in it; the cancellation it caused is not."""
    with pytest.raises(TasksFailed) as caught:
        async with open_owned_nursery() as nursery:
            nursery.start_soon(raises, ValueError("a"))
            nursery.start_soon(raises, KeyError("b"))
            await trio.sleep_forever()
    assert sorted(repr(error) for error in caught.value.exceptions) == ["KeyError('b')", "ValueError('a')"]


async def test_a_failing_task_is_the_cause_of_the_bodys_own_exception() -> None:
    """Both happened: the body's leaves, the other is not lost."""
    with pytest.raises(ZeroDivisionError) as caught:
        async with open_owned_nursery() as nursery:
            nursery.start_soon(raises, ValueError("a"))
            try:
                await trio.sleep_forever()
            finally:
                raise ZeroDivisionError
    assert isinstance(caught.value.__cause__, ExceptionGroup)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_a_demand_to_end_the_program_stays_itself_in_whatever_task_it_arrives(
    error: BaseException,
) -> None:
    """Trio may deliver Ctrl-C to any task; it must not be renamed into a failure of ours."""
    with pytest.raises(type(error)) as caught:
        async with open_services() as services:
            services.start_soon(lambda: raises(error), name="unlucky")
            await trio.sleep_forever()
    assert caught.value is error


async def test_an_outer_cancellation_goes_to_its_scope_and_is_no_failure() -> None:
    """However many tasks it hits, nested blocks and the body's own nurseries included."""
    with trio.CancelScope() as scope:
        async with open_services() as services, open_owned_nursery() as outer, open_owned_nursery() as inner:
            services.start_soon(trio.sleep_forever, name="service")
            for nursery in (outer, outer, inner, inner):
                nursery.start_soon(trio.sleep_forever)
            async with trio.open_nursery() as own:
                own.start_soon(trio.sleep_forever)
                own.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
    assert scope.cancelled_caught
    await trio.lowlevel.checkpoint()


async def test_cancellation_mixed_into_the_bodys_group_is_taken_out_of_it() -> None:
    """What a failing task cancels in the body never leaks beyond the block that owns the scope."""
    with pytest.raises(ExceptionGroup) as caught:  # noqa: ASYNC401  # its members are looked at
        async with open_owned_nursery() as owned, trio.open_nursery() as own:
            own.start_soon(trio.sleep_forever)

            @own.start_soon
            async def stubborn() -> None:
                try:
                    await trio.sleep_forever()
                finally:
                    raise ZeroDivisionError

            await trio.testing.wait_all_tasks_blocked()
            owned.start_soon(raises, ValueError("a"))
    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]
    await trio.lowlevel.checkpoint()


async def test_services_outlive_cancellation_until_the_block_has_ended() -> None:
    """What an owner needs on its way out is still there; then it ends, and nothing is left."""
    before = trio.lowlevel.current_statistics().tasks_living
    send, receive = trio.open_memory_channel[str](0)
    served: list[str] = []

    async def service() -> None:
        async for text in receive:
            served.append(text)  # noqa: PERF401  # one by one, as they come

    with trio.CancelScope() as scope:
        async with open_services() as services:
            services.start_soon(service, name="service")
            try:
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
                    await send.send("on the way out")
    assert scope.cancelled_caught
    assert served == ["on the way out"]
    assert trio.lowlevel.current_statistics().tasks_living == before


@asynccontextmanager
async def others(*failures: Exception) -> AsyncIterator[trio.Nursery]:
    """Open what another program might: a plain nursery in a plain nursery, with tasks that fail once the body has."""

    async def fail(error: Exception) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise error

    async with trio.open_nursery() as outer, trio.open_nursery() as inner:
        for failure in failures:
            inner.start_soon(fail, failure)
        await trio.testing.wait_all_tasks_blocked()
        yield inner
        outer.cancel_scope.cancel()


async def test_what_a_block_raises_within_anothers_nurseries_comes_out_as_itself() -> None:
    """A group of its own included; what failed of the other's comes with it as its cause."""
    for own in (ValueError("mine"), ExceptionGroup("mine", [ValueError()])):
        with pytest.raises(type(own)) as caught:
            async with unwrapped(others()):
                raise own
        assert caught.value is own
        with pytest.raises(type(own)) as caught:
            async with unwrapped(others(OSError("theirs"))):
                raise own
        assert caught.value is own
        assert pytest.RaisesGroup(OSError).matches(caught.value.__cause__)


async def test_what_another_raises_by_itself_is_left_as_it_is() -> None:
    """It has no exception of the block's in it; and a cancellation finds its scope."""
    with pytest.RaisesGroup(OSError, flatten_subgroups=True):
        async with unwrapped(others()) as nursery:
            nursery.start_soon(raises, OSError("theirs"))
            await trio.sleep_forever()
    with trio.CancelScope() as scope:
        async with unwrapped(others()):
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
