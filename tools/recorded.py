"""A run that is on the record, and what it takes to drive it on: its events, its model, its tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from affidavit.actors.conversation import fold
from affidavit.actors.directory import find_run
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import Projection, project
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.tools.agent_tools import agent_toolbox
from affidavit.tools.choices import Choices
from affidavit.tools.console.choice import wants_view
from affidavit.tools.driving import Setting
from affidavit.tools.errors import UsageError
from affidavit.tools.place import Place
from affidavit.tools.policies import policy_of, say_doubts, tools_named

# Providers whose model may be a file, and so is on the record by its name alone.
_OF_A_FILE: Final = ("script", "local")

AcceptChanges: TypeAlias = Annotated[
    bool,
    Parameter(
        name="--accept-changes",
        help="Go on with another model, tools, policy or limits than the run began with; that is recorded.",
    ),
]


@dataclass(frozen=True, slots=True)
class Found:
    """A run on the record.

    Attributes:
        run_id: Its whole id.
        events: Its events.
        status: How it stands.
    """

    run_id: str
    events: tuple[Event, ...]
    status: Projection

    @property
    def tip(self) -> int:
        """The seq of its last event."""
        return self.events[-1].seq

    @property
    def model(self) -> str:
        """The model that it began with.

        Raises:
            UsageError: It does not say, or it was a file that is not here.
        """
        started = next((event for event in self.events if event.kind == Kind.SESSION_STARTED), None)
        name = started.detail.get("model") if started is not None else None
        if not isinstance(name, str) or not name:
            raise UsageError(
                f"run {self.run_id} does not say with which model it began; name one with --model"
            )
        provider, _, rest = name.partition(":")
        if provider in _OF_A_FILE and rest and not Path(rest.partition("?")[0]).exists():
            raise UsageError(
                f"run {self.run_id} began with {name}, of which the record holds the name alone; say "
                f"with --model {provider}:FILE where that lies, or go on with the run by the program that began it"
            )
        return name


async def find(place: Place, text: str) -> Found:
    """Find the run that a person means.

    Raises:
        UnknownRun: None is meant.
        AmbiguousRun: Several are.
        LogError: The store could not be read.
    """
    async with open_sqlite_reader(place.runs) as log:
        run_id = await find_run(log, text)
        events = await history(log, run_id)
    return Found(run_id, events, project(events))


async def setting_of(place: Place, found: Found, choices: Choices) -> tuple[Setting, Toolbox]:
    """Return what a run is driven on with.

    Args:
        place: The store.
        found: The run.
        choices: What a person chose.

    Raises:
        UsageError: The model is not known, or what was chosen does not fit.
        ConfigurationError: The workspace or the policy cannot be used.
    """
    named = policy_of(choices.policy, choices.workspace)
    spec = fold(found.events).spec
    toolbox = await agent_toolbox(
        choices.workspace, tools_named(spec.tools if spec else None, named), place, choices.secret_file
    )
    say_doubts(named, toolbox)
    setting = Setting(
        place,
        found.run_id,
        choices.model or found.model,
        choices.workspace,
        choices.as_json,
        found.tip,
        policy=named,
        wait=choices.wait,
        secret_file=choices.secret_file,
        is_live=wants_view(plain=choices.plain, as_json=choices.as_json),
    )
    return setting, toolbox
