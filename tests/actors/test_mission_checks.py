"""Ground truth: what backs a success is run through the waist and recorded, and what came to no verdict claims nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.actors.checks import Check, CheckNotRun, CheckResult
from affidavit.actors.errors import LogError, SessionFailed, Stalled
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ToolCall
from affidavit.actors.policy.model import Budget, Policy
from affidavit.crypto import Governance
from tests.actors.checks_kit import FAIL, PASS, Counted, claims, config
from tests.actors.fakes import Fault, FaultLog
from tests.actors.mission_kit import (
    DONE,
    RUN,
    Ended,
    KeptLog,
    check_record,
    ended,
    park_when,
    replies,
    run_to_end,
    session_and_runtime,
)

CHECK_KINDS = (Kind.CHECK, Kind.OUTCOME)


def governance(run: Ended) -> Governance:
    """What tier L4 says of a run's record."""
    assert run.record.governance is not None
    return run.record.governance


async def test_a_run_whose_checks_all_pass_claims_a_success_that_names_its_check() -> None:
    """Each check is an action of its own, its id is its call; the last one's append holds end, verdict and outcome."""
    log = KeptLog()
    run = await run_to_end(log, config(Check("lint", Counted(PASS)), Check("tests", Counted(PASS))))
    assert (run.answer, run.error_class) == (DONE.text, "")
    assert [each.action for each in run.of(Kind.ACTION_ADMITTED)] == [
        "model.generate", "check.lint", "check.tests",
    ]  # fmt: skip
    first, second = run.of(Kind.CHECK)
    calls = [each.call for each in run.of(Kind.ACTION_ADMITTED)][1:]
    assert dict(first.detail) == {"check": calls[0], "name": "lint", "passed": True, "detail": "3 passed"}
    assert (second.detail["check"], second.detail["name"]) == (calls[1], "tests")
    (outcome,) = run.of(Kind.OUTCOME)
    assert (outcome.result, dict(outcome.detail)) == ("success", {"check": calls[1], "name": "tests"})
    appends = [[log_kind(row) for row in entries[0].rows] for entries in log.appends]
    assert ["dispatch.end", "check.recorded"] in appends
    assert ["dispatch.end", "check.recorded", "outcome.recorded"] in appends
    assert governance(run).outcomes_claimed == 1
    assert "check" not in run.of(Kind.CONVERGED)[0].detail


def log_kind(row: bytes) -> str:
    """The stored type of a row."""
    from affidavit.crypto.event import decode_event

    return decode_event(row).type


async def test_a_run_without_checks_claims_nothing() -> None:
    """It converges on the model's own answer, and its record has no outcome."""
    run = await run_to_end(MemoryLog(), config())
    assert run.answer == DONE.text
    assert run.of(*CHECK_KINDS) == []
    assert governance(run).outcomes_claimed == 0


async def test_a_check_that_fails_stalls_the_run_with_what_it_saw() -> None:
    """Terminal, with the code check_failed; the outcome is a failure, and no later check is run."""
    later = Counted(PASS)
    run = await run_to_end(MemoryLog(), config(Check("tests", Counted(FAIL)), Check("later", later)))
    assert (run.answer, run.error_class) == ("the check 'tests' failed: 1 failed", FaultClass.TERMINAL)
    assert [each.error_code for each in run.of(Kind.STALLED)] == ["check_failed"]
    assert claims(run.events) == [("failure", 2)]
    assert later.runs == 0
    assert governance(run).outcomes_claimed == 0


