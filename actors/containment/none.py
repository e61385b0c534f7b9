"""The level `none`: a trusted command as an ordinary process of ours, within limits, gone with all it started. It is not held.

It can read, write and reach whatever we can. What this level gives is an environment without our secrets, an output that is
bounded, limits that end what runs away, and an end: everything the command started is gone before the call returns, double
forks and sessions of their own included (see `reaper`). A command that is meant to get away can, by ending the reaper.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, final

import trio

from affidavit.actors.containment import inside, reaper
from affidavit.actors.containment.handshake import await_ready, line, say_go
from affidavit.actors.containment.levels import Level
from affidavit.actors.containment.plan import Interpreter
from affidavit.actors.containment.port import ContainmentFailed, Limits, Outcome, ProxyRoute, check_command
from affidavit.actors.containment.process import Child
from affidavit.actors.containment.sandbox import rlimits
from affidavit.actors.containment.supervise import KILL_SECONDS, Supervisor

_INHERITED: Final = ("PATH", "HOME", "LANG", "TMPDIR", "USER")
_DIRECTORY: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


@final
class NoContainment:
    """Runs commands at the level `none`."""

    def __init__(self) -> None:
        """Make one.

        Raises:
            ContainmentFailed: Our own interpreter cannot be found.
        """
        self._interpreter = Interpreter.ours()
        self._supervisor = Supervisor()

    @property
    def level(self) -> Level:
        """`none`."""
        return Level.NONE

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        workspace: str,
        environment: Mapping[str, str],
        proxy: ProxyRoute | None = None,
    ) -> Outcome:
        """Run a command as a process tree of its own; see `Containment.run`. A proxy is offered, and not the only way out.

        Raises:
            ContainmentFailed: It could not be started.

        Cancellation: all its processes are killed, and gone before this returns.
        """
        check_command(command, environment)
        variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        if proxy is not None:
            variables |= proxy.environment(proxy.port)
        try:
            folder = os.open(workspace, _DIRECTORY)
        except OSError as error:
            raise ContainmentFailed(
                f"the workspace {workspace} cannot be opened: {error.strerror}"
            ) from error
        try:
            disk = await self._supervisor.watch_disk(folder, limits)
        finally:
            os.close(folder)
        tree = _Tree(self._interpreter.program)
        try:
            await tree.begin(command, limits, workspace, variables | dict(environment))
            return await self._supervisor.see_through(tree, limits, disk)
        finally:
            # Shielded, since the processes must be gone before this returns; the deadline is for a kernel that is stuck.
            with trio.CancelScope(shield=True, deadline=trio.current_time() + KILL_SECONDS):
                await tree.close()


@final
class _Tree:
    """A command and all that comes of it, below a reaper that is ours."""

    memory_mounts = ()

    def __init__(self, program: str) -> None:
        alone = [program, "-I", "-S"]
        theirs, life = os.pipe2(os.O_CLOEXEC)
        self._life: int | None = life
        try:
            argv = [*alone, reaper.__file__, str(theirs), *alone, inside.__file__]
            self._child = Child.start(argv, pass_fds=[theirs])
        except BaseException:
            os.close(life)
            raise
        finally:
            os.close(theirs)
        self.root = self._child.pid

    async def begin(
        self, command: Sequence[str], limits: Limits, workspace: str, environment: Mapping[str, str]
    ) -> None:
        """Hand over the plan and let the command begin."""
        bounds = {name: value for name, value in rlimits(limits).items() if name != "RLIMIT_NPROC"}
        plan = {"limits": bounds, "listen": False, "folder": workspace, "command": list(command)}
        await await_ready(self._child, line(plan), listen=False)
        await say_go(self._child, environment)

    def take_outputs(self) -> tuple[int, int]:
        """Return the reading ends of the outputs, to be owned by the caller."""
        return self._child.take_outputs()

    def kill(self) -> None:
        """Have the reaper end them all, by closing the life pipe; if it was stopped, it goes on for that."""
        if self._life is not None:
            os.close(self._life)
            self._life = None
        self._child.go_on()

    async def ended(self) -> tuple[int | None, int | None]:
        """Wait for the reaper, which ends only when nothing is left, and as the command ended."""
        code = await self._child.wait()
        return (None, -code) if code < 0 else (code, None)

    async def close(self) -> None:
        """End what is left and let go of it.

        Cancellation: nothing was let go of yet.
        """
        self.kill()
        await self.ended()
        self._child.close()
