"""A runtime whose goals go on until they are stopped, for benches that act for them and measure the session around."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus, Phase
from affidavit.actors.reporter import Reporter


class EndlessGoal:
    """Implements the `Runtime` port. Like a runtime of somebody else's, it does not tell of changes: it must be asked."""

    def __init__(self) -> None:
        """Begin with a goal that goes on."""
        self._status = GoalStatus(Phase.RUNNING)

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Say nothing of how the goal is driven."""
        return {}

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        """Take the goal."""
        await trio.lowlevel.checkpoint()
        return GoalKey(spec.name)

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        """Go on."""
        await trio.lowlevel.checkpoint()

    async def status(self, key: GoalKey) -> GoalStatus:
        """Answer at once."""
        return self._status

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        """Stop."""
        await trio.lowlevel.checkpoint()
        self._status = GoalStatus(Phase.RUNNING, active=False)
