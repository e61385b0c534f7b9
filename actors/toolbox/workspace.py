"""Three tools that let an agent read inside a workspace directory: `read_file`, `list_dir`, `search_text`.

They read and never write, and no path leads outside the workspace (see `beneath`). All disk work runs in
threads of a limiter of their own, so that a disk that hangs stalls these tools and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeVar, final

import trio
from pydantic import BaseModel, ConfigDict, Field

from affidavit.actors.errors import ConfigurationError, ToolFailed
from affidavit.actors.toolbox.beneath import withheld
from affidavit.actors.toolbox.port import Tool
from affidavit.actors.toolbox.reading import MAX_LINES, list_entries, read_lines
from affidavit.actors.toolbox.searching import Search
from affidavit.actors.toolbox.typed import TypedTool

SEARCH_SECONDS: Final = 10.0
MAX_PATTERN_CHARS: Final = 1000
_THREADS: Final = 4
_T = TypeVar("_T")
_Path = Annotated[str, Field(description="Path relative to the workspace.")]


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ReadFile(_Arguments):
    """Arguments of `read_file`."""

    path: _Path
    offset: Annotated[int, Field(ge=1, description="First line to read, from 1.")] = 1
    limit: Annotated[int, Field(ge=1, le=MAX_LINES, description="How many lines at most.")] = MAX_LINES


class ListDir(_Arguments):
    """Arguments of `list_dir`."""

    path: _Path = "."


class SearchText(_Arguments):
    """Arguments of `search_text`."""

    pattern: Annotated[str, Field(description="The exact text to find, within one line.")]
    path: _Path = "."


@final
class WorkspaceTools:
    """The tools of one workspace."""

    def __init__(self, root: str | Path, *, keep_back: Sequence[str | Path] = ()) -> None:
        """Take a directory as the workspace.

        Args:
            root: The directory. Links in this path are followed once, here.
            keep_back: Files and folders that are not read though they may lie in it: the store, files with a secret.

        Raises:
            ConfigurationError: It does not exist, is no directory, or cannot be read.
        """
        self._root = _directory(root)
        # Whole paths, since the current directory may be another one by the time of a call.
        self._keep_back = tuple(str(Path(path).absolute()) for path in keep_back)
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._tools: tuple[Tool, ...] = (
            TypedTool(
                "read_file",
                "Read the lines of a text file in the workspace.",
                ReadFile,
                self._read,
                idempotent=True,
            ),
            TypedTool("list_dir", "List a directory of the workspace.", ListDir, self._list, idempotent=True),
            TypedTool(
                "search_text",
                "Find the lines that contain an exact text, in all files below a path of the workspace.",
                SearchText,
                self._search,
                idempotent=True,
            ),
        )

    @property
    def root(self) -> str:
        """The workspace's real path."""
        return self._root

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The three tools."""
        return self._tools

    async def _read(self, arguments: ReadFile) -> str:
        return await self._in_thread(
            lambda: read_lines(
                self._root, arguments.path, arguments.offset, arguments.limit, withheld(self._keep_back)
            )
        )

    async def _list(self, arguments: ListDir) -> str:
        return await self._in_thread(
            lambda: list_entries(self._root, arguments.path, withheld(self._keep_back))
        )

    async def _search(self, arguments: SearchText) -> str:
        pattern = arguments.pattern
        if not pattern or "\n" in pattern or len(pattern) > MAX_PATTERN_CHARS:
            raise ToolFailed(f"the pattern must be one line of 1 to {MAX_PATTERN_CHARS} characters")
        search = Search(pattern, await self._in_thread(partial(withheld, self._keep_back)))
        try:
            with trio.move_on_after(SEARCH_SECONDS) as scope:
                await self._in_thread(partial(search.run, self._root, arguments.path))
        finally:
            # The thread may still be at work if this task was cancelled or out of time: it sees the flag
            # at its next file.
            search.stop.set()
        if scope.cancelled_caught:
            search.ended = f"{SEARCH_SECONDS:g} seconds had passed"
        return search.report()

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)


def _directory(root: str | Path) -> str:
    try:
        real = os.path.realpath(root, strict=True)
        os.close(os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except FileNotFoundError as error:
        raise ConfigurationError(f"the workspace {root} does not exist") from error
    except NotADirectoryError as error:
        raise ConfigurationError(f"the workspace {root} is not a directory") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"the workspace {root} cannot be read: {why}") from error
    return real
