"""A tool made of a pydantic model and a function; the model is both the schema and the check."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, final

from pydantic import BaseModel, ValidationError

from affidavit.actors.containment.levels import Level
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Trust
from affidavit.actors.models.port import ToolSpec
from affidavit.actors.toolbox.port import JsonObject

A = TypeVar("A", bound=BaseModel)


@final
class TypedTool(Generic[A]):
    """A `Tool` whose arguments are a pydantic model."""

    def __init__(
        self,
        name: str,
        description: str,
        arguments: type[A],
        work: Callable[[A], Awaitable[str]],
        *,
        idempotent: bool = False,
        trust: str = Trust.TRUSTED,
        containment: Level = Level.NONE,
    ) -> None:
        """Make a tool.

        Args:
            name: The tool's name.
            description: What it does, for the model.
            arguments: The model of its arguments.
            work: Does the work and returns the text for the model; raises `ToolFailed` for what the model
                should be told.
            idempotent: Whether running it twice is harmless.
            trust: How far it is trusted.
            containment: What really holds its work.
        """
        schema = json.dumps(arguments.model_json_schema(), sort_keys=True, separators=(",", ":"))
        self._spec = ToolSpec(name, description, schema)
        self._arguments = arguments
        self._work = work
        self._idempotent = idempotent
        self._trust = str(trust)
        self._containment = containment

    @property
    def spec(self) -> ToolSpec:
        """Name, description and argument schema."""
        return self._spec

    @property
    def idempotent(self) -> bool:
        """Whether running it twice is harmless."""
        return self._idempotent

    @property
    def trust(self) -> str:
        """How far the tool is trusted."""
        return self._trust

    @property
    def containment(self) -> Level:
        """What really holds its work."""
        return self._containment

    async def run(self, arguments: JsonObject) -> str:
        """Check the arguments and do the work.

        Raises:
            ToolFailed: The arguments do not fit, or the work could not be done.

        Cancellation: that of the work.
        """
        try:
            checked = self._arguments.model_validate(dict(arguments))
        except ValidationError as error:
            raise ToolFailed(f"{self._spec.name}: {_faults(error)}") from error
        return await self._work(checked)


def _faults(error: ValidationError) -> str:
    parts: list[str] = []
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(str(part) for part in fault["loc"])
        parts.append(f"argument {where!r}: {fault['msg']}" if where else fault["msg"])
    return "; ".join(parts)
