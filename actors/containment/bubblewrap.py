"""The level `kernel`: a command in namespaces of its own, made by bubblewrap, with no capability and no network.

One run: our `outside` program prepares, bwrap makes the sandbox, our `inside` program takes the limits and says that it is ready,
and only when we hold the sandbox's first process by descriptor is it told to become the command. That process is the namespace's
init: when it dies the kernel kills every process of the namespace, however they forked, and lets it be waited for last.
A crash of this process ends the sandbox too, since every part of it asked to die with its parent.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import final

import trio

from affidavit.actors.containment.forward import forward
from affidavit.actors.containment.held import open_sandbox
from affidavit.actors.containment.levels import Level
from affidavit.actors.containment.plan import Interpreter, prepare, within
from affidavit.actors.containment.port import ContainmentFailed, Limits, Outcome, ProxyRoute, check_command
from affidavit.actors.containment.sandbox import base_environment
from affidavit.actors.containment.supervise import KILL_SECONDS, Supervisor
from affidavit.actors.nurseries import open_owned_nursery


@final
class Bubblewrap:
    """Runs commands at the level `kernel`."""

    def __init__(self, *, withheld: Sequence[str] = (), program: str | None = None) -> None:
        """Choose bwrap, and say what no sandbox may contain.

        Args:
            withheld: Paths that no sandbox may contain or lie in: the store, files with a secret.
            program: The path of bwrap; None looks for it in PATH.

        Raises:
            ContainmentFailed: bwrap is not installed, our own interpreter cannot be taken along, or what every sandbox has holds
                something that is withheld.
        """
        found = program or shutil.which("bwrap")
        if found is None:
            raise ContainmentFailed("bubblewrap (bwrap) is not installed")
        self._program = os.path.realpath(found)
        self._withheld = [os.path.realpath(path) for path in withheld]
        self._interpreter = Interpreter.ours()
        for folder in (self._interpreter.folder, "/usr"):
            self._check(folder)
        self._supervisor = Supervisor()

    @property
    def level(self) -> Level:
        """`kernel`."""
        return Level.KERNEL

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        workspace: str,
        environment: Mapping[str, str],
        proxy: ProxyRoute | None = None,
    ) -> Outcome:
        """Run a command in a sandbox of its own; see `Containment.run`.

        Raises:
            ContainmentFailed: It could not be held; nothing was run.

        Cancellation: all its processes are killed, and gone before this returns.
        """
        check_command(command, environment)
        real = self._real(workspace)
        listen = proxy is not None
        with prepare(self._program, self._interpreter, real, limits, command, listen=listen) as prepared:
            disk = await self._supervisor.watch_disk(prepared.workspace, limits)
            sandbox = await open_sandbox(prepared)
            try:
                async with open_owned_nursery() as nursery:
                    variables = base_environment()
                    if proxy is not None:
                        listener = sandbox.take_listener()
                        variables |= proxy.environment(listener.socket.getsockname()[1])
                        nursery.start_soon(forward, listener, proxy)
                    await sandbox.go(variables | dict(environment))
                    return await self._supervisor.see_through(sandbox, limits, disk)
            finally:
                # Shielded, since the processes must be gone before this returns; the deadline is for a kernel that is stuck.
                with trio.CancelScope(shield=True, deadline=trio.current_time() + KILL_SECONDS):
                    await sandbox.close()

    def _real(self, workspace: str) -> str:
        """Return the workspace's whole path, which must be its real one: a link may be somebody else's doing."""
        real = os.path.realpath(workspace)
        self._check(real)
        if real != os.path.abspath(workspace):  # noqa: PTH100  # a plain string in, a plain string out
            raise ContainmentFailed(
                f"the workspace {workspace} cannot be opened: its path leads through a link"
            )
        return real

    def _check(self, path: str) -> None:
        for kept in self._withheld:
            if within(path, kept) or within(kept, path):
                raise ContainmentFailed(f"{path} cannot be in a sandbox: {kept} must stay out of it")
