"""Missions with both adapters over real sockets: continued exactly after a crash, retried as asked, all on the record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from affidavit.actors.clock import SystemClock
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import RUN, Ended, FakeTool, KeptLog, run_to_end
from tests.actors.models.dialects import BOTH, Dialect
from tests.actors.models.endpoints import Endpoint, Piece, head, plain, serve
from tests.actors.models.test_anthropic import stream, thinking_turn

DONE = "All is looked at."
SPEC = GoalSpec("Look.", system="You look at things.", max_output_tokens=4096)
dialects = pytest.mark.parametrize("dialect", BOTH, ids=lambda dialect: dialect.name)


def thoughtful(dialect: Dialect) -> bytes:
    """A turn that thinks and calls a tool, with arguments that do not survive being read and written again."""
    if dialect.name == "anthropic":
        return stream(*thinking_turn('{"n": 1.10, "path": "\\u00fc"}'))
    events = dialect.events("I will look.", (("call_1", "look", '{"n": 1.10, "path": "\\u00fc"}'),))
    thinking = 'data: {"choices": [{"delta": {"reasoning_content": "First look."}}]}\n\n'
    return "".join([events[0], thinking, *events[1:]]).encode()


def done(dialect: Dialect) -> bytes:
    """The turn that ends the run."""
    return "".join(dialect.events(DONE, ())).encode()


async def saw(arguments: Mapping[str, object]) -> str:
    """The same, however often it is run."""
    await trio.lowlevel.checkpoint()
    return f"saw {json.dumps(arguments)}"


BOX = Toolbox([FakeTool("look", saw, idempotent=True)])


async def conducted(
    dialect: Dialect, log: Log, *answers: bytes, resume: bool = False
) -> tuple[Ended, Endpoint]:
    """Run a mission against a server that gives these answers."""
    replies: list[list[Piece]] = [[head(), answer] for answer in answers]
    # The address is part of the digest, and a resumed run may find another port.
    async with serve(*replies) as endpoint, dialect.opened(endpoint.url) as model:
        config = MissionConfig(model, BOX)
        ended = await run_to_end(log, config, SPEC, resume=resume, accept_changes=resume)
    return ended, endpoint


@dialects
async def test_a_run_killed_at_any_moment_goes_on_with_the_very_same_bytes(dialect: Dialect) -> None:
    """Cut after each append, between a thinking block and its tool result too: the next request is the same, byte by byte."""
    log = KeptLog()
    run, first = await conducted(dialect, log, thoughtful(dialect), done(dialect))
    assert run.answer == DONE
    asked, answered = first.bodies
    # A later request begins with the one before, whose list of messages it goes on with.
    assert asked.endswith(b"]}")
    assert answered.startswith(asked[:-2])
    assert b"First look." in answered
    for count in range(1, len(log.appends)):
        cut = await log.cut(count)
        kinds = [event.kind for event in await history(cut, RUN)]
        if Kind.CONVERGED in kinds or kinds.count(Kind.ASSISTANT) == 2:
            continue
        left = [answered] if Kind.ASSISTANT in kinds else [asked, answered]
        replies = [thoughtful(dialect), done(dialect)][-len(left) :]
        resumed, endpoint = await conducted(dialect, cut, *replies, resume=True)
        assert resumed.answer == DONE, count
        assert endpoint.bodies == left, count


async def test_a_call_whose_outcome_is_unknown_still_follows_the_same_bytes() -> None:
    """Where the tool may not be run again, everything up to its result is the same all the same."""
    dialect = next(each for each in BOTH if each.name == "anthropic")
    log = KeptLog()
    _, first = await conducted(dialect, log, thoughtful(dialect), done(dialect))
    blocks = first.bodies[1][: first.bodies[1].index(b'{"role":"user","content":[{"type":"tool_result"')]
    assert b"EqQBCkYIAh+/==" in blocks
    risky = Toolbox([FakeTool("look", saw)])
    begun = 0
    for count in range(1, len(log.appends)):
        cut = await log.cut(count)
        async with serve([head(), done(dialect)]) as endpoint, dialect.opened(endpoint.url) as model:
            kinds = [event.kind for event in await history(cut, RUN)]
            if kinds.count(Kind.ASSISTANT) != 1:
                continue
            begun += 1
            await run_to_end(cut, MissionConfig(model, risky), resume=True, accept_changes=True)
        assert endpoint.bodies[0].startswith(blocks), count
    assert begun >= 2


@dataclass
class PatientClock:
    """The system's clock, with what was waited on it."""

    waits: list[float] = field(default_factory=list)

    def now_ns(self) -> int:
        """The time."""
        return SystemClock().now_ns()

    async def sleep(self, seconds: float) -> None:
        """Wait, and note it."""
        self.waits.append(seconds)
        await SystemClock().sleep(seconds)


@dialects
async def test_a_busy_endpoint_is_asked_again_when_it_said(
    dialect: Dialect, patient_clock: trio.testing.MockClock
) -> None:
    """The wait that a 429 asks for is waited before the next attempt, and both attempts are on the record."""
    clock = PatientClock()
    busy = plain("429 Too Many Requests", b"{}", headers="Retry-After: 7\r\n")
    async with serve(busy, [head(), done(dialect)]) as endpoint, dialect.opened(endpoint.url) as model:
        run = await run_to_end(MemoryLog(), MissionConfig(model, clock=clock), SPEC)
    assert run.answer == DONE
    assert [event.fault for event in run.of(Kind.ACTION_COMPLETED)] == ["rate_limited", ""]
    assert [wait for wait in clock.waits if 7 <= wait < 8]
    assert endpoint.bodies[0] == endpoint.bodies[1]


@dialects
async def test_who_answered_and_with_which_parameters_is_on_the_record(dialect: Dialect) -> None:
    """session.started says what the model was asked with, and each answer by whom it was given."""
    async with (
        serve([head(), done(dialect)]) as endpoint,
        dialect.open("m?temperature=0.50", base_url=endpoint.url, api_key="k") as model,
    ):
        run = await run_to_end(MemoryLog(), MissionConfig(model), SPEC)
    started = run.events[0].detail
    assert started["model"] == f"{dialect.name}:m?temperature=0.50"
    assert started["parameters"] == {"temperature": "0.5"}
    (said,) = run.of(Kind.ASSISTANT)
    served = said.detail["served"]
    assert isinstance(served, dict)
    assert served["model"] == "m-2026"
    assert served["id"]
    assert endpoint.requests[0]["temperature"] == 0.5
