"""Our goal runtime: drives each goal in a task of its own, step by step, Pending > Running > Converged | Stalled.

It never writes to a stream; its missions report, and the session writes. One goal that fails harms no other: the failure is
kept and raised to whoever asks for that goal's status, which is the session that watches it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import final

import trio

from affidavit.actors.conversation import fold
from affidavit.actors.crew import Stop, stop_hand
from affidavit.actors.deciders.fanout import SPAWN_ACTION
from affidavit.actors.delegation import SpawnTool
from affidavit.actors.errors import ResumeRefused
from affidavit.actors.events import SCHEMA_VERSION, Event, FaultClass
from affidavit.actors.goal import GoalKey, GoalSpec, GoalStatus
from affidavit.actors.goal_task import drive
from affidavit.actors.history import history
from affidavit.actors.logs.port import LogReader
from affidavit.actors.mission import Mission, root_mission
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import HoldsSecrets
from affidavit.actors.nurseries import open_owned_nursery
from affidavit.actors.reporter import Reporter
from affidavit.actors.secret_log import keep_out_of_logs
from affidavit.actors.secrets import Secrets


def held_secrets(config: MissionConfig) -> Secrets:
    """Return the secrets that the models of a run were opened with: its own, and those of the agents it may hand work to."""
    spawn = config.toolbox.get(SPAWN_ACTION)
    models = (config.model, *(spawn.models if isinstance(spawn, SpawnTool) else ()))
    return Secrets.of(
        secret for model in models if isinstance(model, HoldsSecrets) for secret in model.secrets
    )


@final
class MissionExecutor:
    """Makes missions from one configuration; the part of the runtime that knows of models and tools."""

    def __init__(self, config: MissionConfig, *, observer: Reporter | None = None) -> None:
        """Set what its missions run with.

        Args:
            config: Model, tools and limits.
            observer: Where the missions report, in place of the reporter that the session hands over.
        """
        self._config = replace(config, secrets=config.secrets | held_secrets(config))
        keep_out_of_logs(self._config.secrets)
        self._observer = observer

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Return what session.started says of the configuration."""
        # Of the words as they are recorded, so that a resumed run arrives at the same digests.
        return self._config.describe(replace(spec, system=self._config.secrets.scrub(spec.system)))

    def scrub(self, event: Event) -> Event:
        """Return the event without any of the secrets that the model or the host was given."""
        return self._config.secrets.scrub_event(event)

    async def mission(self, key: GoalKey, reporter: Reporter, log: LogReader) -> Mission:
        """Return the goal's mission, standing where its stream stands.

        Raises:
            ResumeRefused: The stream holds no goal, or events of a version that this program does not know.
        """
        events = await history(log, key.name)
        newer = next((event for event in events if event.schema_version != SCHEMA_VERSION), None)
        if newer is not None:
            raise ResumeRefused(
                f"event {newer.seq} of run {key.name} is of schema version {newer.schema_version}, and this program "
                f"continues runs of version {SCHEMA_VERSION} only"
            )
        conversation = fold(events)
        return root_mission(self._config, conversation, self._observer or reporter)


@final
class _Driven:
    """One goal and the task that drives it. The task owns `status` and `failure`; `stop` owns the scope."""

    def __init__(self, mission: Mission) -> None:
        self.mission = mission
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.status = mission.status
        self.failure: Exception | None = None
        self.changed: Callable[[], None] | None = None


