"""The checks of a mission: each run once for an answer, through the waist, its verdict on the record before anything rests on it.

The end of a check, its verdict and the outcome that rests on it are one append. A success is claimed with the last check alone,
once all have passed; a failure with the first that failed. What came to no verdict leaves neither.
"""

from __future__ import annotations

import math
from typing import Final, final

import trio

from affidavit.actors.checks import Check, CheckNotRun, CheckResult
from affidavit.actors.checks_fold import Lost, Verdict
from affidavit.actors.deciders.port import Action, Denial
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.events import Event, FaultClass, Kind, Trust
from affidavit.actors.faults import stopping_part, words_of
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.mission_reply import MAX_NAME, fit_marked
from affidavit.actors.text import fit
from affidavit.actors.work import Done, Permit

SUCCESS: Final = "success"
FAILURE: Final = "failure"
_MAX_DETAIL: Final = 32 * 1024
_SHOWN: Final = 300


class Unbacked(Exception):  # an outcome passed between two modules, never seen by a user
    """The answer is not backed, for a reason that ends the goal.

    Attributes:
        error_class: The fault class.
        error_code: A finer code.
    """

    def __init__(self, reason: str, error_class: str, error_code: str) -> None:
        super().__init__(reason)
        self.error_class = error_class
        self.error_code = error_code


@final
class CheckStep:
    """Runs a mission's checks."""

    def __init__(self, config: MissionConfig, ledger: MissionLedger, dispatcher: Dispatcher) -> None:
        """Bind to one mission."""
        self._checks = config.declared_checks
        self._limit = min(config.text_limit, _MAX_DETAIL)
        self._secrets = config.secrets
        self._ledger = ledger
        self._dispatcher = dispatcher

    async def run(self) -> bool:
        """Run the first check that has no verdict about the answer that stands.

        Returns:
            Whether there was none to run, since all have passed.

        Raises:
            Unbacked: A check failed, was refused, or came to no verdict.
            LogError: It could not be recorded.

        Cancellation: a begun check is closed on the record, see `Dispatcher.govern`.
        """
        verdicts = self._ledger.conversation.verdicts
        for check in self._checks:
            verdict, lost = verdicts.found.get(check.name), verdicts.lost.get(check.name)
            if verdict is not None:
                self._require_passed(check, verdict)
                continue
            if lost is not None and not (check.idempotent and lost.error_class == FaultClass.INTERRUPTED):
                raise _no_verdict(check, _words(lost))
            await self._govern(check)
            return False
        return True

    def _require_passed(self, check: Check, verdict: Verdict) -> None:
        if not verdict.passed:
            said = f": {_shortened(verdict.detail)}" if verdict.detail.strip() else ""
            raise Unbacked(f"the check {check.name!r} failed{said}", FaultClass.TERMINAL, "check_failed")

    async def _govern(self, check: Check) -> None:
        action = Action(
            check.action,
            Trust.TRUSTED,
            turn=self._ledger.conversation.turn,
            idempotent=check.idempotent,
            limit_ms=max(round(check.seconds * 1000), 1),
            declared=True,
        )

        async def work(permit: Permit) -> Done[str]:
            return await self._work(check, permit)

        done = await self._dispatcher.govern(action, work)
        if isinstance(done, Denial):
            reason = f"the check {check.name!r} was refused: {done.reason}"
            raise Unbacked(reason, done.error_class, done.error_code)
        if done.error_class:
            # Before it is shortened, so that no cut can leave half a secret.
            raise _no_verdict(check, self._secrets.scrub(done.value))

    async def _work(self, check: Check, permit: Permit) -> Done[str]:
        """Return why there is no verdict, or nothing and the events of the one that there is."""
        limit = math.inf if permit.seconds is None else permit.seconds
        result: object = None
        try:
            with trio.move_on_after(limit) as scope:
                result = await check.run()
        except CheckNotRun as error:
            return _failed(words_of(error), fit(error.code, MAX_NAME)[0])
        except BaseException as error:  # noqa: ASYNC103  # cancellation is raised again
            # A check is outside code: whatever it raises is no verdict, unless something greater stopped it.
            if stopping_part(error) is not None:
                raise
            text = f"it crashed: {type(error).__name__}: {words_of(error)}"
            return _failed(text, "check_crashed")  # noqa: ASYNC104  # a crash and no cancellation
        if scope.cancelled_caught:
            return _failed(f"it did not finish within {limit:g} s", "timeout")
        if not isinstance(result, CheckResult) or not isinstance(result.passed, bool):
            return _failed(f"it returned {type(result).__name__} and no verdict", "check_crashed")
        return Done("", events=self._events(check, permit.call, result))

    def _events(self, check: Check, call: int, result: CheckResult) -> tuple[Event, ...]:
        turn = self._ledger.conversation.turn
        detail, marks = fit_marked(str(result.detail), self._limit, self._secrets)
        told = {"check": call, "name": check.name, "passed": result.passed, "detail": detail, **marks}
        verdict = Event(Kind.CHECK, turn=turn, detail=told)
        if result.passed and self._left(check):
            return (verdict,)
        claim = SUCCESS if result.passed else FAILURE
        return verdict, Event(
            Kind.OUTCOME, turn=turn, result=claim, detail={"check": call, "name": check.name}
        )

    def _left(self, check: Check) -> bool:
        """Tell whether another check than this one has not passed yet."""
        found = self._ledger.conversation.verdicts.found
        return any(each is not check and each.name not in found for each in self._checks)


def _failed(text: str, code: str) -> Done[str]:
    return Done(text, error_class=FaultClass.TERMINAL, error_code=code)


def _no_verdict(check: Check, why: str) -> Unbacked:
    reason = f"the check {check.name!r} came to no verdict: {_shortened(why)}"
    return Unbacked(reason, FaultClass.TERMINAL, "check_without_verdict")


def _words(lost: Lost) -> str:
    if lost.error_class == FaultClass.INTERRUPTED:
        return "it had begun when the run stopped, and it may not be run again"
    return f"it ended with {lost.error_code or lost.error_class}, and was not run again"


def _shortened(text: str) -> str:
    """Return what a reason says of a text: its first line, and of an output the last one, which says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    ends = f"; it ends with: {lines[-1][-_SHOWN:]}" if len(lines) > 1 else ""
    return f"{lines[0][:_SHOWN]}{ends}"
