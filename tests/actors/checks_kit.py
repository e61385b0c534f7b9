"""What the tests of checks share: a check's work that the test gives, and a mission that is backed by checks."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from affidavit.actors.checks import Check, CheckResult
from affidavit.actors.events import Event, Kind
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.policy.model import Policy
from tests.actors.mission_kit import DONE, replies

PASS = CheckResult(passed=True, detail="3 passed")
FAIL = CheckResult(passed=False, detail="1 failed")


class Counted:
    """A check's work, given by the test, which counts how often it began."""

    def __init__(self, *answers: object) -> None:
        self.answers = answers
        self.runs = 0

    async def __call__(self) -> CheckResult:
        """Give the next answer; the last one stays. An error is raised, a number is a wait in seconds."""
        answer = self.answers[min(self.runs, len(self.answers) - 1)]
        self.runs += 1
        await trio.lowlevel.checkpoint()
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, float):
            await trio.sleep(answer)
            return PASS
        return answer  # type: ignore[return-value]  # also what is no verdict


def config(*checks: Check, policy: Policy | None = None) -> MissionConfig:
    """A mission that answers at once, and is backed by these checks."""
    return MissionConfig(replies(DONE), policy=policy, checks=checks)


def claims(events: Sequence[Event]) -> list[tuple[str, object]]:
    """The outcomes, each with the check that it names."""
    return [(each.result, each.detail["check"]) for each in events if each.kind == Kind.OUTCOME]
