"""One delegation of a mission: checks what the model asks for, and begins a goal for it through the waist.

The end of the action and the goal that it begins are one append; the call stays open until that goal folds back, in one append
with its end. A crash before the first leaves nothing of the goal, one after it a goal that is taken up again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from affidavit.actors.conversation import PendingCall
from affidavit.actors.deciders.fanout import SPAWN_ACTION, FanoutLimit
from affidavit.actors.deciders.port import Action, Decider, Denial
from affidavit.actors.delegation import AgentProfile, SpawnTool
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.faults import words_of
from affidavit.actors.goal import GoalSpec
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.mission_reply import fit_marked
from affidavit.actors.mission_results import answer_events
from affidavit.actors.policy.model import Delegation
from affidavit.actors.rules import trust_of
from affidavit.actors.text import clean
from affidavit.actors.toolbox.arguments import validate_arguments
from affidavit.actors.work import Done, Permit
from affidavit.crypto.event_form import MAX_EVENT_BYTES

# The event that begins a goal holds its prompt once and its objective twice; the rest is for the grant and the names.
_MOST_BYTES: Final = MAX_EVENT_BYTES - 16 * 1024
_NO_PROFILE: Final = AgentProfile("")


class _Wish(BaseModel):
    """What a model may ask of a delegation."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    objective: str = Field(min_length=1, pattern=r"\S")
    tools: list[str] | None = None
    agent: str = ""
    max_steps: int = Field(default=0, ge=0)


@dataclass(frozen=True, slots=True)
class _Child:
    """A goal as it begins."""

    id: str
    spec: GoalSpec
    marks: dict[str, object]
    model: str


@final
class SpawnStep:
    """Begins the goals that a mission hands work to."""

    def __init__(self, config: MissionConfig, ledger: MissionLedger, dispatcher: Dispatcher) -> None:
        """Bind to one mission."""
        self._config = config
        self._ledger = ledger
        self._dispatcher = dispatcher

    async def run(self, call: PendingCall, tool: SpawnTool) -> str | None:
        """Begin a goal, or record why not.

        Returns:
            The goal's id; None if there is none, and the call is answered.

        Raises:
            LogError: It could not be recorded.
        """
        action = Action(
            SPAWN_ACTION,
            trust=trust_of(SPAWN_ACTION, tool.trust, self._config.policy),
            goal=self._ledger.conversation.goal,
            turn=call.turn,
            tool_use_id=call.id,
            args_digest=call.args_digest,
            idempotent=tool.idempotent,
        )

        async def work(permit: Permit) -> Done[str | None]:
            try:
                child = self._child(call, tool, permit.call)
            except ToolFailed as error:
                events = self._results(call, words_of(error))
                return Done(None, events, FaultClass.TERMINAL, error.code)
            return Done(child.id, (self._spawned(call, child),))

        done = await self._dispatcher.govern(
            action, work, refused=lambda denial: self._results(call, f"refused: {denial.reason}")
        )
        return None if isinstance(done, Denial) else done.value

    def _child(self, call: PendingCall, tool: SpawnTool, number: int) -> _Child:
        """Return the goal that is asked for: never more than this one may itself."""
        try:
            wish = _Wish.model_validate(dict(validate_arguments(tool.spec, call.input)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ToolFailed(
                f"{SPAWN_ACTION}: argument {where!r}: {first['msg']}", code="bad_arguments"
            ) from error
        profile = tool.profiles.get(wish.agent, _NO_PROFILE)
        if wish.agent and profile is _NO_PROFILE:
            known = ", ".join(tool.profiles) or "none"
            raise ToolFailed(f"there is no agent {wish.agent!r}; there are: {known}", code="unknown_agent")
        above = self._ledger.conversation.spec
        root = self._ledger.root.spec
        if above is None or root is None:
            raise AssertionError("a mission has a goal")
        # With a dot, which no run's id holds: it names no stream, and its number is that of the call that began it.
        name = f"{root.name}.{number}"
        objective, marks = fit_marked(wish.objective, self._config.text_limit, self._config.secrets)
        wanted = [set(each) for each in (profile.tools, wish.tools) if each is not None]
        spec = GoalSpec(
            objective,
            system=profile.system or above.system,
            tools=self._granted(tool, set.intersection(*wanted) if wanted else None),
            max_steps=min(each for each in (above.max_steps, profile.max_steps, wish.max_steps) if each > 0),
            max_output_tokens=above.max_output_tokens,
            name=name,
            profile=profile.name,
        )
        if len(clean(spec.system).encode()) + 2 * len(objective.encode()) > _MOST_BYTES:
            raise ToolFailed("the objective is too long to stand beside the system prompt", code="too_long")
        return _Child(name, spec, marks, profile.model.name if profile.model is not None else "")

    def _granted(self, tool: SpawnTool, wanted: set[str] | None) -> tuple[str, ...] | None:
        """Return what is left of this goal's grant for a child; the last that may have one is not given the tool to spawn."""
        grant = self._dispatcher.grant
        if wanted is not None:
            # Of what does not exist it is given nothing, so that the record promises nothing.
            grant = grant.narrowed(frozenset(wanted) & frozenset(self._config.toolbox))
        if self._ledger.conversation.depth + 1 >= _most(self._config, tool).depth:
            grant = grant.narrowed(frozenset(grant.tools or self._config.toolbox) - {SPAWN_ACTION})
        return None if grant.tools is None else tuple(sorted(grant.tools))

    def _spawned(self, call: PendingCall, child: _Child) -> Event:
        conversation, root = self._ledger.conversation, self._ledger.root.spec
        detail: dict[str, object] = {"spec": child.spec.as_detail(), **child.marks}
        if child.model:
            detail["model"] = child.model
        return Event(
            Kind.CHILD_SPAWNED,
            goal=conversation.goal or (root.name if root else ""),
            child=child.id,
            turn=call.turn,
            tool_use_id=call.id,
            text=child.spec.objective,
            detail=detail,
        )

    def _results(self, call: PendingCall, text: str) -> tuple[Event, ...]:
        return answer_events(self._config, self._ledger.conversation, call, text, is_error=True)


def fanout_limits(config: MissionConfig) -> tuple[Decider, ...]:
    """Return what bounds the children of each goal, where there is a tool to have any."""
    tool = config.toolbox.get(SPAWN_ACTION)
    return (FanoutLimit(_most(config, tool).children),) if isinstance(tool, SpawnTool) else ()


def _most(config: MissionConfig, tool: SpawnTool) -> Delegation:
    """Return how far work may be handed on: as the tool says, or less if the policy says so."""
    said = config.policy.delegation if config.policy is not None else None
    if said is None:
        return Delegation(depth=tool.max_depth, children=tool.max_children)
    return Delegation(depth=min(said.depth, tool.max_depth), children=min(said.children, tool.max_children))


def profile_of(config: MissionConfig, spec: GoalSpec) -> AgentProfile:
    """Return the profile that a child was begun with.

    Raises:
        ToolFailed: There is none of this name any more.
    """
    if not spec.profile:
        return _NO_PROFILE
    tool = config.toolbox.get(SPAWN_ACTION)
    found = tool.profiles.get(spec.profile) if isinstance(tool, SpawnTool) else None
    if found is None:
        raise ToolFailed(f"there is no agent {spec.profile!r} any more", code="unknown_agent")
    return found
