"""What `run` and `resume` have in common: open everything, drive one run while it is shown, and end with what came of it.

Opened in the order in which a mistake is cheapest to hear of: workspace, model, passphrase, store, key. Closed inside-out: first
the run is ended or parked and sealed, then what was not shown yet is read back from the log, so the transcript is whole.
"""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import trio

from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.history import history
from affidavit.actors.host import Host, Run, open_host
from affidavit.actors.logs.port import Log
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import Model
from affidavit.actors.projection import project
from affidavit.actors.secrets import NO_SECRETS, secrets_of_file
from affidavit.actors.signers.port import Signer
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.tools.agent_delegation import open_agents
from affidavit.tools.console.stage import Stage
from affidavit.tools.errors import CONVERGED, INTERRUPTED, PARKED, STALLED, UsageError, notice
from affidavit.tools.handover import handover_lines
from affidavit.tools.interrupts import open_interrupts
from affidavit.tools.model_opening import open_shown_model
from affidavit.tools.narrator import Narrator
from affidavit.tools.output import Output
from affidavit.tools.place import Place
from affidavit.tools.policies import NamedPolicy
from affidavit.tools.showing import Showing, waiting_lines
from affidavit.tools.signing import ask_for_key
from affidavit.tools.status import brief_line, status_lines
from affidavit.tools.synchronous import chosen_synchronous
from affidavit.tools.terminal import style_of
from affidavit.tools.transcript import Transcript
from affidavit.tools.waits import Waits

_SHOW_GRACE: Final = 2.0
Start = Callable[[Host, MissionConfig], Awaitable[Run]]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is driven with.

    Attributes:
        place: The store.
        run_id: The run's whole id.
        model: The model, as `open_model` takes it.
        workspace: Where the agent may read; None gives it no tools.
        as_json: Whether standard output is for programs.
        after: The seq of the last event that need not be shown.
        policy: What the run is held to, beside its own limits.
        wait: Whether to go on waiting for a person's approval; None for only where there is a terminal.
        secret_file: A file of further secrets, one a line.
        is_live: Whether to show it in a live view, where it would be shown line by line.
    """

    place: Place
    run_id: str
    model: str
    workspace: Path | None
    as_json: bool
    after: int = 0
    policy: NamedPolicy | None = None
    wait: bool | None = None
    secret_file: Path | None = None
    is_live: bool = False

    @property
    def is_patient(self) -> bool:
        """Whether to go on waiting for a person's approval."""
        if self.wait is None:
            return sys.stdin is not None and sys.stdin.isatty()
        return self.wait

    @property
    def resume_line(self) -> str:
        """The command line that goes on with the run."""
        return self.line("resume")

    def line(self, command: str) -> str:
        """Return the command line that does something with the run, driven as here."""
        workspace = () if self.workspace is None else ("--workspace", str(self.workspace.resolve()))
        policy = () if self.policy is None else self.policy.words
        secrets = () if self.secret_file is None else ("--secret-file", str(self.secret_file.resolve()))
        return self.place.line(command, self.run_id, "--model", self.model, *workspace, *policy, *secrets)

    def config(self, model: Model, toolbox: Toolbox) -> MissionConfig:
        """Return what the run's missions run with."""
        place = "" if self.workspace is None else str(self.workspace.resolve())
        secrets = NO_SECRETS if self.secret_file is None else secrets_of_file(self.secret_file)
        policy = self.policy.policy if self.policy else None
        return MissionConfig(model, toolbox, policy=policy, place=place, secrets=secrets)


async def drive(setting: Setting, toolbox: Toolbox, start: Start) -> int:
    """Drive a run to its end, showing it.

    Args:
        setting: With what.
        toolbox: The tools that exist for it.
        start: Submits or resumes the run on the host it is given.

    Returns:
        The exit code: 0 converged, 1 stalled or cancelled, 4 parked since it waits for a person, 130 interrupted.

    Raises:
        AffidavitError: The run could not be started, or stopped because of a fault.
    """
    async with open_engine(setting, toolbox) as engine:
        return await engine.drive(setting, start)


@final
class Engine:
    """All that it takes to drive runs, opened. Made by `open_engine`."""

    def __init__(self, log: Log, signer: Signer, config: MissionConfig) -> None:
        """Use `open_engine`."""
        self.log: Final = log
        self._signer = signer
        self._config = config

    async def drive(self, setting: Setting, start: Start, *, is_brief: bool = False) -> int:
        """Drive a run to its end, or to that of one round of it, showing it; see the function of this name.

        Args:
            setting: With what.
            start: Submits the run or goes on with it, on the host it is given.
            is_brief: Whether to sum it up in a line, and not to say how it is handed over.
        """
        return await _conduct(setting, self.log, self._signer, self._config, start, is_brief=is_brief)


