"""What a check may be, what of it is part of a run's configuration, and what of what it saw is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from affidavit.actors.checks import Check, CheckNotRun, CheckResult
from affidavit.actors.errors import ConfigurationError
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.model import Check as DeclaredCheck
from affidavit.actors.policy.model import Policy
from affidavit.actors.secrets import Secrets
from tests.actors.checks_kit import PASS, Counted, config
from tests.actors.mission_kit import DONE, replies, run_to_end


def test_checks_that_could_not_be_told_apart_or_run_are_refused_at_once() -> None:
    """Two of one name, from host and policy together; a policy's command without a place; a name or a time that is none."""
    declared = Policy(check=(DeclaredCheck(name="tests", command=("true",)),))
    made = partial(MissionConfig, replies(DONE))
    with pytest.raises(ConfigurationError, match="two checks are named 'tests'"):
        made(checks=(Check("tests", Counted(PASS)),), policy=declared, place="/")
    with pytest.raises(ConfigurationError, match="need a place to run in"):
        made(policy=declared)
    with pytest.raises(ConfigurationError, match="a check's name is"):
        Check("-", Counted(PASS))
    with pytest.raises(ConfigurationError, match="needs a time limit above 0"):
        Check("tests", Counted(PASS), seconds=0)


def test_what_backs_a_success_is_part_of_the_policys_digest() -> None:
    """Another check, or one that may be run again, is another policy; the order counts."""
    one, two_ = Check("one", Counted(PASS)), Check("two", Counted(PASS))
    ways = [(), (one,), (two_,), (one, two_), (two_, one), (Check("one", Counted(PASS), idempotent=True),)]
    digests = {MissionConfig(replies(DONE), checks=way).digests(GoalSpec("x"))["policy"] for way in ways}
    assert len(digests) == len(ways)


def test_the_place_of_a_policys_checks_is_part_of_it_too() -> None:
    """The same command in another folder checks something else; without checks, the place says nothing."""
    policy = Policy(check=(DeclaredCheck(name="tests", command=("true",)),))

    def digest(policy: Policy, place: str) -> bytes:
        return MissionConfig(replies(DONE), policy=policy, place=place).digests(GoalSpec("x"))["policy"]

    assert digest(policy, "/one") != digest(policy, "/two")
    assert digest(Policy(), "/one") == digest(Policy(), "/two")


async def test_a_secret_that_a_check_saw_is_not_recorded() -> None:
    """Neither in its verdict nor in the reason of a stall, where a cut could have left half of it."""
    secret = "sesame-open-sesame"
    said = "x" * 290 + secret
    for answer in (CheckResult(passed=False, detail=said), CheckNotRun(said)):
        made = MissionConfig(
            replies(DONE),
            checks=(Check("tests", Counted(answer)),),
            secrets=Secrets(frozenset({secret})),
        )
        run = await run_to_end(MemoryLog(), made)
        assert run.error_class
        assert "sesame" not in f"{run.events}{run.answer}"


async def test_what_a_check_saw_is_bounded_and_shown_by_its_end() -> None:
    """The record keeps its beginning, marked with what it was; the reason shows its first line and how the last one ends."""
    text = "exit code 1\n" + "x" * 40_000 + "\ud800 the end"
    run = await run_to_end(
        MemoryLog(), config(Check("tests", Counted(CheckResult(passed=False, detail=text))))
    )
    (check,) = run.of(Kind.CHECK)
    assert len(str(check.detail["detail"])) == 32 * 1024
    cut = check.detail["cut"]
    assert isinstance(cut, Mapping)
    assert cut["bytes"] == len(text.encode("utf-8", "surrogatepass"))
    assert check.detail["replaced"] is True
    assert len(run.answer) < 1200
    assert "exit code 1; it ends with: xxx" in run.answer
