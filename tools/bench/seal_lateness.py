"""How late other tasks wake while a run is sealed and verified: by the sealer inside the program, beside doing it in a thread.

A task wakes every millisecond and notes by how much it was late. The ratio is of the mean over time: how late a wake-up that is
due at any moment comes, so that one long stop counts for all that would have woken in it.
"""

from __future__ import annotations

import statistics
from typing import Final

import trio

from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.sealer import open_sealer
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.merkle import Tree
from affidavit.crypto.record import encode_record, verify_record
from affidavit.tools.bench.figures import Figures, percentile
from affidavit.tools.bench.made_record import KEY, KID, STREAM, signed

ROUNDS: Final = 3
_TICK: Final = 0.001  # seconds


class _Signer:
    """Signs as the made record is signed."""

    kid = KID
    public_key = KEY.public

    async def sign(self, message: bytes) -> bytes:
        await trio.lowlevel.checkpoint()
        return KEY.sign(message)


class _Ticker:
    """Wakes every millisecond until it is stopped.

    Attributes:
        late: By how many seconds it woke too late, each time.
    """

    def __init__(self) -> None:
        self.late: list[float] = []
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Tick."""
        with self._scope:
            while True:
                due = trio.current_time() + _TICK
                await trio.sleep_until(due)
                self.late.append(trio.current_time() - due)

    async def stop(self) -> None:
        """Tick once more, so that a stop that lasted until now is seen, and then no more."""
        await trio.sleep(2 * _TICK)
        self._scope.cancel()


async def _by_the_sealer(events: list[bytes]) -> list[float]:
    log, ticker = MemoryLog(), _Ticker()
    await log.append([Entry(STREAM, 0, tuple(events))])
    async with open_sealer(log, _Signer()) as sealer, trio.open_nursery() as nursery:
        nursery.start_soon(ticker.run)
        sealed = await sealer.seal(STREAM, len(events))
        await sealer.check(STREAM, sealed)
        await ticker.stop()
    return ticker.late


async def _in_a_thread(events: list[bytes]) -> list[float]:
    ticker = _Ticker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ticker.run)
        await trio.to_thread.run_sync(_seal_and_verify, events)
        await ticker.stop()
    return ticker.late


def _seal_and_verify(events: list[bytes]) -> None:
    tree = Tree()
    for event in events:
        tree.append(leaf_hash(event))
    verify_record(encode_record(events, signed(len(events), tree.root())), Keyring({KID: KEY.public}))


def mean_over_time(late: list[float]) -> float:
    """Return how late a wake-up due at any moment comes, on average."""
    return sum(each * (each + _TICK) for each in late) / sum(each + _TICK for each in late)


def measure_lateness(events: list[bytes]) -> Figures:
    """Measure both in turns, over the same events."""
    ratios, ours, threads = [], [], []
    for _ in range(ROUNDS):
        mine, other = trio.run(_by_the_sealer, events), trio.run(_in_a_thread, events)
        ratios.append(mean_over_time(mine) / mean_over_time(other))
        ours += mine
        threads += other
    found = Figures(ratios={"lateness_vs_thread": statistics.median(ratios)})
    for name, late in (("seal", ours), ("thread", threads)):
        found.figures[f"{name}_late_mean_ms"] = mean_over_time(late) * 1e3
        found.figures[f"{name}_late_p50_ms"] = statistics.median(late) * 1e3
        found.figures[f"{name}_late_p99_ms"] = percentile(late, 0.99) * 1e3
    return found