@asynccontextmanager
async def open_engine(setting: Setting, toolbox: Toolbox) -> AsyncIterator[Engine]:
    """Open model, store and key, in the order in which a mistake is cheapest to hear of.

    Raises:
        AffidavitError: One of them cannot be opened.
    """
    synchronous = chosen_synchronous()
    policy = setting.policy.policy if setting.policy else None
    async with (
        open_shown_model(setting.model) as model,
        open_agents(toolbox, policy, setting.model, model) as tools,
    ):
        config = setting.config(model, tools)
        key = ask_for_key(setting.place)
        async with open_sqlite_log(setting.place.runs, synchronous=synchronous) as log:
            yield Engine(log, key.open(), config)


def _said(stage: Stage, words: str) -> str:
    """Return words that are about to be said on the terminal, having given it back."""
    stage.leave()
    return words


def _parking(name: str) -> str:
    return f"{name}: the run is being parked; a second one does not wait for that."


async def _conduct(
    setting: Setting, log: Log, signer: Signer, config: MissionConfig, start: Start, *, is_brief: bool
) -> int:
    failures: list[Exception] = []
    narrator = Narrator(
        Output(), Transcript(style_of(sys.stdout), as_json=setting.as_json), after=setting.after
    )
    last_words = f"To go on with the run:\n{setting.resume_line}"
    stage = Stage(narrator)
    async with (
        open_interrupts(
            lambda name: _said(stage, _parking(name)), lambda: _said(stage, last_words)
        ) as interrupts,
        stage.lit(setting.run_id, live=setting.is_live),
    ):
        showing = Showing(
            setting.place, setting.run_id, stage, patient=setting.is_patient, asks=not stage.is_live
        )
        with interrupts.scope, showing.scope:
            async with open_host(
                log, signer=signer, on_failure=lambda _, error: failures.append(error)
            ) as host:
                run = await start(host, config)
                stage.attend(run.session)
                await showing.follow(log, run.session, 0 if stage.is_live else setting.after)
                await run.closed()
        # Bounded once it was interrupted, since a reader that stands still must not keep the process from ending.
        with trio.move_on_after(_SHOW_GRACE if interrupts.happened else math.inf):
            await stage.finish(log, setting.run_id)
        stop = INTERRUPTED if interrupts.happened else PARKED if showing.parked else None
        return await _finish(setting, log, narrator, failures, stop, is_brief=is_brief)


async def _finish(
    setting: Setting,
    log: Log,
    narrator: Narrator,
    failures: list[Exception],
    stop: int | None,
    *,
    is_brief: bool,
) -> int:
    """Say how the run stands; `stop` is the exit code of one that was stopped from here before it had ended."""
    events = await history(log, setting.run_id)
    status = project(events)
    if stop == INTERRUPTED or not status.terminal:
        for line in _stopped_lines(setting, events):
            notice(line)
    else:
        for line in (brief_line(status),) if is_brief else _ended_lines(setting, events):
            if setting.as_json:
                notice(line)
            else:
                await narrator.line(line)
    if stop == INTERRUPTED:
        return stop
    if failures:
        raise failures[0]
    if status.terminal:
        last = next(event for event in reversed(events) if event.kind in TERMINAL_KINDS)
        return CONVERGED if last.kind == Kind.CONVERGED else STALLED
    if stop == PARKED:
        return stop
    raise UsageError(f"run {setting.run_id} was parked before it ended")


def _ended_lines(setting: Setting, events: Sequence[Event]) -> Iterator[str]:
    yield f"run {setting.run_id}"
    yield from status_lines(project(events))
    yield from handover_lines(setting.place, setting.run_id, events)


def _stopped_lines(setting: Setting, events: Sequence[Event]) -> Iterator[str]:
    """Go through the lines on a run that has been stopped here."""
    if not events:
        yield "nothing was recorded of it yet, so there is nothing to go on with"
        return
    status, waits = project(events), Waits(events).standing()
    yield from (f"run {setting.run_id}", *status_lines(status, waits))
    if not status.terminal:
        for wait in waits:
            yield from waiting_lines(setting.place, setting.run_id, wait)
        yield from ("To go on with the run:", setting.resume_line)
