"""What a model needs to hand work to other goals: the spawn tool, the agents that it may name, and how far that may go.

The tool itself does nothing; a mission that is asked for it begins a goal of its own, under its own rules or stricter ones. See
`affidavit.actors.mission_spawn`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Final, final

from affidavit.actors.deciders.fanout import (
    DEFAULT_CHILDREN,
    DEFAULT_DEPTH,
    MAX_CHILDREN,
    MAX_DEPTH,
    SPAWN_ACTION,
)
from affidavit.actors.errors import ConfigurationError, ToolFailed
from affidavit.actors.events import Trust
from affidavit.actors.models.port import Model, ToolSpec
from affidavit.actors.toolbox.port import JsonObject
from affidavit.crypto import cbor


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """A named kind of agent that work may be handed to.

    Attributes:
        name: How the model asks for it.
        description: What it is good for, told to the model.
        system: Its system prompt; empty for that of the goal that asks.
        tools: The tools it asks for, of which it gets those that the goal above has; None for all of these.
        model: The model that it works with; None for that of the goal above.
        max_steps: The most model turns it may take; 0 for as many as the goal above.
    """

    name: str
    description: str = ""
    system: str = ""
    tools: tuple[str, ...] | None = None
    model: Model | None = None
    max_steps: int = 0


@final
class SpawnTool:
    """The tool by which a model hands a part of its work to another goal. It is put into the toolbox like any other."""

    def __init__(
        self,
        profiles: Iterable[AgentProfile] = (),
        *,
        max_depth: int = DEFAULT_DEPTH,
        max_children: int = DEFAULT_CHILDREN,
    ) -> None:
        """Say how far it may go.

        Args:
            profiles: The agents that a model may name.
            max_depth: How many goals may stand below one another, the root left out: 1 keeps a child from handing work on.
            max_children: How many goals one goal may hand work to, all together.

        Raises:
            ConfigurationError: A limit is out of range, or two profiles share a name.
        """
        if not 1 <= max_depth <= MAX_DEPTH:
            raise ConfigurationError(f"the depth of a delegation is 1 to {MAX_DEPTH}, not {max_depth}")
        if not 1 <= max_children <= MAX_CHILDREN:
            raise ConfigurationError(f"a goal hands work to 1 to {MAX_CHILDREN} others, not {max_children}")
        named: dict[str, AgentProfile] = {}
        for profile in profiles:
            if not profile.name or profile.name in named:
                raise ConfigurationError(
                    f"there is to be one agent profile of each name, not {profile.name!r}"
                )
            named[profile.name] = profile
        self.profiles: Final[Mapping[str, AgentProfile]] = MappingProxyType(named)
        self.max_depth: Final = max_depth
        self.max_children: Final = max_children

    @property
    def spec(self) -> ToolSpec:
        """Name, description and argument schema."""
        return ToolSpec(SPAWN_ACTION, self._description(), json.dumps(self._schema(), sort_keys=True))

    @property
    def idempotent(self) -> bool:
        """Whether it may be run again when a crash came between: nothing of a goal has begun before it stands on the record."""
        return True

    @property
    def trust(self) -> str:
        """How far it is trusted: it does nothing but begin a goal whose every action is governed."""
        return Trust.TRUSTED

    @property
    def means(self) -> bytes:
        """SHA-256 of what it comes to: the limits and the agents, with their models."""
        agents = [
            [
                each.name,
                each.system,
                None if each.tools is None else sorted(each.tools),
                None if each.model is None else each.model.digest,
                each.max_steps,
            ]
            for each in self.profiles.values()
        ]
        return sha256(cbor.encode([self.max_depth, self.max_children, agents])).digest()

    async def run(self, arguments: JsonObject) -> str:
        """Refuse: nobody but a mission can begin a goal.

        Raises:
            ToolFailed: Always.
        """
        raise ToolFailed("work can only be handed on within a mission", code="no_mission")

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that its agents work with, beside the run's own."""
        return tuple(each.model for each in self.profiles.values() if each.model is not None)

    def _description(self) -> str:
        said = (
            "Hand a part of your work to another agent, which works on its own and at the same time as others, and cannot "
            "see this conversation: say in the objective all that it must know. Its answer is this call's result."
        )
        agents = [f"{each.name}: {each.description}" for each in self.profiles.values() if each.description]
        return "\n".join((said, *(("The agents:", *agents) if agents else ())))

    def _schema(self) -> dict[str, object]:
        properties: dict[str, object] = {
            "objective": {"type": "string", "description": "What it is to do and to answer."},
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The tools that it may use, of those that you may; all of them if this is left out.",
            },
            "max_steps": {"type": "integer", "description": "The most turns that it may take."},
        }
        if self.profiles:
            properties["agent"] = {
                "type": "string",
                "enum": list(self.profiles),
                "description": "Which kind of agent; one like yourself if this is left out.",
            }
        return {
            "type": "object",
            "properties": properties,
            "required": ["objective"],
            "additionalProperties": False,
        }