@pytest.mark.parametrize(
    ("answer", "code", "why"),
    [
        (5.0, "timeout", "it did not finish within 2 s"),
        (ValueError("no such thing"), "check_crashed", "it crashed: ValueError: no such thing"),
        (CheckNotRun("the machine is away", "away"), "away", "the machine is away"),
        (None, "check_crashed", "it returned NoneType and no verdict"),
        (CheckResult(passed=1), "check_crashed", "it returned CheckResult and no verdict"),  # type: ignore[arg-type]
        (True, "check_crashed", "it returned bool and no verdict"),
    ],
)
async def test_a_check_that_comes_to_no_verdict_leaves_none(
    answer: object, code: str, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Its end says why; there is no check and no outcome on the record, and the run stalls and says so."""
    run = await run_to_end(MemoryLog(), config(Check("tests", Counted(answer), seconds=2)))
    assert (run.answer, run.error_class) == (
        f"the check 'tests' came to no verdict: {why}",
        FaultClass.TERMINAL,
    )
    assert run.of(Kind.STALLED)[0].error_code == "check_without_verdict"
    (end,) = [each for each in run.of(Kind.ACTION_COMPLETED) if each.action == "check.tests"]
    assert (end.error_class, end.error_code) == (FaultClass.TERMINAL, code)
    assert run.of(*CHECK_KINDS) == []


async def test_a_check_is_held_to_the_budget_like_any_other_action(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Time that is used up refuses it on the record; it does not run, and no success is claimed."""
    late = Counted(PASS)
    policy = Policy(budget=Budget(seconds=3))
    run = await run_to_end(
        MemoryLog(), config(Check("slow", Counted(2.9999)), Check("late", late), policy=policy)
    )
    (rejected,) = run.of(Kind.ACTION_REJECTED)
    assert (rejected.action, rejected.error_class, rejected.error_code) == (
        "check.late", FaultClass.BUDGET_EXCEEDED, "time",
    )  # fmt: skip
    assert run.answer == "the check 'late' was refused: the budget of 3 s of work is used up"
    assert (run.error_class, run.of(Kind.STALLED)[0].error_code) == (FaultClass.BUDGET_EXCEEDED, "time")
    assert late.runs == 0
    assert claims(run.events) == []


async def test_the_brake_stops_a_check_too() -> None:
    """Pulled while one check runs, the next is refused, on the record."""
    log, begun, go = MemoryLog(), trio.Event(), trio.Event()
    second = Counted(PASS)

    async def first() -> CheckResult:
        begun.set()
        await go.wait()
        return PASS

    async with session_and_runtime(log, config(Check("first", first), Check("second", second))) as (
        session,
        runtime,
    ):
        await session.submit(runtime, GoalSpec("x"))
        await begun.wait()
        await session.brake(engage=True, principal="ann", reason="enough")
        go.set()
        with pytest.raises(Stalled, match="the check 'second' was refused: the brake is on: ann: enough"):
            await session.wait()
        await session.seal()
    run = await ended(log, "", "")
    assert [(each.action, each.error_code) for each in run.of(Kind.ACTION_REJECTED)] == [
        ("check.second", "brake")
    ]
    assert second.runs == 0
    assert claims(run.events) == []


@pytest.mark.parametrize(
    "reply", [ModelReply(""), ModelReply("Because", (), "max_tokens")], ids=["empty", "cut off"]
)
async def test_nothing_is_checked_where_there_is_no_answer(reply: ModelReply) -> None:
    """An answer that is empty or was cut off is no answer, and stalls as without checks."""
    check = Counted(PASS)
    run = await run_to_end(MemoryLog(), MissionConfig(replies(reply), checks=(Check("tests", check),)))
    assert run.error_class
    assert check.runs == 0


async def test_a_tool_that_the_model_names_like_a_check_is_none() -> None:
    """Such a call is refused as unknown, and takes no part in the checks."""
    check = Counted(PASS)
    model = replies(ModelReply("", (ToolCall("t1", "check.tests", "{}"),), "tool_use"), DONE)
    run = await run_to_end(MemoryLog(), MissionConfig(model, checks=(Check("tests", check),)))
    assert [each.error_code for each in run.of(Kind.ACTION_REJECTED)] == ["unknown_tool"]
    assert check.runs == 1
    assert claims(run.events) == [("success", 4)]


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_check_that_was_interrupted_is_run_again_only_if_it_says_it_may_be(idempotent: bool) -> None:
    """Parked in the middle of it, the run is resumed: either it is run anew, or the run stalls without a verdict."""
    log, begun = MemoryLog(), trio.Event()

    async def hang() -> CheckResult:
        begun.set()
        await trio.sleep_forever()
        raise AssertionError

    await park_when(log, config(Check("tests", hang, idempotent=idempotent)), begun)
    again = Counted(PASS)
    run = await run_to_end(log, config(Check("tests", again, idempotent=idempotent)), resume=True)
    ends = [each.error_class for each in run.of(Kind.ACTION_COMPLETED) if each.action == "check.tests"]
    if idempotent:
        assert (run.answer, again.runs, ends) == (DONE.text, 1, [FaultClass.INTERRUPTED, ""])
        assert claims(run.events) == [("success", 3)]
    else:
        assert run.answer == (
            "the check 'tests' came to no verdict: it had begun when the run stopped, and it may not be run again"
        )
        assert (again.runs, ends, claims(run.events)) == (0, [FaultClass.INTERRUPTED], [])


def two(effects: list[str], second: CheckResult = PASS) -> MissionConfig:
    """Two checks, the first of which may be run again; each notes that it began."""

    def noted(name: str, result: CheckResult) -> Callable[[], Awaitable[CheckResult]]:
        async def work() -> CheckResult:
            effects.append(name)
            await trio.lowlevel.checkpoint()
            return result

        return work

    return config(
        Check("first", noted("first", PASS), idempotent=True), Check("second", noted("second", second))
    )


@pytest.mark.parametrize("second", [PASS, FAIL], ids=["passes", "fails"])
async def test_a_crash_after_any_append_never_runs_a_check_again_that_has_a_verdict(
    second: CheckResult,
) -> None:
    """Cut at each append, the resumed run comes to the same end, unless the cut fell into what must not be repeated."""
    whole = KeptLog()
    undisturbed = await run_to_end(whole, two([], second))
    ends: set[str] = set()
    for count in range(1, len(whole.appends)):
        log = await whole.cut(count)
        stood = await history(log, RUN)
        found = {str(each.detail["name"]) for each in stood if each.kind == Kind.CHECK}
        begun = {each.action for each in stood if each.kind == Kind.ACTION_ADMITTED}
        if any(each.kind in {Kind.CONVERGED, Kind.STALLED} for each in stood):
            continue
        effects: list[str] = []
        run = await run_to_end(log, two(effects, second), resume=True)
        assert not found & set(effects)
        if "check.second" in begun and "second" not in found:
            assert "may not be run again" in run.answer
            assert claims(run.events) == []
            assert "second" not in effects
        else:
            assert run.answer == undisturbed.answer
            assert claims(run.events)[-1][0] == ("success" if second is PASS else "failure")
        ends.add(run.answer)
    assert len(ends) == 2


@pytest.mark.parametrize("fault", list(Fault))
async def test_whichever_append_fails_no_success_is_claimed_without_its_check(fault: Fault) -> None:
    """Each append in turn fails, written or not; the run is resumable and its record keeps the rules."""
    undisturbed = FaultLog(MemoryLog())
    await run_to_end(undisturbed, two([]))
    for number in range(1, undisturbed.appends + 1):
        log = FaultLog(MemoryLog(), at={number}, fault=fault)
        effects: list[str] = []
        with pytest.raises((SessionFailed, LogError)):
            await run_to_end(log, two(effects))
        log.reopen()
        stood = await history(log, RUN)
        check_record(stood)
        run = await run_to_end(log, two(effects), resume=bool(stood))
        assert effects.count("second") <= 1
        require_grounded(run.events)


def require_grounded(events: Sequence[Event]) -> None:
    """Check that each success rests on a check that passed, and each verdict on an action that was admitted and ended."""
    verdicts = {each.detail["check"]: each.detail["passed"] for each in events if each.kind == Kind.CHECK}
    admitted = {each.call: each.action for each in events if each.kind == Kind.ACTION_ADMITTED}
    for each in events:
        if each.kind == Kind.CHECK:
            assert admitted[int(str(each.detail["check"]))] == f"check.{each.detail['name']}"
        elif each.kind == Kind.OUTCOME:
            assert verdicts[each.detail["check"]] is (each.result == "success")


ANSWERS = st.sampled_from([PASS, PASS, PASS, FAIL, ValueError("broken"), CheckNotRun("away"), None, 9.0])


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(
    answers=st.lists(st.tuples(ANSWERS, st.booleans()), max_size=4),
    cuts=st.lists(st.integers(1, 30), max_size=2),
)
def test_no_success_is_ever_claimed_without_all_checks_having_passed(
    answers: list[tuple[object, bool]], cuts: list[int]
) -> None:
    """Whatever the checks do and wherever the run is cut: it converges if and only if all passed, and claims just then."""

    def made() -> MissionConfig:
        return config(
            *(
                Check(f"c{number}", Counted(answer), seconds=5, idempotent=idempotent)
                for number, (answer, idempotent) in enumerate(answers)
            )
        )

    async def main() -> None:
        log = KeptLog()
        run = await run_to_end(log, made())
        for cut in cuts:
            log = await log.cut(cut)
            resume = bool(await history(log, RUN))
            run = await run_to_end(log, made(), resume=resume)
        require_grounded(run.events)
        passed = {each.detail["name"] for each in run.of(Kind.CHECK) if each.detail["passed"] is True}
        all_passed = passed == {f"c{number}" for number in range(len(answers))}
        successes = [claim for claim, _ in claims(run.events) if claim == "success"]
        assert bool(run.of(Kind.CONVERGED)) is all_passed
        assert len(successes) == (1 if all_passed and answers else 0)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
