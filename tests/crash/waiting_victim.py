"""Processes that are killed while a run waits for a person, while that person decides, and while the run goes on by it.

A program as `victim` is. An order's folder ends in what the process is to do: `drive` the run until it waits or has ended, or
`approve` what waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio

from affidavit.actors.approvals import Approvals, waiting
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.approval_kit import TURNS, policy
from tests.actors.mission_kit import GOAL, RUN, SIGNER, FakeTool, script
from tests.crash.victim import DoomedLog, Order, main, note

DRIVE, APPROVE = "drive", "approve"


async def live(order: Order) -> None:
    """Do what the order says."""
    folder, task = Path(order.folder).parent, Path(order.folder).name
    async with (
        open_sqlite_log(folder / "store.sqlite3") as store,
        open_host(DoomedLog(store, Order(str(folder), order.moment, order.number)), signer=SIGNER) as host,
    ):
        if task == APPROVE:
            # None where whoever was killed had decided already.
            for asked in waiting(await history(store, RUN)):
                await host.approve(RUN, asked.call, principal="ada", reason="as agreed", args=asked.args)
            return

        async def act(arguments: Mapping[str, object]) -> str:
            await trio.lowlevel.checkpoint()
            note(folder / "effects", str(arguments["amount"]))
            return "paid"

        config = MissionConfig(script(*TURNS), Toolbox([FakeTool("pay", act)]), policy=policy())
        if await store.info(RUN) is None:
            run = await host.submit(GOAL, config, id=RUN)
        else:
            run = await host.resume(RUN, config)
        # Left while it waits: the run is then parked, as `affidavit run` parks it.
        # Folded from what is read, since a reader may see an event before the session has folded it.
        before, approvals = await history(store, RUN), Approvals()
        async with run.session.subscribe() as events:
            async for event in events:
                approvals.apply(event)
                if event.seq >= len(before) and approvals.undecided:
                    break


if __name__ == "__main__":
    main(live)
