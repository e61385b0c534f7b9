"""A run that goes out: each decision stands on its own record before anything is dialed, and the record verifies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Event, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.netguard.policy import EgressPolicy
from affidavit.actors.netguard.scope import current_guard, guard_in_force
from affidavit.actors.policy.model import Egress, Grant, Policy
from affidavit.actors.toolbox.http_fetch import http_fetch
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.crypto import Tier
from tests.actors.mission_kit import RUN, FakeTool, KeptLog, run_to_end, script

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
METADATA = "http://169.254.169.254/latest/meta-data"


class Server:
    """A listener on loopback that answers every request, and knows who connected after how many recorded events."""

    def __init__(self, log: KeptLog) -> None:
        self._log = log
        self.port = 0
        self.accepted: list[int] = []

    async def answer(self, stream: trio.SocketStream) -> None:
        """Answer one client."""
        info = await self._log.info(RUN)
        self.accepted.append(info.tip if info else 0)
        async with stream:
            await stream.receive_some(4096)
            await stream.send_all(ANSWER)


@asynccontextmanager
async def serving(log: KeptLog) -> AsyncIterator[Server]:
    """Serve while the block lasts."""
    server = Server(log)
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, server.answer, 0, host="127.0.0.1"))
        server.port = listener.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


def fetches(*urls: str) -> MissionConfig:
    """A mission that fetches these addresses, one in a turn, and then says that it is done."""
    turns: list[Mapping[str, object]] = [
        {"text": "", "tool_calls": [{"name": "http_fetch", "input": {"url": url}}]} for url in urls
    ]
    return MissionConfig(script(*turns, {"text": "Done."}), Toolbox([http_fetch()]))


def decisions(events: tuple[Event, ...]) -> list[tuple[str, bool]]:
    """The egress decisions: host and verdict."""
    return [(event.host, event.allowed) for event in events if event.kind == Kind.EGRESS_DECISION]


async def test_every_connection_has_exactly_one_earlier_allow_on_the_record() -> None:
    """Each connection that a listener accepted comes after one allow of its own; what was refused is contacted by nobody (G8).

    The record of the whole run verifies at L4.
    """
    log = KeptLog()
    async with serving(log) as allowed, serving(log) as other:
        here, there = (f"http://127.0.0.1:{each.port}/" for each in (allowed, other))
        config = fetches(here, there, METADATA, here)
        config = MissionConfig(
            config.model, config.toolbox, egress=EgressPolicy((f"127.0.0.1:{allowed.port}",))
        )
        run = await run_to_end(log, config, GoalSpec("Fetch."))
    assert decisions(run.events) == [
        ("127.0.0.1", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("127.0.0.1", True),
    ]
    allows = [event.seq for event in run.events if event.kind == Kind.EGRESS_DECISION and event.allowed]
    assert other.accepted == []
    assert len(allowed.accepted) == len(allows)
    assert all(tip >= seq for tip, seq in zip(allowed.accepted, allows, strict=True))
    assert [("hello" in text, text.startswith("refused")) for text in run.results] == [
        (True, False),
        (False, True),
        (False, True),
        (True, False),
    ]
    ends = [
        event.fault
        for event in run.events
        if event.kind == Kind.ACTION_COMPLETED and event.action == "http_fetch"
    ]
    assert ends == ["", "egress_denied", "egress_denied", ""]
    assert run.record.tier is Tier.L4


@pytest.mark.parametrize("policy", [None, Policy(grant=Grant(tools=("http_fetch",)))])
async def test_without_a_rule_nothing_is_reached(policy: Policy | None) -> None:
    """The default is nowhere, with a policy and without one, and the refusal is on the record."""
    log = KeptLog()
    async with serving(log) as server:
        config = fetches(f"http://127.0.0.1:{server.port}/")
        run = await run_to_end(
            log, MissionConfig(config.model, config.toolbox, policy=policy), GoalSpec("Fetch.")
        )
    assert decisions(run.events) == [("127.0.0.1", False)]
    assert server.accepted == []


async def test_the_policys_egress_rules_are_those_of_the_run() -> None:
    """What the policy file allows is reached, and its digest stands for it."""
    log = KeptLog()
    async with serving(log) as server:
        policy = Policy(
            grant=Grant(tools=("http_fetch",)), egress=Egress(allow=(f"127.0.0.1:{server.port}",))
        )
        config = fetches(f"http://127.0.0.1:{server.port}/")
        run = await run_to_end(
            log, MissionConfig(config.model, config.toolbox, policy=policy), GoalSpec("Fetch.")
        )
    assert decisions(run.events) == [("127.0.0.1", True)]
    assert len(server.accepted) == 1


async def test_any_tool_finds_the_guard_of_the_run_that_calls_it() -> None:
    """A tool made once for many runs dials through the guard of the one it serves; outside of a run there is none."""

    async def dial(arguments: object) -> str:
        try:
            await current_guard().dial("10.0.0.1", 80)
        except Exception as error:
            raise ToolFailed(str(error)) from error
        raise AssertionError("it was reached")

    model = script({"text": "", "tool_calls": [{"name": "dial"}]}, {"text": "Done."})
    run = await run_to_end(
        KeptLog(), MissionConfig(model, Toolbox([FakeTool("dial", dial)])), GoalSpec("Dial.")
    )
    assert decisions(run.events) == [("10.0.0.1", False)]
    assert guard_in_force() is None
    with pytest.raises(RuntimeError, match="outside of a run"):
        current_guard()
