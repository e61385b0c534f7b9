"""How a test calls the tools of a workspace, and the words outside it that must never be read."""

from pathlib import Path
from typing import Any, Final

from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.workspace import WorkspaceTools

SECRET: Final = "outside-secret"


async def call(root: Path, name: str, **arguments: Any) -> str:
    """Run one tool of the workspace."""
    return await Toolbox(WorkspaceTools(root).tools)[name].run(arguments)


async def read(root: Path, path: str, **more: Any) -> str:
    """Run read_file on a path."""
    return await call(root, "read_file", path=path, **more)
