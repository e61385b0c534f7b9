"""The gate: one at a time, in the order of coming, whoever gives up meanwhile."""

from __future__ import annotations

import trio
import trio.testing

from affidavit.actors.gate import Gate


class Passage:
    """Notes who is inside; everybody stays until told to go."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.entered: list[str] = []
        self.inside = 0
        self.go = {name: trio.Event() for name in "abcd"}

    async def visit(self, name: str) -> None:
        """Enter, stay, leave."""
        async with self.gate:
            self.inside += 1
            assert self.inside == 1
            self.entered.append(name)
            await self.go[name].wait()
            self.inside -= 1


async def test_one_at_a_time_in_the_order_of_coming() -> None:
    """Who comes while somebody is inside waits, and a newcomer does not slip in before those who wait."""
    passage = Passage()
    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(passage.visit, name)
            await trio.testing.wait_all_tasks_blocked()
        assert passage.entered == ["a"]
        passage.go["a"].set()
        nursery.start_soon(passage.visit, "d")
        await trio.testing.wait_all_tasks_blocked()
        assert passage.entered == ["a", "b"]
        for event in passage.go.values():
            event.set()
    assert passage.entered == ["a", "b", "c", "d"]


async def test_who_gives_up_waiting_never_entered_and_keeps_nobody_out() -> None:
    """Cancelled at the gate, it is passed over."""
    passage = Passage()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(passage.visit, "a")
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(60) as waiting:
            nursery.start_soon(passage.visit, "c")
            waiting.cancel()
            await passage.visit("b")
        await trio.testing.wait_all_tasks_blocked()
        for event in passage.go.values():
            event.set()
    assert passage.entered == ["a", "c"]


async def test_who_is_cancelled_inside_lets_the_next_one_in() -> None:
    """The gate opens again, and free it is entered without a turn of the loop."""
    passage = Passage()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(passage.visit, "a")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    with trio.CancelScope() as scope:
        scope.cancel()
        # No checkpoint of its own: the cancellation is met by what stands behind it.
        async with passage.gate:
            passage.entered.append("b")
    assert passage.entered == ["a", "b"]
