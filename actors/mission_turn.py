"""One model turn of a mission: announce it, ask the model through the waist, record what it said and asked for."""

from __future__ import annotations

from typing import final

from affidavit.actors.admission import MODEL_ACTION, Action, CapabilityGrant, Denial
from affidavit.actors.conversation import Conversation
from affidavit.actors.dispatch import Dispatcher, Done
from affidavit.actors.errors import ModelError
from affidavit.actors.events import Event, FaultClass, Kind, Trust
from affidavit.actors.goal import GoalSpec
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.models.port import ModelReply, ModelRequest, ToolCall
from affidavit.actors.text import fit

_BYTES_PER_TOKEN = 3


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
    ) -> None:
        """Bind to one mission."""
        self._config = config
        self._spec = spec
        self._grant = grant
        self._ledger = ledger
        self._dispatcher = dispatcher

    async def run(self) -> None:
        """Take one turn, trying again while the failures are transient. The turn is announced once, however often it is tried.

        Raises:
            TurnFailed: The turn was refused or failed for good.
            LogError: It could not be recorded.
        """
        wait = self._config.backoff_seconds
        for attempt in range(1, self._config.attempts + 1):
            done = await self._ask()
            error = done.value
            if error is None:
                return
            if error.fault != FaultClass.TRANSIENT or attempt == self._config.attempts:
                tried = f" (tried {attempt} times)" if attempt > 1 else ""
                raise TurnFailed(f"the model could not be asked: {error}{tried}", error.fault)
            await self._config.clock.sleep(wait)
            wait *= 2

    async def _ask(self) -> Done[ModelError | None]:
        request = self._request()
        # Held back before the call: the most it may write, and a rough upper bound for what it must read.
        reserve = self._spec.max_output_tokens + _size(request) // _BYTES_PER_TOKEN
        conversation = self._ledger.conversation
        turn = conversation.turn if conversation.turn_open else conversation.turn + 1
        opening = () if conversation.turn_open else (Event(Kind.TURN_STARTED, turn=turn),)
        action = Action(
            MODEL_ACTION,
            Trust.TRUSTED,
            turn=turn,
            idempotent=True,
            reserve_tokens=reserve,
        )

        async def work() -> Done[ModelError | None]:
            try:
                reply = await self._config.model.generate(request)
            except ModelError as error:
                return Done(error, error_class=error.fault, error_code=error.code)
            spent = reply.usage.input_tokens + reply.usage.output_tokens if reply.usage else reserve
            return Done(None, events=self._events(reply), used_tokens=spent)

        outcome = await self._dispatcher.govern(action, work, opening=opening)
        if isinstance(outcome, Denial):
            raise TurnFailed(outcome.reason, outcome.error_class)
        return outcome

    def _request(self) -> ModelRequest:
        offered = self._config.toolbox.specs(self._grant.tools) if self._config.model.supports_tools else ()
        return ModelRequest(
            self._spec.system,
            tuple(self._ledger.conversation.messages),
            offered,
            self._spec.max_output_tokens,
        )

    def _events(self, reply: ModelReply) -> tuple[Event, ...]:
        conversation = self._ledger.conversation
        turn = conversation.turn
        calls = [
            self._call_event(call, tool_use_id, turn)
            for call, tool_use_id in zip(
                reply.tool_calls, _call_ids(conversation, reply.tool_calls), strict=True
            )
        ]
        text, cut = fit(reply.text, self._config.text_limit)
        detail: dict[str, object] = {"blocks": reply.blocks} if reply.blocks else {}
        if cut is not None:
            detail["cut"] = cut.as_detail()
        common = {"turn": turn, "stop_reason": reply.stop_reason, "usage": reply.usage}
        said = Event(Kind.ASSISTANT, text=text, detail=detail, **common)  # type: ignore[arg-type]
        end = () if calls else (Event(Kind.TURN_COMPLETED, **common),)  # type: ignore[arg-type]
        return (said, *calls, *end)

    def _call_event(self, call: ToolCall, tool_use_id: str, turn: int) -> Event:
        arguments, cut = fit(call.input, self._config.text_limit)
        detail: dict[str, object] = {}
        if tool_use_id != call.id and call.id:
            detail["vendor_id"] = call.id
        if cut is not None:
            detail["cut"] = cut.as_detail()
        return Event(
            Kind.TOOL_CALL, turn=turn, tool=call.name, tool_use_id=tool_use_id, input=arguments, detail=detail
        )


def _call_ids(conversation: Conversation, calls: tuple[ToolCall, ...]) -> list[str]:
    """Return an id for each call that is unique in the conversation: the vendor's where it is usable, else our own."""
    goal = conversation.spec.name if conversation.spec else ""
    used = {call.id for message in conversation.messages for call in message.tool_calls}
    ids: list[str] = []
    for number, call in enumerate(calls, 1):
        chosen = call.id if call.id and call.id not in used else f"{goal}/{conversation.turn}/{number}"
        used.add(chosen)
        ids.append(chosen)
    return ids


def _size(request: ModelRequest) -> int:
    spoken = sum(
        len(message.text) + sum(len(call.input) for call in message.tool_calls)
        for message in request.messages
    )
    return len(request.system) + spoken + sum(len(tool.input_schema) for tool in request.tools)
