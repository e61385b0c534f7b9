"""Processes that are killed at a chosen moment of a real run over a real store.

Started as a program it reads orders, one JSON object a line, forks a process for each and says how that one ended. Forking from a
process that has everything imported, and has started nothing, makes a hundred victims cheap.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import trio

from affidavit.actors.errors import LogError, WriterFenced
from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import open_host
from affidavit.actors.logs.port import Entry, Log, SubmittingLog, Told
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_store import Store
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import RUN, SIGNER, FakeTool, Work, script

Life = Callable[["Order"], Awaitable[None]]
PATIENCE = 60  # seconds that a victim may live; one that hangs ends by SIGALRM

SPEC = GoalSpec("Settle the ledger.", tools=("pay", "note"))
TURNS: list[dict[str, object]] = [
    {
        "text": "I pay the first.",
        "tool_calls": [
            {"name": "pay", "input": {"key": "pay-1"}, "id": "same"},
            {"name": "note", "input": {"key": "note-1"}, "id": "same"},
            {"name": "ghost", "input": {}},
        ],
        "error": {"message": "busy", "times": 1},
    },
    {
        "tool_calls": [
            {"name": "note", "input": {"key": "note-2"}},
            {"name": "pay", "input": {"key": "pay-2"}},
        ]
    },
    {"text": "Settled."},
]


@dataclass(frozen=True)
class Order:
    """What becomes of one process.

    Attributes:
        folder: Where the store, the ledger of effects and the list of acknowledged events are.
        moment: `before` or `after` an append, `written` (after the rows, before the commit), `committed` (before the
            acknowledgement), `time`, or `never`.
        number: Which append, or which commit: appends of one moment share one. For `time` the milliseconds after which the
            process is killed.
    """

    folder: str
    moment: str = "never"
    number: int = 0


# What this process has made so far: `appends`, and the `commits` that they share.
MADE: Final[Counter[str]] = Counter()


def die() -> None:
    """End this process as a crash does: at once, with nothing tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


def note(path: Path, line: str) -> None:
    """Add a line to a file, and wait until it is safe."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)


class DoomedLog:
    """A log that kills the process before or after its append number n, and notes what was acknowledged."""

    def __init__(self, log: Log, order: Order) -> None:
        self._log = log
        self._order = order
        self.own, self.read, self.info, self.list, self.tips = log.own, log.read, log.info, log.list, log.tips

    async def append(self, entries: Sequence[Entry]) -> tuple[int | WriterFenced, ...]:
        """Append, unless the end comes first."""
        MADE["appends"] += 1
        doomed = MADE["appends"] == self._order.number
        if doomed and self._order.moment == "before":
            die()
        outcome = await self._log.append(entries)
        self._acknowledge(entries)
        if doomed and self._order.moment == "after":
            die()
        return outcome

    def submit(self, entry: Entry, told: Told) -> None:
        """Submit, unless the end comes first; it counts as an append, and is acknowledged when that is told."""
        assert isinstance(self._log, SubmittingLog)
        MADE["appends"] += 1
        doomed = MADE["appends"] == self._order.number
        if doomed and self._order.moment == "before":
            die()

        def acknowledged(outcome: int | WriterFenced | LogError) -> None:
            if isinstance(outcome, int):
                self._acknowledge((entry,))
            if doomed and self._order.moment == "after":
                die()
            told(outcome)

        self._log.submit(entry, acknowledged)

    def _acknowledge(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for seq, row in enumerate(entry.rows, entry.expected_seq + 1):
                note(Path(self._order.folder, "acknowledged"), f"{seq} {sha256(row).hexdigest()}")


def doom_commits(order: Order) -> None:
    """Have the store kill the process right before or right after its commit number n takes effect."""
    commit = Store.commit

    def doomed(store: Store) -> None:
        MADE["commits"] += 1
        if MADE["commits"] == order.number and order.moment == "written":
            die()
        commit(store)
        if MADE["commits"] == order.number and order.moment == "committed":
            die()

    Store.commit = doomed  # type: ignore[assignment]


async def live(order: Order) -> None:
    """Submit the run, or resume it if it is there, and see it to its sealed end."""
    folder = Path(order.folder)

    def tool(name: str) -> Work:
        async def act(arguments: Mapping[str, object]) -> str:
            await trio.lowlevel.checkpoint()
            note(folder / "effects", str(arguments["key"]))
            return f"done: {arguments['key']}"

        return act

    box = Toolbox(FakeTool(name, tool(name), idempotent=name == "note") for name in ("pay", "note"))
    config = MissionConfig(script(*TURNS), box, backoff_seconds=0.001)
    async with (
        open_sqlite_log(folder / "store.sqlite3") as store,
        open_host(DoomedLog(store, order), signer=SIGNER) as host,
    ):
        if await store.info(RUN) is None:
            run = await host.submit(SPEC, config, id=RUN)
        else:
            run = await host.resume(RUN, config)
        await run.closed()


def victim(order: Order, life: Life) -> None:
    """Be the forked process."""
    signal.alarm(PATIENCE)
    doom_commits(order)
    trio.run(life, order)
    # Some victims take their folder for a place to meet and its last part for what to do.
    if Path(order.folder).is_dir():
        note(Path(order.folder, "made"), json.dumps(MADE))


def main(life: Life = live) -> None:
    """Carry out orders until there are no more; `life` is what a process does unless it is killed."""
    for line in sys.stdin:
        order = Order(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                victim(order, life)
                code = 0
            finally:
                if code:
                    sys.excepthook(*sys.exc_info())
                os._exit(code)
        if order.moment == "time":
            time.sleep(order.number / 1000)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        print(json.dumps(asdict(order) | {"ended": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
