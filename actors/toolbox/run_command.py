"""The tool `run_command`: lets an agent run a command in its workspace, held by a containment.

The tool is semi-trusted, since what it runs is chosen by a model. Whether the containment is enough for that is decided in the
waist before the tool is asked; the tool asks again, so that no mistake in between lets a command run unheld.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from signal import Signals
from typing import Annotated, Final, final

from pydantic import BaseModel, ConfigDict, Field

from affidavit.actors.containment.levels import meets, required
from affidavit.actors.containment.port import (
    Captured,
    Containment,
    ContainmentFailed,
    Limits,
    Outcome,
    ProxyRoute,
    Struck,
)
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Trust
from affidavit.actors.toolbox.port import Tool
from affidavit.actors.toolbox.typed import TypedTool

OpenProxy = Callable[[], AbstractAsyncContextManager[ProxyRoute]]

MAX_COMMAND_CHARS: Final = 64 * 1024
_NOT_UTF8: Final = "\n[bytes that are not UTF-8 are shown as \ufffd]"
_LONGEST_CHARACTER: Final = 4
_CONTINUES, _LEADS = (
    0x80,
    0xC0,
)  # The least byte that goes on with a character, and the least that begins one of several.
_SAID: Final = {
    Struck.WALL: "it ran longer than {limits.wall_seconds:g} s",
    Struck.CPU: "it used more than {limits.cpu_seconds} s of processor time",
    Struck.MEMORY: "it used more than {limits.memory_bytes} bytes of memory",
    Struck.PROCESSES: "it ran more than {limits.processes} processes at once",
    Struck.DISK: "it wrote more than {limits.disk_bytes} bytes to the workspace, or the disk is nearly full",
    Struck.OUTPUT: "it printed more than {limits.output_bytes} bytes",
}


class RunCommand(BaseModel):
    """Arguments of `run_command`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    command: Annotated[
        str | list[str],
        Field(
            description="A line for /bin/sh, or a program and its arguments as a list, which no shell reads."
        ),
    ]
    timeout: Annotated[float | None, Field(gt=0, description="Seconds after which it is ended.")] = None


@final
class CommandTool:
    """`run_command` over one containment and one workspace."""

    def __init__(
        self,
        containment: Containment,
        workspace: str,
        *,
        limits: Limits | None = None,
        trust: str = Trust.SEMI_TRUSTED,
        environment: Mapping[str, str] | None = None,
        open_proxy: OpenProxy | None = None,
    ) -> None:
        """Make the tool.

        Args:
            containment: What holds the commands.
            workspace: The directory they work in. Links in this path are followed once, here.
            limits: What a command may use; None for the defaults.
            trust: How far the commands are trusted; an operator who has chosen them may say `trusted`.
            environment: Variables that they get.
            open_proxy: Opens a proxy for one call; None for no network.
        """
        self._containment = containment
        self._workspace = os.path.realpath(workspace)
        self._limits = limits or Limits()
        self._trust = trust
        self._environment = dict(environment or {})
        self._open_proxy = open_proxy

    @property
    def tool(self) -> Tool:
        """The tool, for a toolbox."""
        network = "the network through the proxy of HTTP_PROXY alone" if self._open_proxy else "no network"
        words = (
            "Run a command in the workspace and return its exit code and what it printed. "
            f"It has {network}, {self._limits.wall_seconds:g} s, and ends with all its processes when this call ends."
        )
        return TypedTool(
            "run_command",
            words,
            RunCommand,
            self._run,
            trust=self._trust,
            containment=self._containment.level,
        )

    async def _run(self, arguments: RunCommand) -> str:
        if not meets(self._containment.level, required(self._trust)):
            raise ToolFailed(
                f"a {self._trust} command needs containment {required(self._trust)}, "
                f"and there is only {self._containment.level}"
            )
        command = _argv(arguments.command)
        limits = self._limits
        if arguments.timeout is not None:
            limits = replace(limits, wall_seconds=min(arguments.timeout, limits.wall_seconds))
        try:
            async with AsyncExitStack() as stack:
                route = await stack.enter_async_context(self._open_proxy()) if self._open_proxy else None
                outcome = await self._containment.run(
                    command,
                    limits=limits,
                    workspace=self._workspace,
                    environment=self._environment,
                    proxy=route,
                )
        except ContainmentFailed as error:
            raise ToolFailed(f"the command was not run: {error}") from error
        return report(outcome, limits)


def report(outcome: Outcome, limits: Limits) -> str:
    """Return an outcome in words for the model: how it ended first, then what it printed."""
    if outcome.struck:
        ended = f"ended by a limit ({outcome.struck}): {_SAID[outcome.struck].format(limits=limits)}"
    elif outcome.signal is not None:
        ended = f"ended by signal {_name(outcome.signal)}"
    else:
        ended = f"exit code {outcome.exit_code}"
    parts = [ended]
    for name, captured in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        if captured.length:
            parts.append(f"[{name}]\n{_text(captured)}")
    return "\n".join(parts)


def _argv(command: str | list[str]) -> list[str]:
    size = len(command) if isinstance(command, str) else sum(map(len, command))
    if size > MAX_COMMAND_CHARS:
        raise ToolFailed(f"the command is longer than {MAX_COMMAND_CHARS} characters")
    return ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)


def _text(captured: Captured) -> str:
    """Return the output as text; bytes that are no UTF-8 become U+FFFD, and what was altered or left out is said."""
    if not captured.left_out:
        whole = captured.head + captured.tail
        text = whole.decode(errors="replace")
        marked = text.encode() != whole
    else:
        head, tail = _whole_characters(captured.head, captured.tail)
        parts = head.decode(errors="replace"), tail.decode(errors="replace")
        marked = "".join(parts).encode() != head + tail
        left = captured.length - len(head) - len(tail)
        digest = captured.sha256.hex()
        text = f"\n[... {left} of {captured.length} bytes left out; SHA-256 of all: {digest}]\n".join(parts)
    return text.rstrip("\n") + (_NOT_UTF8 if marked else "")


def _whole_characters(head: bytes, tail: bytes) -> tuple[bytes, bytes]:
    """Leave out the pieces of a character on each side of a cut."""
    for size in range(1, min(_LONGEST_CHARACTER, len(head) + 1)):
        if head[-size] >= _LEADS:
            needed = 2 + (head[-size] >= 0xE0) + (head[-size] >= 0xF0)  # noqa: PLR2004  # RFC 3629, section 3
            head = head[:-size] if size < needed else head
            break
        if head[-size] < _CONTINUES:
            break
    start = next((at for at in range(min(3, len(tail))) if not _CONTINUES <= tail[at] < _LEADS), 3)
    return head, tail[start:]


def _name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return str(number)
