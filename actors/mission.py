"""A mission: one goal driven turn by turn. Ask the model, run the tools it asks for in order, go on until it is done.

It holds no progress of its own. Each step looks at the conversation, which is a fold of the log, and does the next thing that
the conversation lacks; so the step after a restart is the step that the crash prevented.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, final

from affidavit.actors.conversation import Conversation
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import ResumeRefused
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.faults import words_of
from affidavit.actors.goal import GoalSpec, GoalStatus, Phase
from affidavit.actors.mission_checks import CheckStep, Unbacked
from affidavit.actors.mission_config import MissionConfig, changed_digests
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.mission_tools import ToolStep
from affidavit.actors.mission_turn import ModelStep, TurnFailed
from affidavit.actors.netguard.decision import ReportingRecorder
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.recovery import closing_events, ending_events, turn_completed
from affidavit.actors.reporter import Reporter
from affidavit.actors.rules import rules_of
from affidavit.actors.text import fit

# What a model said together with one of these is on the record, but it is not what the goal asked for.
_NOT_ANSWERED: Final = {
    "refusal": "the model declined to answer",
    "content_filter": "the provider withheld the answer, or a part of it",
}


@final
class Mission:
    """One goal, ready to be driven by a runtime."""

    def __init__(self, config: MissionConfig, conversation: Conversation, reporter: Reporter) -> None:
        """Take up a conversation where it stands.

        Raises:
            ResumeRefused: The conversation was never opened, so there is no goal in it.
        """
        if conversation.spec is None:
            raise ResumeRefused("this stream holds no goal to drive")
        spec = conversation.spec
        self._config = config
        self._spec = spec
        self._ledger = MissionLedger(conversation, reporter)
        rules = rules_of(spec, config.policy)
        self._dispatcher = Dispatcher(self._ledger, rules.grant, rules.deciders, clock=config.clock)
        guard = Guard(config.egress_policy, ReportingRecorder(self._ledger))
        self._turns = ModelStep(config, spec, rules.grant, self._ledger, self._dispatcher, guard)
        self._tools = ToolStep(config, self._ledger, self._dispatcher, guard)
        self._checks = CheckStep(config, self._ledger, self._dispatcher)

    @property
    def spec(self) -> GoalSpec:
        """The goal as it stands on the record."""
        return self._spec

    @property
    def status(self) -> GoalStatus:
        """How the goal stands on the record."""
        conversation = self._ledger.conversation
        return GoalStatus(conversation.phase, conversation.last_text, conversation.turn)

    def hear(self, events: Iterable[Event]) -> None:
        """Take note of what stands on the run's stream, whoever reported it; each event counts once."""
        self._ledger.hear(events)

    def set_stop_fault(self, fault: str) -> None:
        """Say what a begun action is closed with if the mission is now cancelled."""
        self._dispatcher.stop_fault = fault

    def check_unchanged(self, *, accept_changes: bool) -> tuple[str, ...]:
        """Compare model, tools, policy and configuration with those that the run was last driven with.

        Returns:
            The names of the parts that changed, if that is accepted.

        Raises:
            ResumeRefused: Something changed and that is not accepted.
        """
        changed = changed_digests(self._ledger.conversation.digests, self._config.digests(self._spec))
        if changed and not accept_changes:
            raise ResumeRefused(
                f"this run was driven with another {' and '.join(changed)}; resume it with the same, or accept the change"
            )
        return changed

    async def begin(self, changed: tuple[str, ...] = ()) -> None:
        """Record that the goal is being driven, having first closed what an earlier driver left open.

        Args:
            changed: The parts of the configuration whose change was accepted.
        """
        events = list(closing_events(self._ledger.conversation))
        if changed or self._ledger.conversation.phase is Phase.PENDING:
            detail: dict[str, object] = {"phase": str(Phase.RUNNING)}
            if changed:
                detail |= {"changed": list(changed), "digests": self._config.digests(self._spec)}
            events.append(Event(Kind.GOAL_PHASE, detail=detail))
        if events:
            await self._ledger.record(*events)

    async def step(self) -> GoalStatus:
        """Do the next thing that the conversation lacks.

        Returns:
            Running, or the terminal status that the mission has come to; `finish` records it.

        Raises:
            LogError: The record could not be extended; the run can be resumed from what stands.

        Cancellation: a begun action is closed on the record, see `Dispatcher.govern`.
        """
        conversation = self._ledger.conversation
        pending = next(iter(conversation.pending.values()), None)
        if pending is not None:
            await self._tools.run(pending)
        elif conversation.answered and conversation.turn_open:
            await self._ledger.record(turn_completed(conversation))
        elif conversation.answered and conversation.messages[-1].role == "assistant":
            return await self._conclude()
        else:
            return await self._turn(self._turns.run)
        return GoalStatus(Phase.RUNNING, steps=conversation.turn)

    async def _turn(self, take: Callable[[], Awaitable[None]]) -> GoalStatus:
        try:
            await take()
        except TurnFailed as failure:
            return self._stalled(str(failure), failure.error_class)
        return GoalStatus(Phase.RUNNING, steps=self._ledger.conversation.turn)

    async def finish(self, status: GoalStatus) -> None:
        """Record the terminal phase, having answered what is still open; the session adds its terminal event to the append."""
        detail: dict[str, object] = {
            "phase": str(status.phase),
            "message": status.message,
            "steps": status.steps,
        }
        event = Event(
            Kind.GOAL_PHASE, error_class=status.error_class, error_code=status.error_code, detail=detail
        )
        await self._ledger.record(*ending_events(self._ledger.conversation), event)

    async def close_as_cancelled(self) -> None:
        """Answer every open tool call as cancelled, so that the transcript of a cancelled run is whole."""
        events = ending_events(self._ledger.conversation)
        if events:
            await self._ledger.record(*events)

    async def _conclude(self) -> GoalStatus:
        """End with the answer that stands, once the model has looked it over and every check that is declared has passed for it.

        Each step does one of these.
        """
        status = self._verdict()
        if status.phase is Phase.CONVERGED:
            if self._ledger.conversation.self_checks < self._spec.self_checks:
                return await self._turn(self._turns.check_answer)
            try:
                if not await self._checks.run():
                    return GoalStatus(Phase.RUNNING, steps=status.steps)
            except Unbacked as unbacked:
                return self._stalled(str(unbacked), unbacked.error_class, unbacked.error_code)
        return status

    def _verdict(self) -> GoalStatus:
        """Judge a turn that asked for no tool. An answer that is empty, cut short, declined or withheld is none."""
        conversation = self._ledger.conversation
        if conversation.stop_reason == "max_tokens":
            # The model's own limit may be lower than the goal's, so only what was counted is said.
            usage = conversation.turn_usage
            where = f"after {usage.output_tokens} output tokens" if usage else "at a limit of output tokens"
            return self._stalled(f"the answer was cut off {where}", FaultClass.BUDGET_EXCEEDED)
        if conversation.stop_reason in _NOT_ANSWERED:
            return self._stalled(_NOT_ANSWERED[conversation.stop_reason], FaultClass.TERMINAL)
        if not conversation.last_text.strip():
            return self._stalled("the model ended its turn without an answer", FaultClass.TERMINAL)
        return GoalStatus(Phase.CONVERGED, conversation.last_text, conversation.turn)

    def failed(self, error: Exception) -> GoalStatus:
        """Return the terminal status of a mission that failed for another reason than its record."""
        return self._stalled(
            f"the mission failed: {type(error).__name__}: {words_of(error)}", FaultClass.TERMINAL
        )

    def _stalled(self, reason: str, error_class: str, error_code: str = "") -> GoalStatus:
        shown, _ = fit(self._config.secrets.scrub(reason), self._config.text_limit)
        turn = self._ledger.conversation.turn
        return GoalStatus(Phase.STALLED, shown, turn, error_class, error_code=error_code)
