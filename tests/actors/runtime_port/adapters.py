"""Every runtime there is, by name, each driving one goal whose only deed is the test's; the contract suite runs over all of them.

Two of them are those of the examples, loaded from where they are documented.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import final

import pytest
import trio

from affidavit.actors.events import FaultClass
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.logs.port import LogReader
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.script import ScriptModel
from affidavit.actors.nurseries import open_owned_nursery
from affidavit.actors.reporter import Reporter
from affidavit.actors.runtime import MissionExecutor, open_runtime
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.toolbox.registry import Toolbox
from tests import environment
from tests.actors.mission_kit import FakeTool

_TURNS = [
    {"text": "I look.", "tool_calls": [{"name": "look", "input": {}}]},
    {"text": "Looked."},
    {"text": "Looked."},
]


@final
class World:
    """The one deed of a goal, held until the test lets it go.

    Attributes:
        began: Set once it has begun.
        go: Set it, and the deed is done.
        done: How often it was.
        stopped: How often it was cancelled while it was held.
        error: Raised in place of the deed.
    """

    def __init__(self, *, held: bool = True) -> None:
        self.began = trio.Event()
        self.go = trio.Event()
        self.done = 0
        self.stopped = 0
        self.error: Exception | None = None
        if not held:
            self.go.set()

    async def deed(self) -> str:
        """Wait to be let go, and do it."""
        self.began.set()
        try:
            await self.go.wait()
        except trio.Cancelled:
            self.stopped += 1
            raise
        if self.error is not None:
            raise self.error
        self.done += 1
        return "done"


Open = Callable[[LogReader, World], AbstractAsyncContextManager[Runtime]]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A way to have the goal driven.

    Attributes:
        open: Opens the runtime over a log.
        answer: What the goal converges with.
    """

    open: Open
    answer: str


def example(name: str) -> ModuleType:
    """Return an example as a module, or skip the test where the libraries that it is about are not installed."""
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if environment.CI or (error.name or "").startswith("affidavit"):
            raise
        pytest.skip(f"{error.name} is not installed")


@cache
def _load(name: str) -> ModuleType:
    path = environment.ROOT / "docs" / "examples" / f"{name}.py"
    found = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    # The agent library looks the annotations of a tool up where it was defined.
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


@asynccontextmanager
async def _ours(log: LogReader, world: World) -> AsyncIterator[Runtime]:
    async def look(_arguments: Mapping[str, object]) -> str:
        return await world.deed()

    tools = Toolbox([FakeTool("look", look, idempotent=True)])
    model = ScriptModel.from_text(json.dumps({"turns": _TURNS}))
    async with open_runtime(MissionExecutor(MissionConfig(model, tools)), log) as runtime:
        yield runtime


@asynccontextmanager
async def _clerk(log: LogReader, world: World) -> AsyncIterator[Runtime]:
    module = example("own_loop")
    office = module.Office()
    office.archive_is_open.set()
    look_up: Callable[[str], Awaitable[str]] = office.look_up

    async def held(invoice: str) -> str:
        if invoice == "A-1":
            await world.deed()
        return await look_up(invoice)

    office.look_up = held
    async with module.open_clerk(log, office) as runtime:
        yield runtime


@asynccontextmanager
async def _asyncio(log: LogReader, world: World) -> AsyncIterator[Runtime]:
    module = example("asyncio_agent")

    class Laboratory:
        async def temperature(self, room: str) -> str:
            deed: str = await module.trio_as_aio(world.deed)()
            return f"{room} {deed}"

    async with module.open_asyncio_runtime(log, module.make_agent(Laboratory())) as runtime:
        yield runtime


@final
class SilentRuntime:
    """The least that a runtime can be: it reports nothing, and only its status tells how the goal stands."""

    def __init__(self, nursery: trio.Nursery, world: World) -> None:
        self._nursery = nursery
        self._world = world
        self._goals: dict[str, _Silent] = {}

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Say nothing."""
        return {}

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        """Begin."""
        key = GoalKey(spec.name)
        await self.resume(key, reporter)
        return key

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        """Begin anew: nothing is known of what was done before."""
        await trio.lowlevel.checkpoint()
        goal = self._goals[key.name] = _Silent()
        self._nursery.start_soon(self._drive, goal)

    async def _drive(self, goal: _Silent) -> None:
        try:
            with goal.scope:
                await self._world.deed()
                goal.status = GoalStatus(Phase.CONVERGED, "silently", active=False)
        except Exception as error:
            goal.failure = error
        finally:
            goal.ended.set()

    async def status(self, key: GoalKey) -> GoalStatus:
        """Tell how it stands."""
        await trio.lowlevel.checkpoint()
        goal = self._goals[key.name]
        if goal.failure is not None:
            raise goal.failure
        active = not goal.ended.is_set()
        return goal.status if goal.status.phase.terminal else GoalStatus(Phase.RUNNING, active=active)

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        """Stop it, whatever for."""
        assert fault in {FaultClass.CANCELLED, FaultClass.INTERRUPTED}
        goal = self._goals.get(key.name)
        if goal is not None:
            goal.scope.cancel(reason="the test stops it")
            await goal.ended.wait()


@final
class _Silent:
    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.status = GoalStatus(Phase.RUNNING)
        self.failure: Exception | None = None


@asynccontextmanager
async def _silent(_log: LogReader, world: World) -> AsyncIterator[Runtime]:
    async with open_owned_nursery() as nursery:
        yield SilentRuntime(nursery, world)


ADAPTERS: dict[str, Adapter] = {
    "ours": Adapter(_ours, "Looked."),
    "own-loop": Adapter(_clerk, "All invoices are paid."),
    "asyncio": Adapter(_asyncio, "Measured: lab done."),
    "silent": Adapter(_silent, "silently"),
}
