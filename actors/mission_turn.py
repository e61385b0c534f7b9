"""One model turn of a mission: announce it, ask the model through the waist, record what it said and asked for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, final

import trio

from affidavit.actors.amounts import Amounts
from affidavit.actors.backoff import wait_before
from affidavit.actors.context import BYTES_PER_TOKEN, request_size, room_for, view_of
from affidavit.actors.conversation import SELF_CHECK
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import MODEL_ACTION, Action, Denial
from affidavit.actors.deltas import LiveFeed
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import ModelError
from affidavit.actors.events import Event, FaultClass, Kind, Trust, Usage
from affidavit.actors.faults import words_of
from affidavit.actors.goal import GoalSpec
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.mission_reply import MAX_NAME, reply_events, sound_usage
from affidavit.actors.models.port import Message, ModelReply, ModelRequest
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.netguard.scope import going_out_through
from affidavit.actors.text import fit
from affidavit.actors.work import Done, Permit

CHECK_YOURSELF: Final = (
    "Before this answer counts, check it yourself against what was asked above: is it complete, is it correct, and does "
    "everything in it rest on what you saw? Use your tools where you need them. Then write the whole answer, mended where it was "
    "not right; what you write last is taken as the answer."
)


class TurnFailed(Exception):  # an outcome passed between two modules, never seen by a user
    """The turn could not be had, for a reason that ends the goal.

    Attributes:
        error_class: The fault class.
    """

    def __init__(self, reason: str, error_class: str) -> None:
        super().__init__(reason)
        self.error_class = error_class


@final
class ModelStep:
    """Takes a mission's model turns."""

    def __init__(
        self,
        config: MissionConfig,
        spec: GoalSpec,
        grant: CapabilityGrant,
        ledger: MissionLedger,
        dispatcher: Dispatcher,
        guard: Guard,
    ) -> None:
        """Bind to one mission."""
        self._config = config
        self._spec = spec
        self._grant = grant
        self._ledger = ledger
        self._dispatcher = dispatcher
        self._guard = guard
        prices = config.policy.prices if config.policy else None
        self._pricing = prices.pricing() if prices else None

    async def check_answer(self) -> None:
        """Take one turn in which the model is asked to check its own answer; see `run`."""
        await self.run(checking=True)

    async def run(self, *, checking: bool = False) -> None:
        """Take one turn, trying again while the failures are transient. The turn is announced once, however often it is tried.

        Raises:
            TurnFailed: The turn was refused or failed for good.
            LogError: It could not be recorded.
        """
        for attempt in range(1, self._config.attempts + 1):
            done = await self._ask(checking=checking)
            error = done.value
            if error is None:
                return
            if error.fault != FaultClass.TRANSIENT or attempt == self._config.attempts:
                tried = f" (tried {attempt} times)" if attempt > 1 else ""
                raise TurnFailed(f"the model could not be asked: {words_of(error)}{tried}", error.fault)
            wait = wait_before(attempt + 1, self._config.backoff_seconds, error.retry_after)
            await self._config.clock.sleep(wait)

    async def _ask(self, *, checking: bool) -> Done[ModelError | None]:
        # Once the turn is announced, its question is a part of the conversation.
        question = checking and not self._ledger.conversation.turn_open
        request, left_out = self._request((Message("user", CHECK_YOURSELF),) if question else ())
        # Held back before the call: the most it may write, and a rough upper bound for what it must read.
        reserve = self._reserve(request)
        conversation = self._ledger.conversation
        turn = conversation.turn if conversation.turn_open else conversation.turn + 1
        opening = () if conversation.turn_open else (_announced(turn, conversation.self_checks, question),)
        action = Action(
            MODEL_ACTION,
            Trust.TRUSTED,
            goal=conversation.goal,
            turn=turn,
            idempotent=True,
            reserve=reserve,
            limit_ms=round(self._config.model_seconds * 1000),
            opens_turn=not conversation.turn_open,
            renewed=conversation.renewed,
        )

        async def work(permit: Permit) -> Done[ModelError | None]:
            show, secrets = self._ledger.show, self._config.secrets
            live = (
                LiveFeed(show, secrets, turn=turn, call=permit.call, goal=conversation.goal)
                if show is not None
                else None
            )
            watched = replace(request, on_delta=live.take) if live is not None else request
            try:
                reply = await self._generate(watched, permit.seconds)
            except ModelError as error:
                return Done(error, error_class=error.fault, error_code=fit(error.code, MAX_NAME)[0])
            if live is not None:
                live.end()
            usage = sound_usage(reply.usage)
            events = reply_events(reply, conversation, self._config.text_limit, secrets, left_out)
            return Done(None, events=events, used=self._charged(usage) if usage else reserve)

        outcome = await self._dispatcher.govern(action, work, opening=opening)
        if isinstance(outcome, Denial):
            raise TurnFailed(outcome.reason, outcome.error_class)
        return outcome

    async def _generate(self, request: ModelRequest, seconds: float | None) -> ModelReply:
        limit = math.inf if seconds is None else seconds
        with trio.move_on_after(limit), going_out_through(self._guard):
            return await self._config.model.generate(request)
        raise ModelError(
            f"the model did not answer within {limit:g} s", fault=FaultClass.TRANSIENT, code="timeout"
        )

    def _reserve(self, request: ModelRequest) -> Amounts:
        # The most it may write, and a rough upper bound for what it must read.
        most_in, most_out = request_size(request) // BYTES_PER_TOKEN, self._spec.max_output_tokens
        return Amounts(most_in + most_out, self._pricing.most(most_in, most_out) if self._pricing else 0)

    def _charged(self, usage: Usage) -> Amounts:
        tokens = usage.input_tokens + usage.output_tokens
        return Amounts(tokens, self._pricing.cost(usage) if self._pricing else 0)

    def _request(self, more: tuple[Message, ...]) -> tuple[ModelRequest, int]:
        """Return what the model is shown, `more` behind the rest, and how many of its earlier turns are not."""
        model, spec = self._config.model, self._spec
        offered = self._config.toolbox.specs(self._grant.tools) if model.supports_tools else ()
        scrub = self._config.secrets.scrub
        request = ModelRequest(spec.system, (), offered, spec.max_output_tokens, scrub=scrub)
        view = view_of((*self._ledger.conversation.messages, *more), room_for(model, request))
        return replace(request, messages=view.messages), view.left_out


def _announced(turn: int, checked: int, question: bool) -> Event:  # noqa: FBT001
    """Return the event that begins a turn, with the question in it if the model is to check its own answer."""
    if not question:
        return Event(Kind.TURN_STARTED, turn=turn)
    return Event(Kind.TURN_STARTED, turn=turn, text=CHECK_YOURSELF, detail={SELF_CHECK: checked + 1})
