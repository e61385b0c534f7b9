"""The tools of one run, by name: what a model is offered, and one digest that says which they are.

It looks tools up and never runs them; only the dispatch waist does.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, final

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.port import ToolSpec
from affidavit.actors.toolbox.port import ConfiguredTool, Tool

# What every vendor of models accepts as the name of a function.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@final
class Toolbox(Mapping[str, Tool]):
    """An immutable set of tools, a mapping ordered by name."""

    def __init__(self, tools: Iterable[Tool] = (), *, place: str = "") -> None:
        """Collect the tools.

        Args:
            tools: The tools.
            place: What they work on, such as a workspace's folder. It goes into the digest alone: a run that is resumed
                over another folder does not have the same tools.

        Raises:
            ConfigurationError: Two tools share a name, or a name is none that a model can be offered.
        """
        found: dict[str, Tool] = {}
        for tool in tools:
            name = tool.spec.name
            if not _NAME.fullmatch(name):
                raise ConfigurationError(
                    f"a tool's name is 1 to 64 letters, digits, '-' or '_', not {name!r}"
                )
            if name in found:
                raise ConfigurationError(f"two tools are named {name!r}")
            found[name] = tool
        self._tools = MappingProxyType(dict(sorted(found.items())))
        self._place = place
        self._digest = _digest(self._tools.values(), place)

    def replacing(self, tool: Tool) -> Toolbox:
        """Return a toolbox with a tool in the place of the one of its name, which may be missing."""
        others = (each for name, each in self._tools.items() if name != tool.spec.name)
        return Toolbox((*others, tool), place=self._place)

    def __getitem__(self, name: str) -> Tool:
        """Return the tool of this name; KeyError if there is none."""
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names, in order."""
        return iter(self._tools)

    def __len__(self) -> int:
        """Return how many tools there are."""
        return len(self._tools)

    def specs(self, granted: Collection[str] | None = None) -> tuple[ToolSpec, ...]:
        """Return what a model is told of the tools it may use, ordered by name.

        Args:
            granted: The names that are granted; None for all. Names that no tool bears are left aside.
        """
        return tuple(tool.spec for name, tool in self._tools.items() if granted is None or name in granted)

    @property
    def digest(self) -> bytes:
        """SHA-256 over every tool's name, description, schema, trust and idempotence, and over what they work on."""
        return self._digest


def _digest(tools: Collection[Tool], place: str) -> bytes:
    rows: list[object] = [
        [tool.spec.name, tool.spec.description, tool.spec.input_schema, tool.trust, tool.idempotent]
        for tool in tools
    ]
    rows += [tool.means.hex() for tool in tools if isinstance(tool, ConfiguredTool)]
    if place:
        rows.append(place)
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode("ascii")).digest()
