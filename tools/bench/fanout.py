"""Fan-out: one stream and its subscribers on a `MemoryLog`, beside one bare trio memory channel for each subscriber.

The channels carry events that are there already; our side also encodes each event, appends it, and keeps every guarantee of the
stream. A subscriber takes batches. Beside it stand the same with `async for`, and how long an event takes to arrive.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio
import trio.testing

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.clock import SystemClock
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.stream import Stream
from affidavit.actors.subscription import Subscription
from affidavit.tools.bench.figures import Figures, alternate, percentile

# Subscribers, events in one append, and deliveries in one round.
CASES: Final = {
    "vs_channel_1": (1, 1, 4_000),
    "vs_channel_100": (100, 1, 20_000),
    "vs_channel_1000": (1000, 1, 40_000),
    "vs_channel_1000_batch100": (1000, 100, 200_000),
}
_ROUNDS: Final = 5
_CAPACITY: Final = 256
_APPENDS: Final = 150
_WORDS: Final = "The quick brown fox jumps over the lazy dog, and the ledger balances. " * 2
_EVENT: Final = Event(
    Kind.TOOL_RESULT, turn=3, tool="read_file", tool_use_id="call_0123456789", result=_WORDS
)
Take = Callable[[Subscription, int], Awaitable[None]]


def new_stream() -> Stream:
    """Return a stream on a log of its own."""
    return Stream(MemoryLog(), MemoryBus(), "run-1", SystemClock(), has_floor=True)


async def take_batches(events: Subscription, until: int) -> None:
    """Take events in batches up to a seq."""
    while events.cursor < until:
        await events.next_batch()


async def take_each(events: Subscription, until: int) -> None:
    """Take one event after another up to a seq."""
    async for event in events:
        if event.seq >= until:
            return


async def _ours(readers: int, batch: int, appends: int, take: Take) -> float:
    stream = new_stream()

    async def read(task_status: trio.TaskStatus[None]) -> None:  # noqa: ASYNC114  # started below alone
        async with stream.subscribe() as events:
            task_status.started()
            await take(events, batch * appends)

    async with trio.open_nursery() as nursery:
        for _ in range(readers):
            await nursery.start(read)
        await trio.testing.wait_all_tasks_blocked()
        began = time.perf_counter()
        nursery.start_soon(_append, stream, batch, appends)
    return readers * batch * appends / (time.perf_counter() - began)


async def _append(stream: Stream, batch: int, appends: int) -> None:
    for _ in range(appends):
        await stream.append(*([_EVENT] * batch))
        # Whoever appends waits for something else in between, a disk at the least.
        await trio.lowlevel.checkpoint()


async def _channels(readers: int, batch: int, appends: int) -> float:
    sends: list[trio.MemorySendChannel[Event]] = []

    async def read(receive: trio.MemoryReceiveChannel[Event]) -> None:
        for _ in range(batch * appends):
            await receive.receive()

    async with trio.open_nursery() as nursery:
        for _ in range(readers):
            send, receive = trio.open_memory_channel[Event](_CAPACITY)
            sends.append(send)
            nursery.start_soon(read, receive)
        await trio.testing.wait_all_tasks_blocked()
        began = time.perf_counter()
        for _ in range(batch * appends):
            for send in sends:
                await send.send(_EVENT)
    return readers * batch * appends / (time.perf_counter() - began)


async def _latencies(readers: int, *, stuck: bool) -> list[float]:
    """Return how long each event took from the call of `append` to each subscriber, one append at a time."""
    stream, took = new_stream(), list[float]()
    began = left = 0.0
    everyone = trio.Event()

    async def read(task_status: trio.TaskStatus[None]) -> None:  # noqa: ASYNC114  # started below alone
        nonlocal left
        async with stream.subscribe() as events:
            task_status.started()
            async for _ in events:
                took.append(time.perf_counter() - began)
                left -= 1
                if not left:
                    everyone.set()

    async def stand_still(task_status: trio.TaskStatus[None]) -> None:  # noqa: ASYNC114  # as above
        async with stream.subscribe() as events:
            task_status.started()
            await anext(events)
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for _ in range(readers):
            await nursery.start(read)
        if stuck:
            await nursery.start(stand_still)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(_APPENDS):
            everyone, left = trio.Event(), readers
            began = time.perf_counter()
            await stream.append(_EVENT)
            await everyone.wait()
        nursery.cancel_scope.cancel(reason="all was measured")
    return took


def run(events: int | None = None) -> Figures:
    """Measure all figures of fan-out.

    Args:
        events: How many deliveries a round makes, at most; by default what takes some tenths of a second.
    """
    found = Figures()
    for name, (readers, batch, deliveries) in CASES.items():
        appends = max(min(deliveries, events or deliveries) // (readers * batch), 1)
        size = (readers, batch, appends)
        ratio, ours, bare = alternate(
            partial(trio.run, _ours, *size, take_batches), partial(trio.run, _channels, *size), _ROUNDS
        )
        found.ratios[name] = ratio
        suffix = name.removeprefix("vs_channel_")
        found.figures[f"deliveries_{suffix}_per_s"] = ours
        found.figures[f"channel_{suffix}_per_s"] = bare
    each = partial(trio.run, _ours, 1000, 100, 4, take_each)
    found.figures["deliveries_1000_batch100_async_for_per_s"] = max(each() for _ in range(3))
    for stuck in (False, True):
        took = trio.run(partial(_latencies, 1000, stuck=stuck))
        suffix = "with_one_stuck" if stuck else "all_keep_up"
        found.figures[f"delivery_p50_ms_1000_{suffix}"] = percentile(took, 0.5) * 1000
        found.figures[f"delivery_p99_ms_1000_{suffix}"] = percentile(took, 0.99) * 1000
    return found
