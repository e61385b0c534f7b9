"""Processes that are killed in a run whose model thinks before it calls a tool, and is asked over a real socket.

A program as `victim` is. The address of the model's endpoint stands in the file `url` beside the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio

from affidavit.actors.goal import GoalSpec
from affidavit.actors.host import open_host
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.anthropic import open_anthropic_model
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import RUN, SIGNER, FakeTool
from tests.actors.models.asking import KEY
from tests.crash.victim import DoomedLog, Order, main, note

SPEC = GoalSpec("Look.", system="You look at things.", max_output_tokens=4096)


async def live(order: Order) -> None:
    """Submit the run, or resume it if it is there, and see it to its sealed end."""
    folder = Path(order.folder)

    async def look(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        note(folder / "effects", str(arguments["path"]))
        return f"saw {arguments['path']}"

    url = (folder / "url").read_text(encoding="utf-8")
    async with (
        open_sqlite_log(folder / "store.sqlite3") as store,
        open_host(DoomedLog(store, order), signer=SIGNER) as host,
        open_anthropic_model("m?thinking=1024", base_url=url, api_key=KEY) as model,
    ):
        config = MissionConfig(model, Toolbox([FakeTool("look", look, idempotent=True)]))
        if await store.info(RUN) is None:
            run = await host.submit(SPEC, config, id=RUN)
        else:
            run = await host.resume(RUN, config)
        await run.closed()


if __name__ == "__main__":
    main(live)
