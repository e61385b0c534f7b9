"""Wrap an agent library that is made for asyncio: pydantic-ai, driven through trio-asyncio, and its run kept as evidence.

Run it with `python docs/examples/asyncio_agent.py` where `trio-asyncio` and `pydantic-ai-slim` are installed. It needs no network
and no key: the library's model is a function.

The fence: asyncio is known to this file alone. The agent runs in one asyncio task from its beginning to its end, under a trio
task that owns it; it crosses to trio to report and to act, and waits there until what it said is durable. So events stand in the
order in which things happened, a cancelled trio task cancels the agent and waits for it, and errors cross as themselves.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  # what this example is about; it never enters affidavit itself
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import final

import trio
from pydantic_ai import Agent, RunContext
from pydantic_ai.agent import CallToolsNode, ModelRequestNode
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from trio_asyncio import aio_as_trio, open_loop, trio_as_aio

from affidavit.actors.conversation import fold
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action, Denial
from affidavit.actors.dispatch import Dispatcher
from affidavit.actors.errors import RunCancelled
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.history import history
from affidavit.actors.host import Run, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import LogReader
from affidavit.actors.mission_ledger import MissionLedger
from affidavit.actors.models.port import Message
from affidavit.actors.nurseries import open_owned_nursery, unwrapped
from affidavit.actors.recovery import closing_events, result_events, unanswered
from affidavit.actors.reporter import Reporter
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.actors.work import Done, Permit
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.record import verify_record


@final
class AgentGoal:
    """One goal of the agent's. Everything here but `work_on` runs on trio; only the agent's own code runs on asyncio."""

    def __init__(self, conversation_events: tuple[Event, ...], reporter: Reporter) -> None:
        self.ledger = MissionLedger(fold(conversation_events), reporter)
        self.waist = Dispatcher(self.ledger, CapabilityGrant(None))
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.failure: Exception | None = None

    @property
    def status(self) -> GoalStatus:
        c = self.ledger.conversation
        return GoalStatus(c.phase, c.last_text, c.turn, active=not self.ended.is_set())

    async def work_on(self, agent: Agent[AgentGoal, str]) -> None:
        """Let the agent work from where its stream stands. This is asyncio; each `trio_as_aio` crosses over and waits."""
        c = self.ledger.conversation
        past = [message for each in c.messages if (message := as_theirs(each)) is not None]
        async with agent.iter(None, message_history=past, deps=self) as run:
            async for node in run:
                if isinstance(node, ModelRequestNode):
                    await trio_as_aio(self.begin_turn)()
                elif isinstance(node, CallToolsNode) and not c.answered:
                    await trio_as_aio(self.say)(node.model_response)
        answer = run.result.output if run.result is not None else ""
        await trio_as_aio(self.converge)(answer)

    async def begin_turn(self) -> None:
        c = self.ledger.conversation
        if not c.turn_open:
            await self.ledger.record(Event(Kind.TURN_STARTED, turn=c.turn + 1))

    async def say(self, response: ModelResponse) -> None:
        """Record what the model answered, whole and as its library wrote it, with the calls that it asks for."""
        turn = self.ledger.conversation.turn
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        said = Event(
            Kind.ASSISTANT,
            turn=turn,
            text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
            stop_reason="tool_use" if calls else "end_turn",
            usage=Usage(response.usage.input_tokens, response.usage.output_tokens),
            detail={"blocks": ModelMessagesTypeAdapter.dump_json([response]).decode()},
        )
        asked = (
            Event(
                Kind.TOOL_CALL,
                turn=turn,
                tool=call.tool_name,
                tool_use_id=call.tool_call_id,
                input=call.args_as_json_str(),
            )
            for call in calls
        )
        await self.ledger.record(said, *asked)

    async def act(self, call_id: str, work: Callable[[], Awaitable[str]], *, idempotent: bool) -> str:
        """Run one tool call of the agent's through the waist: nothing begins before its admission is durable."""
        c = self.ledger.conversation
        call = c.pending.get(call_id)
        if call is None:
            # It was answered before the run was parked or killed; it is not done again.
            return next(message.text for message in c.messages if message.tool_use_id == call_id)

        async def on_asyncio(_permit: Permit) -> Done[str]:
            result = await aio_as_trio(work)()
            return Done(result, events=results(result))

        def results(text: str) -> tuple[Event, ...]:
            result = Event(Kind.TOOL_RESULT, turn=call.turn, tool=call.name, tool_use_id=call.id, result=text)
            return result_events(c, result)

        def stopped(fault: str) -> tuple[Event, ...]:
            if idempotent and fault == "interrupted":
                return ()  # it stays open, and whoever resumes the run does it again
            text = f"{fault}: whether it took effect is unknown"
            return result_events(c, unanswered(call.id, call.name, call.turn, text))

        action = Action(
            call.name,
            turn=call.turn,
            tool_use_id=call.id,
            args_digest=call.args_digest,
            idempotent=idempotent,
        )
        done = await self.waist.govern(
            action, on_asyncio, refused=lambda denial: results(denial.reason), stopped=stopped
        )
        return done.reason if isinstance(done, Denial) else done.value

    async def converge(self, answer: str) -> None:
        turn = self.ledger.conversation.turn
        detail = {"phase": "converged", "message": answer, "steps": turn}
        await self.ledger.record(
            Event(Kind.TURN_COMPLETED, turn=turn, stop_reason="end_turn"),
            Event(Kind.GOAL_PHASE, detail=detail),
        )


