"""The tool port: something an agent may ask for, run only through the dispatch waist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from affidavit.actors.containment.levels import Level
from affidavit.actors.models.port import ToolSpec

JsonObject = Mapping[str, object]


class Tool(Protocol):
    """One tool. It raises `ToolFailed` for what the model should be told; anything else is reported as a crash of the tool."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and argument schema."""
        ...

    @property
    def idempotent(self) -> bool:
        """Whether running it twice is harmless, so that a call interrupted by a crash may be run again."""
        ...

    @property
    def trust(self) -> str:
        """How far the tool is trusted: `trusted`, `semi-trusted` or `untrusted`."""
        ...

    async def run(self, arguments: JsonObject) -> str:
        """Do the work and return the text shown to the model.

        Raises:
            ToolFailed: It could not be done; the message is shown to the model. An idempotent tool whose fault is transient is
                tried again first.

        Cancellation: stops as soon as it can.
        """
        ...


@runtime_checkable
class ContainedTool(Protocol):
    """What a tool may say beside: what really holds its work. One that says nothing runs in this process, held by nothing."""

    @property
    def containment(self) -> Level:
        """What the work is held by on this machine, now."""
        ...


@runtime_checkable
class KeyedTool(Protocol):
    """What a tool may offer beside that acts on a service which can tell a repeated request from a new one."""

    async def run_keyed(self, arguments: JsonObject, key: str) -> str:
        """Do the work as `run` does, which is then not called.

        Args:
            arguments: As for `run`.
            key: `<run>/<toolUseID>`, of a child goal `<run>/<goal>/<toolUseID>`: the same each time that this very call is run,
                on another attempt and after a crash, and of no other call.
        """
        ...


@runtime_checkable
class ConfiguredTool(Protocol):
    """What a tool may say beside: that it was set up in a way which its spec does not show."""

    @property
    def means(self) -> bytes:
        """SHA-256 of how it was set up; a resumed run compares it."""
        ...
