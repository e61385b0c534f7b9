"""One tool call of a mission: look it up, run it through the waist within its time, record its result.

Nothing that a tool does may break the session: a tool that fails, crashes, hangs or answers with garbage has a result on the
record like any other, and the model is shown exactly that.
"""

from __future__ import annotations

import math
from typing import Final, final

import trio

from affidavit.actors.backoff import wait_before
from affidavit.actors.containment.levels import Level
from affidavit.actors.conversation import PendingCall
from affidavit.actors.deciders.port import Action, Denial
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Event, FaultClass, Trust
from affidavit.actors.faults import stopping_part, words_of
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.mission_results import answer_events
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.netguard.scope import going_out_through
from affidavit.actors.recovery import CANCELLED_TEXT, INTERRUPTED_TEXT, result_events, unanswered
from affidavit.actors.rules import is_approved_by_hand, trust_of
from affidavit.actors.toolbox.arguments import validate_arguments
from affidavit.actors.toolbox.port import ContainedTool, KeyedTool, Tool
from affidavit.actors.work import Done, Permit

_MAX_NAME: Final = 200


@final
class ToolStep:
    """Runs a mission's tool calls."""

    def __init__(
        self, config: MissionConfig, ledger: MissionLedger, dispatcher: Dispatcher, guard: Guard
    ) -> None:
        """Bind to one mission."""
        self._config = config
        self._ledger = ledger
        self._dispatcher = dispatcher
        self._guard = guard

    async def run(self, call: PendingCall) -> None:
        """Run one pending call, or record why it was refused.

        Raises:
            LogError: It could not be recorded.
        """
        tool: Tool | None = self._config.toolbox.get(call.name)
        action = Action(
            name=call.name[:_MAX_NAME],
            trust=trust_of(call.name, tool.trust, self._config.policy) if tool else Trust.UNTRUSTED,
            goal=self._ledger.conversation.goal,
            turn=call.turn,
            tool_use_id=call.id,
            args_digest=call.args_digest,
            idempotent=tool.idempotent if tool else False,
            limit_ms=round(self._config.tool_seconds * 1000),
            containment=_containment(tool),
            known=tool is not None,
        )

        attempts = self._attempts(action)
        for attempt in range(1, attempts + 1):
            outcome = await self._attempt(tool, call, action, is_last=attempt == attempts)
            if not (isinstance(outcome, Done) and outcome.value):
                return
            await self._config.clock.sleep(wait_before(attempt + 1, self._config.backoff_seconds))

    def _attempts(self, action: Action) -> int:
        """Return how often a call may be tried in all while it fails for a passing reason."""
        # What a person has approved is done once.
        is_repeatable = action.idempotent and not is_approved_by_hand(action.name, self._config.policy)
        return self._config.attempts if is_repeatable else 1

    async def _attempt(
        self, tool: Tool | None, call: PendingCall, action: Action, *, is_last: bool
    ) -> Done[bool] | Denial:
        """Run a call once; the value is whether it is to be tried again, and then it has no result yet."""

        async def work(permit: Permit) -> Done[bool]:
            if tool is None:
                raise AssertionError("the grant refuses a tool that does not exist")
            done = await self._work(tool, call, permit.seconds)
            if is_last or done.error_class != FaultClass.TRANSIENT:
                return done
            return Done(True, error_class=done.error_class, error_code=done.error_code)

        return await self._dispatcher.govern(
            action,
            work,
            refused=lambda denial: self._refused(call, denial),
            stopped=lambda fault: self._stopped(call, fault, action),
        )

    async def _run(self, tool: Tool, call: PendingCall) -> object:
        arguments = validate_arguments(tool.spec, call.input)
        if not isinstance(tool, KeyedTool):
            return await tool.run(arguments)
        root, goal = self._ledger.root.spec, self._ledger.conversation.goal
        names = (root.name if root else "", goal, call.id)
        return await tool.run_keyed(arguments, "/".join(name for name in names if name))

    async def _work(self, tool: Tool, call: PendingCall, seconds: float | None) -> Done[bool]:
        limit = math.inf if seconds is None else seconds
        answer: object = None
        try:
            with trio.move_on_after(limit) as scope, going_out_through(self._guard):
                answer = await self._run(tool, call)
        except ToolFailed as error:
            return self._failed(call, words_of(error), error.code, error.fault)
        except BaseException as error:  # noqa: ASYNC103  # cancellation is raised again
            # A tool is outside code: whatever it raises is its result, unless something greater stopped it.
            if stopping_part(error) is not None:
                raise
            text = f"{call.name} crashed: {type(error).__name__}: {words_of(error)}"
            return self._failed(call, text, "tool_crashed")  # noqa: ASYNC104  # a crash and no cancellation
        if scope.cancelled_caught:
            return self._failed(call, f"{call.name} did not finish within {limit:g} s", "timeout")
        if not isinstance(answer, str):
            text = f"{call.name} crashed: it returned {type(answer).__name__} and no text"
            return self._failed(call, text, "tool_crashed")
        return Done(False, events=self._results(call, answer, is_error=False))

    def _failed(
        self, call: PendingCall, text: str, code: str, fault: str = FaultClass.TERMINAL
    ) -> Done[bool]:
        events = self._results(call, text, is_error=True)
        return Done(False, events=events, error_class=fault, error_code=code)

    def _results(self, call: PendingCall, text: str, *, is_error: bool) -> tuple[Event, ...]:
        return answer_events(self._config, self._ledger.conversation, call, text, is_error=is_error)

    def _refused(self, call: PendingCall, denial: Denial) -> tuple[Event, ...]:
        return self._results(call, f"refused: {denial.reason}", is_error=True)

    def _stopped(self, call: PendingCall, fault: str, action: Action) -> tuple[Event, ...]:
        """Answer a call whose work was cancelled, unless it may simply be run again when the run is resumed."""
        if fault == FaultClass.CANCELLED:
            text = CANCELLED_TEXT
        elif action.idempotent:
            return ()
        else:
            text = INTERRUPTED_TEXT
        conversation = self._ledger.conversation
        answer = unanswered(call.id, call.name, call.turn, text, conversation.goal)
        return result_events(conversation, answer)


def _containment(tool: object) -> Level:
    return tool.containment if isinstance(tool, ContainedTool) else Level.NONE