def as_theirs(message: Message) -> ModelMessage | None:
    """Return a message of the conversation as the library has it."""
    if message.role == "assistant":
        return ModelMessagesTypeAdapter.validate_json(message.blocks)[0]
    if message.role == "tool":
        part = ToolReturnPart("", message.text, tool_call_id=message.tool_use_id)
        return ModelRequest([part])
    return ModelRequest([UserPromptPart(message.text)])


@final
class AsyncioRuntime:
    """Implements the `Runtime` port over an agent that runs on asyncio, and what it takes to go on with a run that has ended."""

    def __init__(self, log: LogReader, agent: Agent[AgentGoal, str], nursery: trio.Nursery) -> None:
        self._log = log
        self._agent = agent
        self._nursery = nursery
        self._goals: dict[str, AgentGoal] = {}
        # What is heard of a goal while its stream is being read.
        self._heard: dict[str, list[Event]] = {}

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        return {"model": "pydantic-ai"}

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        await self._begin(spec.name, reporter)
        return GoalKey(spec.name)

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        await self._begin(key.name, reporter)

    async def status(self, key: GoalKey) -> GoalStatus:
        await trio.lowlevel.checkpoint()
        goal = self._goals[key.name]
        if goal.failure is not None:
            raise goal.failure
        return goal.status

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        goal = self._goals.get(key.name)
        if goal is not None:
            goal.waist.stop_fault = fault
            goal.scope.cancel(reason=f"stopped as {fault}")
            await goal.ended.wait()

    async def may_go_on(self, key: GoalKey, reporter: Reporter) -> None:
        await self.stop(key, fault="interrupted")

    async def say(self, key: GoalKey, text: str, reporter: Reporter) -> None:
        await self._begin(key.name, reporter)

    def hear(self, key: GoalKey, events: tuple[Event, ...]) -> None:
        if key.name in self._heard:
            self._heard[key.name].extend(events)
        elif key.name in self._goals:
            self._goals[key.name].ledger.hear(events)

    async def _begin(self, name: str, reporter: Reporter) -> None:
        heard = self._heard[name] = []
        try:
            goal = AgentGoal(await history(self._log, name), reporter)
        finally:
            del self._heard[name]
        self._goals[name] = goal
        goal.ledger.hear(heard)
        self._nursery.start_soon(self._drive, goal, name=f"agent of {name}")

    async def _drive(self, goal: AgentGoal) -> None:
        c = goal.ledger.conversation
        try:
            with goal.scope:
                closing = closing_events(c)
                if closing or c.phase is Phase.PENDING:
                    running = Event(Kind.GOAL_PHASE, detail={"phase": "running"})
                    await goal.ledger.record(*closing, running)
                await aio_as_trio(goal.work_on)(self._agent)
        except Exception as error:
            goal.failure = error  # `status` raises it, and the session that watches tells its caller
        finally:
            goal.ended.set()


