"""What the tests of approvals and of the brake share: a mission that pays, and a policy that has a person approve it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from affidavit.actors.approval_signing import statement_of
from affidavit.actors.approvals import Approval, Decision
from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.host import Host, Run, open_host
from affidavit.actors.logs.port import Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.model import Policy
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.crypto import SigningKey
from affidavit.crypto.approval import sign_approval
from tests.actors.mission_kit import GOAL, RUN, SIGNER, FakeTool, script

ADA = SigningKey.from_seed(b"a" * 32)
EVE = SigningKey.from_seed(b"e" * 32)
TURNS: tuple[dict[str, object], ...] = (
    {"tool_calls": [{"name": "pay", "input": {"amount": 420}}]},
    {"text": "All is settled."},
)


def policy(**rule: object) -> Policy:
    """Return a policy under which `pay` needs approval; further parts of the rule by name."""
    keys = {"ada": ADA.public.hex} if rule.get("signed") else {}
    return Policy.model_validate(
        {
            "grant": {"tools": ["pay", "note"]},
            "approval": [{"tools": ["pay"], "expires_seconds": 3600} | rule],
            "approver_keys": keys,
        }
    )


def paying(tool: FakeTool, clock: Clock | None = None, rules: Policy | None = None) -> MissionConfig:
    """Return a mission that pays once, and then is done."""
    return MissionConfig(
        script(*TURNS), Toolbox([tool]), clock=clock or SystemClock(), policy=rules or policy()
    )


def statement(approval: Approval, decision: Decision, key: SigningKey = ADA, run_id: str = RUN) -> bytes:
    """Return a decision, signed."""
    signed = statement_of(run_id, approval, decision)
    return sign_approval(signed, kid=key.public.did_key.encode(), sign=key.sign)


@asynccontextmanager
async def waiting_run(
    log: Log, config: MissionConfig, clock: Clock | None = None
) -> AsyncIterator[tuple[Host, Run]]:
    """Drive the run, new or resumed, on a host until it waits for a person; at the end of the block it is parked."""
    async with open_host(log, signer=SIGNER, clock=clock) as host:
        if await log.info(RUN) is None:
            run = await host.submit(GOAL, config, id=RUN)
        else:
            run = await host.resume(RUN, config)
        while not run.session.waiting:
            await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        yield host, run
