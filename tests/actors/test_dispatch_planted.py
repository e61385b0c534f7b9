"""Violations planted into a real run's record, signed again by the key's own holder: each is refused with its code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from affidavit.actors.approvals import Decision
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.model import Approval, Grant, Policy
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.crypto import Envelope, FailureCode, Tier, decode_event, encode_event, verify_record
from tests.actors.mission_kit import DONE, RUN, FakeTool, calls, replies, session_and_runtime
from tests.crypto.samples import code_of, keyring, sealed

Rows = Sequence[Envelope]

START, END, REJECTED, ASKED, DECIDED = (
    "dispatch.start",
    "dispatch.end",
    "dispatch.rejected",
    "approval.requested",
    "approval.decided",
)


async def produced() -> list[Envelope]:
    """A run whose model looks, pays with a person's approval, and tries what it was not granted."""
    log = MemoryLog()
    config = MissionConfig(
        model=replies(calls("look", "pay", "wire"), DONE),
        toolbox=Toolbox([FakeTool("look"), FakeTool("pay"), FakeTool("wire")]),
        policy=Policy(grant=Grant(tools=("look", "pay")), approval=(Approval(tools=("pay",)),)),
    )
    async with session_and_runtime(log, config) as (session, runtime):
        await session.submit(runtime, GoalSpec("Settle the ledger."))
        async with session.subscribe() as events:
            async for event in events:
                if event.kind == Kind.APPROVAL_REQUESTED:
                    await session.decide(Decision(event.call, True, "ann"))
                    break
        assert await session.wait() == DONE.text
    return [decode_event(row.data) for row in await log.read(RUN)]


def signed(events: Rows) -> bytes:
    """The record of these events, whatever they are, with a signature that holds."""
    return sealed([encode_event(event) for event in events], origin=RUN)


def place(events: Rows, kind: str, action: str = "") -> int:
    """Where the first event of a type stands, of an action if one is named."""
    return next(
        index
        for index, event in enumerate(events)
        if event.type == kind and (not action or event.payload["action"] == action)
    )


def without(events: Rows, kind: str, action: str = "") -> list[Envelope]:
    """The events but for one."""
    index = place(events, kind, action)
    return [*events[:index], *events[index + 1 :]]


def with_last(events: Rows, kind: str, payload: dict[str, object]) -> list[Envelope]:
    """The events, and one more in the end."""
    last = events[-1]
    return [*events, replace(last, seq=last.seq + 1, type=kind, payload=payload)]


def changed(events: Rows, kind: str, action: str, **payload: object) -> list[Envelope]:
    """The events, one of them with another payload; a value of None takes the key away."""
    index = place(events, kind, action)
    kept = {key: value for key, value in {**events[index].payload, **payload}.items() if value is not None}
    return [*events[:index], replace(events[index], payload=kept), *events[index + 1 :]]


def behind_its_end(events: Rows) -> list[Envelope]:
    """The admission of the payment, moved to the end of the record."""
    admission = events[place(events, START, "pay")]
    return [*without(events, START, "pay"), replace(admission, seq=events[-1].seq + 1)]


def call_of(events: Rows, kind: str, action: str) -> object:
    """The number of an action."""
    return events[place(events, kind, action)].payload["call"]


def refused_and_run(events: Rows) -> list[Envelope]:
    """The refused action, admitted and ended all the same."""
    call = call_of(events, REJECTED, "wire")
    return with_last(with_last(events, START, {"call": call}), END, {"call": call})