@final
class GoalRuntime:
    """Drives goals while its `open_runtime` block lasts. Implements the `Runtime` port."""

    def __init__(
        self, executor: MissionExecutor, log: LogReader, nursery: trio.Nursery, *, accept_changes: bool
    ) -> None:
        """Use `open_runtime`."""
        self._executor = executor
        self._log = log
        self._nursery = nursery
        self._accept_changes = accept_changes
        self._goals: dict[str, _Driven] = {}
        # What is heard of goals whose log is being read just now, and which the reading may have missed.
        self._beginning: dict[str, list[Event]] = {}

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Return what session.started says of the configuration."""
        return self._executor.describe(spec)

    def scrub(self, event: Event) -> Event:
        """Return the event without any of the secrets that the model or the host was given; see the port."""
        return self._executor.scrub(event)

    async def submit(self, spec: GoalSpec, reporter: Reporter) -> GoalKey:
        """Begin to drive the goal whose session.started is on the stream named `spec.name`.

        Raises:
            RuntimeError: The goal is being driven already.
            ResumeRefused: The stream holds no goal.
        """
        key = GoalKey(spec.name)
        await self._begin(key, reporter, ())
        return key

    async def resume(self, key: GoalKey, reporter: Reporter) -> None:
        """Drive a goal on from what is on its stream.

        Raises:
            RuntimeError: The goal is being driven already.
            ResumeRefused: The stream holds no goal, or model, tools or policy are not those it started with.
        """
        await self._begin(key, reporter, None)

    async def may_go_on(self, key: GoalKey, reporter: Reporter) -> None:
        """Return if a goal that has ended may go on; see the port.

        Raises:
            ResumeRefused: Model, tools or policy are not those it was last driven with.
        """
        driven = self._goals.get(key.name)
        if driven is not None:
            await driven.ended.wait()
        mission = await self._executor.mission(key, reporter, self._log)
        mission.check_unchanged(accept_changes=self._accept_changes)

    async def say(self, key: GoalKey, text: str, reporter: Reporter) -> None:
        """Drive an ended goal on with what a person has said, which stands on its stream; see the port."""
        await self._begin(key, reporter, None)

    async def _begin(self, key: GoalKey, reporter: Reporter, changed: tuple[str, ...] | None) -> None:
        self._require_idle(key)
        heard = self._beginning.setdefault(key.name, [])
        try:
            mission = await self._executor.mission(key, reporter, self._log)
        finally:
            self._beginning.pop(key.name, None)
        # Asked again, since another task may have begun to drive the goal while this one was reading the log.
        self._require_idle(key)
        mission.hear(heard)
        if changed is None:
            changed = mission.check_unchanged(accept_changes=self._accept_changes)
        driven = _Driven(mission)
        self._goals[key.name] = driven
        self._nursery.start_soon(self._drive, driven, changed, name=f"goal {key.name}")

    def _require_idle(self, key: GoalKey) -> None:
        driven = self._goals.get(key.name)
        if driven is not None and not driven.ended.is_set():
            raise RuntimeError(f"goal {key.name} is being driven already")

    def hear(self, key: GoalKey, events: tuple[Event, ...]) -> None:
        """Pass on to the goal's mission what stands on its stream; see the port."""
        if key.name in self._beginning:
            self._beginning[key.name].extend(events)
        elif key.name in self._goals:
            self._goals[key.name].mission.hear(events)

    def tell(self, key: GoalKey, changed: Callable[[], None]) -> None:
        """Call `changed` once the goal's task has ended; see the port."""
        driven = self._goals.get(key.name)
        if driven is None or driven.ended.is_set():
            changed()
        else:
            driven.changed = changed

    async def status(self, key: GoalKey) -> GoalStatus:
        """Return how the goal stands.

        Raises:
            KeyError: This runtime has no such goal.
            Exception: What the goal's task failed with.
        """
        await trio.lowlevel.checkpoint()
        driven = self._goals[key.name]
        if driven.failure is not None:
            raise driven.failure
        return replace(driven.status, active=not driven.ended.is_set())

    async def stop(self, key: GoalKey, *, fault: str) -> None:
        """Stop driving the goal; see the port.

        Cancellation: the goal stops all the same.
        """
        driven = self._goals.get(key.name)
        if driven is None:
            return
        driven.mission.set_stop_fault(fault)
        driven.scope.cancel(reason=f"the goal is being stopped as {fault}")
        await driven.ended.wait()
        if fault == FaultClass.CANCELLED and driven.failure is None and not driven.status.phase.terminal:
            await driven.mission.close_as_cancelled()

    async def _drive(self, driven: _Driven, changed: tuple[str, ...]) -> None:
        try:
            with driven.scope:
                await self._work(driven, changed)
        except Exception as error:
            # The record could not be extended, so nothing can be said on it; the session hears of it by `status`.
            driven.failure = error
        finally:
            driven.ended.set()
            if driven.changed is not None:
                driven.changed()

    async def _work(self, driven: _Driven, changed: tuple[str, ...]) -> None:
        def told(status: GoalStatus) -> None:
            driven.status = status

        told(await drive(driven.mission, changed, told))

    async def cancel_child(self, key: GoalKey, child: str, stop: Stop) -> bool:
        """End one of the goals that the goal has handed work to, and those below it; see the port."""
        driven = self._goals.get(key.name)
        hand = driven.mission.crew.find(child) if driven is not None else None
        if hand is None:
            await trio.lowlevel.checkpoint()
            return False
        await stop_hand(hand, stop)
        return True


@asynccontextmanager
async def open_runtime(
    executor: MissionExecutor, log: LogReader, *, accept_changes: bool = False
) -> AsyncIterator[GoalRuntime]:
    """Open a runtime; goals make progress only while the block lasts.

    Args:
        executor: Makes the missions.
        log: Where the goals' streams are read from.
        accept_changes: Whether a resumed goal may go on with a model, tools or a policy other than it started with. The change
            is recorded.

    Yields:
        The runtime. Leaving the block parks what it still drives: begun actions are closed as interrupted, and the goals can
        be resumed.
    """
    async with open_owned_nursery() as nursery:
        yield GoalRuntime(executor, log, nursery, accept_changes=accept_changes)
