"""The tools of an agent on the command line: reading a workspace and, only where they are named, commands and the net.

`run_command`, `http_fetch` and `spawn` are there only if the goal or the policy names them: nobody is given a shell by default.
The store, and files that hold the operator's secrets, are shown to no agent, even where its workspace is around them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from affidavit.actors.containment.detect import detect
from affidavit.actors.containment.none import NoContainment
from affidavit.actors.containment.plan import within
from affidavit.actors.containment.port import ProxyRoute
from affidavit.actors.deciders.fanout import SPAWN_ACTION
from affidavit.actors.delegation import SpawnTool
from affidavit.actors.models.endpoint import ANTHROPIC, OPENAI
from affidavit.actors.netguard.proxy import open_proxy
from affidavit.actors.netguard.scope import current_guard
from affidavit.actors.toolbox.http_fetch import http_fetch
from affidavit.actors.toolbox.port import Tool
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.run_command import CommandTool
from affidavit.actors.toolbox.workspace import WorkspaceTools
from affidavit.tools.errors import UsageError, notice
from affidavit.tools.passphrase import FILE_VARIABLE
from affidavit.tools.place import Place

COMMAND: Final = "run_command"
FETCH: Final = "http_fetch"
SPAWN: Final = SPAWN_ACTION
# What needs no workspace.
ANYWHERE: Final = frozenset({FETCH, SPAWN})
_SECRET_FILES: Final = (FILE_VARIABLE, OPENAI.file_variable, ANTHROPIC.file_variable)


async def agent_toolbox(
    workspace: Path | None, named: Collection[str], place: Place, secret_file: Path | None = None
) -> Toolbox:
    """Return the tools that exist for a run.

    Args:
        workspace: Where the agent may read, and its commands work and write; None gives it neither.
        named: The tools that the goal's grant or the policy names.
        place: The store, which no tool gets to see.
        secret_file: A file of secrets that a person named, which none gets to see either.

    Raises:
        ConfigurationError: There is no such workspace.
        UsageError: Commands are named and there is no workspace for them.
    """
    tools: list[Tool] = []
    root = ""
    kept = _kept_back(place, secret_file)
    if workspace is not None:
        reading = WorkspaceTools(workspace, keep_back=kept)
        tools += reading.tools
        root = str(reading.root)
    if COMMAND in named:
        if not root:
            raise UsageError(f"{COMMAND} works in a workspace: name one with --workspace")
        tools.append(await _commands(root, kept))
    if FETCH in named:
        tools.append(http_fetch())
    if SPAWN in named:
        # Without agents, whose models are opened when the run is driven.
        tools.append(SpawnTool())
    return Toolbox(tools, place=root)


def _kept_back(place: Place, secret_file: Path | None) -> tuple[str, ...]:
    """Return the real paths of the store and of the files that a person or the environment names for secrets."""
    named = [path for path in map(os.environ.get, _SECRET_FILES) if path]
    if secret_file is not None:
        named.append(str(secret_file))
    return tuple(os.path.realpath(path) for path in (str(place.folder), *named))


async def _commands(root: str, kept: tuple[str, ...]) -> Tool:
    found = await detect(withheld=kept)
    overlap = next((path for path in kept if within(root, path) or within(path, root)), None)
    reason = found.reason if overlap is None else f"{overlap} must stay out of the workspace {root}"
    containment = None if reason else found.containment
    if containment is None:
        notice(f"{COMMAND} will be refused, since commands cannot be contained here: {reason}")
    return CommandTool(containment or NoContainment(), root, open_proxy=_open_proxy).tool


@asynccontextmanager
async def _open_proxy() -> AsyncIterator[ProxyRoute]:
    """Open the way out for one command: the guard of the run that it belongs to, which decides and records."""
    async with open_proxy(current_guard()) as proxy:
        yield ProxyRoute.from_url(proxy.url)
