"""Processes that are killed while several goals of one run pay at the same time. A program as `victim` is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import trio

from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import open_host
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.models.port import ModelReply, ToolCall
from tests.actors.fanout_kit import fanout_config, spawns
from tests.actors.mission_kit import RUN, SIGNER, FakeTool
from tests.crash.victim import DoomedLog, Order, main, note

ROOT = "Settle it all."


def pays(*keys: str) -> ModelReply:
    """Return a turn that makes these payments."""
    asked = tuple(
        ToolCall(f"p{number}", "pay", json.dumps({"key": key})) for number, key in enumerate(keys, 1)
    )
    return ModelReply("", asked, "tool_use")


PARTS = {
    ROOT: (spawns("one", "two"), pays("root"), ModelReply("Settled.")),
    "one": (pays("one"), spawns("below"), ModelReply("one is done")),
    "two": (pays("two-a", "two-b"), ModelReply("two is done")),
    "below": (pays("below"), ModelReply("below is done")),
}
PAYMENTS = {"root", "one", "two-a", "two-b", "below"}


async def live(order: Order) -> None:
    """Submit the run, or resume it if it is there, and see it to its sealed end."""
    folder = Path(order.folder)

    async def pay(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        note(folder / "effects", str(arguments["key"]))
        return f"paid: {arguments['key']}"

    config = fanout_config(PARTS, FakeTool("pay", pay))
    async with (
        open_sqlite_log(folder / "store.sqlite3") as store,
        open_host(DoomedLog(store, order), signer=SIGNER) as host,
    ):
        if await store.info(RUN) is None:
            run = await host.submit(GoalSpec(ROOT), config, id=RUN)
        else:
            run = await host.resume(RUN, config)
        await run.closed()


if __name__ == "__main__":
    main(live)
