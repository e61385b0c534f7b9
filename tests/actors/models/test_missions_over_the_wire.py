"""Missions with both adapters over real sockets: continued exactly after a crash, retried as asked, all on the record."""

from __future__ import annotations

import base64
import json
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
from affidavit.actors.secrets import Secrets
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import RUN, Ended, FakeTool, KeptLog, run_to_end
from tests.actors.models.asking import KEY
from tests.actors.models.dialects import ALL, Dialect
from tests.actors.models.endpoints import Endpoint, Piece, head, plain, serve
from tests.actors.models.test_anthropic import stream, thinking_turn

DONE = "All is looked at."
SPEC = GoalSpec("Look.", system="You look at things.", max_output_tokens=4096)
dialects = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.provider)


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
    async with serve(*replies) as endpoint, dialect.open("m", base_url=endpoint.url, api_key=KEY) as model:
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
    dialect = next(each for each in ALL if each.name == "anthropic")
    log = KeptLog()
    _, first = await conducted(dialect, log, thoughtful(dialect), done(dialect))
    blocks = first.bodies[1][: first.bodies[1].index(b'{"role":"user","content":[{"type":"tool_result"')]
    assert b"EqQBCkYIAh+/==" in blocks
    risky = Toolbox([FakeTool("look", saw)])
    begun = 0
    for count in range(1, len(log.appends)):
        cut = await log.cut(count)
        async with (
            serve([head(), done(dialect)]) as endpoint,
            dialect.open("m", base_url=endpoint.url, api_key=KEY) as model,
        ):
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
    async with (
        serve(busy, [head(), done(dialect)]) as endpoint,
        dialect.open("m", base_url=endpoint.url, api_key=KEY) as model,
    ):
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
    assert started["model"] == f"{dialect.provider}:m?temperature=0.50"
    assert started["parameters"] == {"temperature": "0.5"}
    (said,) = run.of(Kind.ASSISTANT)
    served = said.detail["served"]
    assert isinstance(served, dict)
    assert served["model"] == "m-2026"
    assert served["id"]
    assert endpoint.requests[0]["temperature"] == 0.5


@dialects
async def test_a_model_goes_out_through_the_run_s_guard(dialect: Dialect) -> None:
    """The connection to the endpoint that the operator named is allowed, and that stands on the record before it is made."""
    async with (
        serve([head(), done(dialect)]) as endpoint,
        dialect.open("m", base_url=endpoint.url, api_key=KEY) as model,
    ):
        run = await run_to_end(MemoryLog(), MissionConfig(model), SPEC)
    (decision,) = run.of(Kind.EGRESS_DECISION)
    assert (decision.host, decision.allowed) == ("127.0.0.1", True)
    kinds = [event.kind for event in run.events]
    assert kinds.index(Kind.ACTION_ADMITTED) < kinds.index(Kind.EGRESS_DECISION) < kinds.index(Kind.ASSISTANT)


@dialects
async def test_an_endpoint_that_may_not_be_dialed_stalls_the_run(
    dialect: Dialect,
) -> None:
    """A name that leads to where clouds keep their credentials is refused; no other attempt is made."""
    resolver = OneAnswer("169.254.169.254")
    trio.socket.set_custom_hostname_resolver(resolver)
    async with dialect.open("m", base_url="http://models.test/v1", api_key=KEY) as model:
        run = await run_to_end(MemoryLog(), MissionConfig(model), SPEC)
    assert run.error_class == "forbidden"
    assert [event.fault for event in run.of(Kind.ACTION_COMPLETED)] == ["egress_denied"]
    (decision,) = run.of(Kind.EGRESS_DECISION)
    assert (decision.host, decision.allowed) == ("169.254.169.254", False)


class OneAnswer(trio.abc.HostnameResolver):
    """Resolves every name to one address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> Any:
        """That address."""
        await trio.lowlevel.checkpoint()
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (self._address, int(port or 0)))]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        """Not asked."""
        raise NotImplementedError


@dialects
async def test_the_key_comes_out_nowhere_even_if_the_endpoint_repeats_it(
    dialect: Dialect, caplog: pytest.LogCaptureFixture, patient_clock: trio.testing.MockClock
) -> None:
    """In words, calls, errors of every kind: neither the record nor a log line has it, in any form."""
    caplog.set_level(logging.DEBUG)
    leaked = f"{KEY} {base64.b64encode(f'x:{KEY}'.encode()).decode()}"
    said = "".join(dialect.events(leaked, (("c1", "look", json.dumps({"k": leaked})),))).encode()
    broken = ("".join(dialect.events("", ())[:1]) + dialect.error("api_error", leaked)).encode()
    refused = plain("400 Bad Request", json.dumps({"error": {"message": leaked, "type": "x"}}).encode())
    log = KeptLog()
    async with (
        serve([head(), said], [head(), broken], refused) as endpoint,
        dialect.open("m", base_url=endpoint.url, api_key=KEY) as model,
    ):
        run = await run_to_end(log, MissionConfig(model, BOX), SPEC)
    assert run.error_class == "terminal"
    rows = b"".join(row for entries in log.appends for entry in entries for row in entry.rows)
    for text in (rows.decode("utf-8", "replace"), repr(run.events), run.answer, caplog.text):
        for form in Secrets(frozenset({KEY})).forms:
            assert form not in text
    assert "[secret removed]" in run.results[0]
