"""Processes that are killed while a conversation goes on after its end, or while another is forked from it.

A program as `victim` is. Each process wants the same: the run at its end, one message answered, and a fork of that at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio

from affidavit.actors.events import TERMINAL_KINDS
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.host import Host, open_host
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import RUN, SIGNER, FakeTool, script
from tests.crash.victim import DoomedLog, Order, main, note

FORKED = "fork-1"
SAID, ASKED = "And the other?", "web/1"
TURNS: list[dict[str, object]] = [
    {"tool_calls": [{"name": "pay", "input": {"key": "pay-1"}}]},
    {"text": "One is paid."},
    {"tool_calls": [{"name": "pay", "input": {"key": "pay-2"}}]},
    {"text": "Both are paid."},
    {"text": "Nothing more is owed."},
]


async def live(order: Order) -> None:
    """Bring everything to its end, whatever of it is there already."""
    folder = Path(order.folder)

    async def pay(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        note(folder / "effects", str(arguments["key"]))
        return f"done: {arguments['key']}"

    config = MissionConfig(script(*TURNS), Toolbox([FakeTool("pay", pay)]), backoff_seconds=0.001)
    async with (
        open_sqlite_log(folder / "store.sqlite3") as store,
        open_host(DoomedLog(store, order), signer=SIGNER) as host,
    ):
        await _run(host, config)
        run = await host.say(RUN, config, SAID, principal="ada", causation_id=ASKED)
        await run.closed()
        await _fork(host, config)


async def _run(host: Host, config: MissionConfig) -> None:
    """Bring the run to an end: the first, or that of what was said."""
    if await host.log.info(RUN) is None:
        run = await host.submit(GoalSpec("Pay both."), config, id=RUN)
    else:
        run = await host.resume(RUN, config)
    await run.closed()


async def _fork(host: Host, config: MissionConfig) -> None:
    """Bring the fork to its end."""
    if await host.log.info(FORKED) is None:
        ends = [event.seq for event in await history(host.log, RUN) if event.kind in TERMINAL_KINDS]
        fork = await host.fork(RUN, ends[1], config, "What is left?", id=FORKED)
    else:
        fork = await host.resume(FORKED, config)
    await fork.closed()


if __name__ == "__main__":
    main(live)