@asynccontextmanager
async def open_asyncio_runtime(log: LogReader, agent: Agent[AgentGoal, str]) -> AsyncIterator[AsyncioRuntime]:
    """Open the runtime, with an asyncio loop of its own that lives as long as the block."""
    # What the block raises leaves as itself, and not in the groups of the nurseries in between.
    async with unwrapped(open_loop()), open_owned_nursery() as nursery:
        yield AsyncioRuntime(log, agent, nursery)


# What follows is an agent as its library has it, and knows nothing of trio but the one line by which its tool is governed.


class Laboratory:
    """The world outside: a thermometer that may take its time, on asyncio."""

    def __init__(self) -> None:
        self.is_ready = False
        self.seen: list[str] = []

    async def temperature(self, room: str) -> str:
        try:
            if not self.is_ready:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.seen.append("cancelled")
            raise
        self.seen.append("measured")
        return f"{room}: 21 degrees"


def answer(messages: Sequence[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Stand in for a model: look at the thermometer once, then answer."""
    returns = [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
    if not returns:
        return ModelResponse([TextPart("I look."), ToolCallPart("temperature", {"room": "lab"}, "look-1")])
    return ModelResponse([TextPart(f"Measured: {returns[-1]}.")])


def make_agent(laboratory: Laboratory) -> Agent[AgentGoal, str]:
    agent = Agent(FunctionModel(answer), deps_type=AgentGoal, output_type=str)

    @agent.tool
    async def temperature(context: RunContext[AgentGoal], room: str) -> str:
        """Measure a room's temperature."""
        work = partial(laboratory.temperature, room)
        act = partial(context.deps.act, context.tool_call_id or "", work, idempotent=True)
        return str(await trio_as_aio(act)())

    return agent


async def until_admitted(run: Run) -> None:
    """Print the run as it goes, until its tool has begun."""
    async with run.session.subscribe() as events:
        async for event in events:
            print(event.seq, event.kind, event.text or event.result or event.action)
            if event.kind == Kind.ACTION_ADMITTED:
                return


async def main() -> None:
    """Park a run in the middle of a tool call, resume it, ask once more, and verify it; cancel another."""
    log, signer, laboratory = MemoryLog(), EphemeralSigner(), Laboratory()
    runtime = partial(open_asyncio_runtime, log, make_agent(laboratory))

    async with open_host(log, signer=signer) as host:
        run = await host.submit(GoalSpec("How warm is the lab?"), runtime)
        await until_admitted(run)
        print("-- another run, which is cancelled")
        other = await host.submit(GoalSpec("How warm is it here?"), runtime)
        await until_admitted(other)
        await host.cancel(other.id, principal="ada", reason="no longer wanted")
        try:
            await other.session.wait()
        except RunCancelled as error:
            print("cancelled:", error.reason, "- the agent saw:", laboratory.seen)
    # Leaving the host has parked the first run, in order: the agent was cancelled, and its call closed as interrupted.
    print("parked; the agent saw:", laboratory.seen)

    laboratory.is_ready = True
    async with open_host(log, signer=signer) as host:
        run = await host.resume(run.id, runtime)
        print("answer:", await run.session.wait())
        await run.closed()
        run = await host.say(run.id, runtime, "Say it again.", principal="ada")
        print("answer:", await run.session.wait())
        await run.closed()

    for each in (run, other):
        record = io.BytesIO()
        await export(log, each.id, record)
        verified = verify_record(record.getvalue(), Keyring({signer.kid: signer.public_key}))
        print(f"{len(verified.events)} events verified at {verified.tier}; complete: {verified.complete}")


if __name__ == "__main__":
    trio.run(main)
