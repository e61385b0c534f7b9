"""A mission: one goal driven turn by turn. Ask the model, run the tools it asks for in order, go on until it is done.

Work that it hands to other goals is done by missions of their own, which share the run's fold, waist and budgets with it.

It holds no progress of its own. Each step looks at the conversation, which is a fold of the log, and does the next thing that
the conversation lacks; so the step after a restart is the step that the crash prevented.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, final

from affidavit.actors.changed_words import changed_words
from affidavit.actors.conversation import Conversation, PendingCall
from affidavit.actors.crew import Crew, Stop
from affidavit.actors.deciders.budgets import StepBudget
from affidavit.actors.delegation import SpawnTool
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import ResumeRefused
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.faults import words_of
from affidavit.actors.goal import GoalSpec, GoalStatus, Phase
from affidavit.actors.mission_checks import CheckStep, Unbacked
from affidavit.actors.mission_config import MissionConfig, changed_digests
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.mission_spawn import SpawnStep, fanout_limits, profile_of
from affidavit.actors.mission_tools import ToolStep
from affidavit.actors.mission_turn import ModelStep, TurnFailed
from affidavit.actors.netguard.decision import ReportingRecorder
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.recovery import (
    child_ending_events,
    closing_events,
    ending_events,
    turn_completed,
)
from affidavit.actors.reporter import Reporter
from affidavit.actors.rules import rules_of
from affidavit.actors.text import fit

NOT_STOPPED: Final = Stop("", "")
# What a model said together with one of these is on the record, but it is not what the goal asked for.
_NOT_ANSWERED: Final = {
    "refusal": "the model declined to answer",
    "content_filter": "the provider withheld the answer, or a part of it",
}


@final
class Mission:
    """One goal, ready to be driven by a runtime.

    Attributes:
        crew: The goals that it has handed work to, as far as they are at work.
    """

    def __init__(
        self, config: MissionConfig, ledger: MissionLedger, dispatcher: Dispatcher, guard: Guard
    ) -> None:
        """Use `root_mission`, or `child` of another."""
        spec = ledger.conversation.spec
        if spec is None:
            raise ResumeRefused("this stream holds no goal to drive")
        self.crew = Crew()
        self._config = config
        self._spec = spec
        self._ledger = ledger
        self._dispatcher = dispatcher
        self._guard = guard
        self._turns = ModelStep(config, spec, dispatcher.grant, ledger, dispatcher, guard)
        self._tools = ToolStep(config, ledger, dispatcher, guard)
        self._spawns = SpawnStep(config, ledger, dispatcher)
        self._checks = CheckStep(config, ledger, dispatcher)

    def child(self, goal: str, crew: Crew) -> Mission:
        """Return the mission of a goal that this one has handed work to, standing where its events stand.

        Raises:
            ToolFailed: It was begun with an agent profile that there is no longer.
            ResumeRefused: The record does not say what it is to do.
        """
        ledger = self._ledger.of(goal)
        spec = ledger.conversation.spec
        if spec is None:
            raise ResumeRefused(f"the record does not say what goal {goal} is to do")
        model = profile_of(self._config, spec).model or self._config.model
        wanted = None if spec.tools is None else frozenset(spec.tools)
        dispatcher = self._dispatcher.narrowed(wanted, (StepBudget(spec.max_steps),), ledger=ledger)
        # What backs a success is declared for the run, and so for its root goal alone.
        config = replace(self._config, model=model, is_root=False)
        mission = Mission(config, ledger, dispatcher, self._guard.for_goal(goal))
        mission.crew = crew
        return mission

    @property
    def spec(self) -> GoalSpec:
        """The goal as it stands on the record."""
        return self._spec

    @property
    def status(self) -> GoalStatus:
        """How the goal stands on the record."""
        conversation = self._ledger.conversation
        return GoalStatus(conversation.phase, conversation.last_text, conversation.turn)

    def hear(self, events: Sequence[Event]) -> None:
        """Take note of what stands on the run's stream, whoever reported it; each event counts once."""
        self._ledger.hear(events)
        for event in events:
            if event.kind == Kind.CHILD_COMPLETED:
                self.crew.let_go(event.child)

    def set_stop_fault(self, fault: str) -> None:
        """Say what a begun action of this goal, or of one below it, is closed with if the mission is now cancelled."""
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
                f"this run was driven with {changed_words(changed)}; resume it with the same, or accept the change"
            )
        return changed

    async def begin(self, changed: tuple[str, ...] = ()) -> None:
        """Record that the goal is being driven; the root's mission has first closed what an earlier driver left open.

        Args:
            changed: The parts of the configuration whose change was accepted.
        """
        conversation = self._ledger.conversation
        events = list(closing_events(conversation)) if conversation is self._ledger.root else []
        if changed or conversation.phase is Phase.PENDING:
            detail: dict[str, object] = {"phase": str(Phase.RUNNING)}
            if changed:
                detail |= {"changed": list(changed), "digests": self._config.digests(self._spec)}
                detail |= self._config.budget_said
            events.append(Event(Kind.GOAL_PHASE, goal=conversation.goal, detail=detail))
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
        pending = next(
            (each for each in conversation.pending.values() if each.id not in self.in_flight), None
        )
        if pending is not None:
            await self._run(pending)
        elif self.in_flight:
            await self.crew.news()
        elif conversation.answered and conversation.turn_open:
            await self._ledger.record(turn_completed(conversation))
        elif conversation.answered and conversation.messages[-1].role == "assistant":
            return await self._conclude()
        else:
            return await self._turn(self._turns.run)
        return GoalStatus(Phase.RUNNING, steps=conversation.turn)

    @property
    def in_flight(self) -> Mapping[str, str]:
        """The goals that this one waits for, by the tool call that each serves."""
        return self._ledger.conversation.in_flight

    async def _run(self, call: PendingCall) -> None:
        tool = self._config.toolbox.get(call.name)
        if isinstance(tool, SpawnTool):
            await self._spawns.run(call, tool)
        else:
            await self._tools.run(call)

    async def _turn(self, take: Callable[[], Awaitable[None]]) -> GoalStatus:
        try:
            await take()
        except TurnFailed as failure:
            return self._stalled(str(failure), failure.error_class)
        return GoalStatus(Phase.RUNNING, steps=self._ledger.conversation.turn)

    async def give_up(self, goal: str, reason: str) -> None:
        """Record the end of a goal that this one has handed work to and that cannot be driven."""
        root = self._ledger.root
        shown, _ = fit(self._config.secrets.scrub(reason), self._config.text_limit)
        status = GoalStatus(Phase.STALLED, shown, error_class=FaultClass.TERMINAL)
        await self._ledger.record_whole(*child_ending_events(root, root.goals[goal], status))

    async def finish(self, status: GoalStatus, stop: Stop = NOT_STOPPED) -> None:
        """Record the terminal phase, having answered what is still open; the session adds its terminal event to the append.

        That of a goal which work was handed to folds back into the goal above, in the same append.

        Args:
            status: How it ended.
            stop: Who asked for that, of a goal which work was handed to.
        """
        conversation, root = self._ledger.conversation, self._ledger.root
        if conversation is not root:
            if not conversation.folded_back:
                ending = child_ending_events(
                    root, conversation, status, principal=stop.principal, causation_id=stop.causation_id
                )
                await self._ledger.record_whole(*ending)
            return
        detail: dict[str, object] = {
            "phase": str(status.phase),
            "message": status.message,
            "steps": status.steps,
        }
        event = Event(
            Kind.GOAL_PHASE, error_class=status.error_class, error_code=status.error_code, detail=detail
        )
        await self._ledger.record(*ending_events(root), event)

    async def close_as_cancelled(self) -> None:
        """Answer every open tool call of the run as cancelled, so that the transcript of a cancelled run is whole."""
        events = ending_events(self._ledger.root)
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


def root_mission(config: MissionConfig, conversation: Conversation, reporter: Reporter) -> Mission:
    """Return the mission of a run's root goal, standing where the conversation stands.

    Raises:
        ResumeRefused: The conversation was never opened, so there is no goal in it.
    """
    spec = conversation.spec
    if spec is None:
        raise ResumeRefused("this stream holds no goal to drive")
    ledger = MissionLedger(conversation, reporter)
    rules = rules_of(spec, config.policy)
    deciders = (*rules.deciders, *fanout_limits(config))
    dispatcher = Dispatcher(ledger, rules.grant, deciders, clock=config.clock)
    return Mission(config, ledger, dispatcher, Guard(config.egress_policy, ReportingRecorder(ledger)))
