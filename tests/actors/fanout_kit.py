"""What the tests of a fan-out share: one model for every goal of a run, which answers by what the goal was asked to do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping

import trio

from affidavit.actors.delegation import AgentProfile, SpawnTool
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply, ModelRequest, ToolCall
from affidavit.actors.toolbox.port import Tool
from affidavit.actors.toolbox.registry import Toolbox

Turns = tuple[ModelReply, ...]
Before = Callable[[str, int], Awaitable[None]]


def spawns(*objectives: str, **more: object) -> ModelReply:
    """Return a turn that hands out these objectives, with the ids s1, s2, ..."""
    asked = tuple(
        ToolCall(f"s{number}", "spawn", json.dumps({"objective": objective, **more}))
        for number, objective in enumerate(objectives, 1)
    )
    return ModelReply("", asked, "tool_use")


async def at_once(objective: str, position: int) -> None:
    """Answer without a wait."""
    await trio.lowlevel.checkpoint()


class CastModel:
    """A model that plays every goal of a run, by its objective; one that has no part answers at once.

    Args:
        parts: What is said, turn by turn, by objective.
        before: Waited for before each answer.
    """

    def __init__(
        self, parts: Mapping[str, Turns], before: Before = at_once, *, digest: bytes = b"cast"
    ) -> None:
        self._parts = parts
        self._before = before
        self.name = "fake:cast"
        self.digest = digest
        self.supports_tools = True
        self.requests: dict[str, list[ModelRequest]] = {}

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer the next turn of whichever goal asks."""
        objective = request.messages[0].text
        self.requests.setdefault(objective, []).append(request)
        position = sum(message.role == "assistant" for message in request.messages)
        await self._before(objective, position)
        turns = self._parts.get(objective, (ModelReply(f"done: {objective}"),))
        return turns[min(position, len(turns) - 1)]


def fanout_config(
    parts: Mapping[str, Turns],
    *tools: Tool,
    before: Before = at_once,
    profiles: tuple[AgentProfile, ...] = (),
    max_depth: int = 2,
    max_children: int = 16,
    **more: object,
) -> MissionConfig:
    """Return a configuration whose model may hand out work."""
    spawn = SpawnTool(profiles, max_depth=max_depth, max_children=max_children)
    return MissionConfig(CastModel(parts, before), Toolbox((*tools, spawn)), **more)  # type: ignore[arg-type]
