"""One tool call of a mission: look it up, run it through the waist within its time, record its result.

Nothing that a tool does may break the session: a tool that fails, crashes, hangs or answers with garbage has a result on the
record like any other, and the model is shown exactly that.
"""

from __future__ import annotations

import math
from typing import Final, final

import trio

from affidavit.actors.containment.levels import Level
from affidavit.actors.conversation import PendingCall
from affidavit.actors.deciders.port import Action, Denial
from affidavit.actors.dispatch import Dispatcher, Done, Permit
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Event, FaultClass, Kind, Trust
from affidavit.actors.faults import stopping_part, words_of
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.mission_reply import fit_marked
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.netguard.scope import going_out_through
from affidavit.actors.recovery import CANCELLED_TEXT, INTERRUPTED_TEXT, result_events, unanswered
from affidavit.actors.rules import trust_of
from affidavit.actors.toolbox.arguments import validate_arguments
from affidavit.actors.toolbox.port import ContainedTool, Tool

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

        async def work(permit: Permit) -> Done[None]:
            if tool is None:
                raise AssertionError("the grant refuses a tool that does not exist")
            return await self._work(tool, call, permit.seconds)

        await self._dispatcher.govern(
            action,
            work,
            refused=lambda denial: self._refused(call, denial),
            stopped=lambda fault: self._stopped(call, fault, action),
        )

    async def _work(self, tool: Tool, call: PendingCall, seconds: float | None) -> Done[None]:
        limit = math.inf if seconds is None else seconds
        answer: object = None
        try:
            arguments = validate_arguments(tool.spec, call.input)
            with trio.move_on_after(limit) as scope, going_out_through(self._guard):
                answer = await tool.run(arguments)
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
        return Done(None, events=self._results(call, answer, is_error=False))

    def _failed(
        self, call: PendingCall, text: str, code: str, fault: str = FaultClass.TERMINAL
    ) -> Done[None]:
        events = self._results(call, text, is_error=True)
        return Done(None, events=events, error_class=fault, error_code=code)

    def _results(self, call: PendingCall, text: str, *, is_error: bool) -> tuple[Event, ...]:
        shown, marks = fit_marked(text, self._config.text_limit, self._config.secrets)
        result = Event(
            Kind.TOOL_RESULT,
            goal=self._ledger.conversation.goal,
            turn=call.turn,
            tool=call.name,
            tool_use_id=call.id,
            result=shown,
            is_error=is_error,
            detail=marks,
        )
        return result_events(self._ledger.conversation, result)

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