PLANTED: dict[str, tuple[Callable[[Rows], list[Envelope]], FailureCode]] = {
    "a tool's admission left out": (
        lambda events: without(events, START, "pay"),
        FailureCode.GOV_UNADMITTED_ACTION,
    ),
    "a model call's admission left out": (
        lambda events: without(events, START, "model.generate"),
        FailureCode.GOV_UNADMITTED_ACTION,
    ),
    "an admission behind its end": (behind_its_end, FailureCode.GOV_UNADMITTED_ACTION),
    "an admission of another call": (
        lambda events: changed(events, START, "pay", call=99),
        FailureCode.GOV_UNADMITTED_ACTION,
    ),
    "an admission of no call": (
        lambda events: changed(events, START, "pay", call=None),
        FailureCode.GOV_UNADMITTED_ACTION,
    ),
    "an end of no call": (
        lambda events: changed(events, END, "pay", call=None),
        FailureCode.GOV_UNADMITTED_ACTION,
    ),
    "an action that only ends": (
        lambda events: with_last(events, END, {"call": 99}),
        FailureCode.GOV_UNADMITTED_ACTION,
    ),
    "a rejected call that ends": (
        lambda events: with_last(events, END, {"call": call_of(events, REJECTED, "wire")}),
        FailureCode.GOV_UNADMITTED_ACTION,
    ),
    "a rejected call that was admitted and ends": (
        refused_and_run,
        FailureCode.GOV_ADMISSION_DENIED_BUT_EXECUTED,
    ),
    "a call that ran, rejected afterwards": (
        lambda events: with_last(events, REJECTED, {"call": call_of(events, START, "pay")}),
        FailureCode.GOV_ADMISSION_DENIED_BUT_EXECUTED,
    ),
    "a success without a check": (
        lambda events: with_last(events, "outcome.recorded", {"result": "success", "check": 99}),
        FailureCode.SHALLOW_NO_GROUND_TRUTH,
    ),
    "a success that names no check": (
        lambda events: with_last(events, "outcome.recorded", {"result": "success"}),
        FailureCode.SHALLOW_NO_GROUND_TRUTH,
    ),
    "a success on a check that failed": (
        lambda events: with_last(
            with_last(events, "check.recorded", {"id": 99, "passed": False}),
            "outcome.recorded",
            {"result": "success", "check": 99},
        ),
        FailureCode.SHALLOW_NO_GROUND_TRUTH,
    ),
    "two events in the other order": (
        lambda events: [events[1], events[0], *events[2:]],
        FailureCode.CHAIN_NON_MONOTONIC_SEQ,
    ),
    "an event twice": (
        lambda events: [*events[:3], events[2], *events[3:]],
        FailureCode.CHAIN_NON_MONOTONIC_SEQ,
    ),
    "an event of another run": (
        lambda events: [*events[:2], replace(events[2], stream="run-2"), *events[3:]],
        FailureCode.CHAIN_STREAM_MISMATCH,
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
async def test_each_planted_violation_is_refused_with_its_code(planted: str) -> None:
    """The signature holds and the root fits, and still the record is refused, by the tier that the code belongs to."""
    plant, code = PLANTED[planted]
    events = await produced()
    assert code_of(verify_record, signed(plant(events)), keyring()) == code


async def test_the_record_that_nothing_was_planted_into_passes() -> None:
    """Two model calls, two tools, one refusal: the run as it was produced is verified at L4, and nothing is noticed."""
    events = await produced()
    record = verify_record(signed(events), keyring())
    assert record.tier == Tier.L4
    assert record.governance is not None
    assert (record.governance.admitted, record.governance.refused) == (4, 1)
    assert record.findings == ()


NOTICED: dict[str, Callable[[Rows], list[Envelope]]] = {
    "open_call": lambda events: without(events, END, "pay"),
    "approval_not_on_record": lambda events: without(events, DECIDED, "pay"),
    "approval_not_given": lambda events: changed(events, DECIDED, "pay", decision="refused"),
    "approval_for_other_arguments": lambda events: changed(events, START, "pay", args=bytes(32)),
}


@pytest.mark.parametrize("kind", NOTICED)
async def test_what_the_format_has_no_code_for_is_noticed_by_name(kind: str) -> None:
    """An action that never ends, as a crash leaves it, and an admission that no decision bears out: found, and not refused."""
    record = verify_record(signed(NOTICED[kind](await produced())), keyring())
    assert kind in [str(finding.kind) for finding in record.findings]
