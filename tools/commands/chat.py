"""`affidavit chat`: a conversation turn by turn in one run, each turn driven and sealed before the next is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final, final

from cyclopts import Parameter

from affidavit.actors.asker import checked_words
from affidavit.actors.errors import ResumeRefused
from affidavit.actors.host import Host, Run
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.tools.asking import Principal, principal_of
from affidavit.tools.beginning import begin_with
from affidavit.tools.choices import NO_CHOICES, Choices
from affidavit.tools.commands.goal_options import NO_GOAL_OPTIONS, GoalOptions
from affidavit.tools.commands.run import run_id_of
from affidavit.tools.driving import Engine, Setting, Start, open_engine
from affidavit.tools.errors import CONVERGED, INTERRUPTED, PARKED, UsageError, notice
from affidavit.tools.handover import handover_lines
from affidavit.tools.interrupts import open_interrupts
from affidavit.tools.lines_in import LinesIn
from affidavit.tools.output import Output
from affidavit.tools.picker import pick
from affidavit.tools.place import Place, place_of
from affidavit.tools.recorded import AcceptChanges, Found, find, setting_of

_PROMPT: Final = "you> "
_LEAVING: Final = frozenset({"/exit", "/quit"})
_STOPPED: Final = frozenset({PARKED, INTERRUPTED})


async def chat(
    run_id: Annotated[
        str | None,
        Parameter(
            name="ID", help="A conversation to go on with, instead of a new one; @last for the newest."
        ),
    ] = None,
    /,
    *,
    pick_one: Annotated[
        bool, Parameter(name="--pick", help="Choose the conversation to go on with from a list.")
    ] = False,
    choices: Choices = NO_CHOICES,
    goal: GoalOptions = NO_GOAL_OPTIONS,
    principal: Principal = None,
    accept_changes: AcceptChanges = False,
) -> int:
    """Talk with an agent, turn by turn, in one run whose record grows and is sealed.

    Each line that you write is said in your name; a line that ends in a backslash
    goes on in the next, and so do lines that are pasted. Standard input may be a
    file or a pipe. /exit, or its end, ends the chat; the conversation can be gone
    on with at any time.

    Exit codes: that of the last turn: 0 converged, 1 stalled or cancelled, 4
    parked until a person has approved a call; 2 misuse or environment, 130
    interrupted.

    For example:

      affidavit chat --model local --workspace .
      affidavit chat @last
    """
    place, lines = place_of(choices.store), LinesIn()
    if pick_one:
        if run_id is not None:
            raise UsageError("--pick chooses a conversation, and one is named already; leave one of them out")
        run_id = await pick(place, lines)
    talk = _Talk(lines, principal_of(principal), as_json=choices.as_json)
    if run_id is None:
        return await _begin(place, choices, goal, talk)
    return await _go_on(await find(place, run_id), place, choices, talk, accept_changes=accept_changes)


@final
@dataclass(frozen=True, slots=True)
class _Talk:
    """The person's side of the conversation."""

    lines: LinesIn
    who: str
    as_json: bool

    async def next(self) -> str | None:
        """Return what is said next; None where nothing more is.

        Raises:
            UsageError: It is too long.
        """
        parts: list[str] = []
        while True:
            await self._prompt()
            line = await self.lines.next()
            if line is None or (not parts and line.strip() in _LEAVING):
                return _joined(parts)
            parts.append(line.removesuffix("\\"))
            if not line.endswith("\\") and not (self.lines.is_terminal and await self.lines.has_more()):
                if said := _joined(parts):
                    return said
                parts.clear()

    async def _prompt(self) -> None:
        if self.lines.is_terminal and not self.as_json:
            await Output().write(_PROMPT)


def _joined(parts: Sequence[str]) -> str | None:
    text = "\n".join(parts).strip()
    if not text:
        return None
    try:
        return checked_words(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


async def _begin(place: Place, choices: Choices, goal: GoalOptions, talk: _Talk) -> int:
    """Begin a conversation with what is said first."""
    if choices.model is None:
        raise UsageError("name a model with --model, such as --model local")
    begun = await begin_with(place, run_id_of(None), choices.model, choices, goal)
    first = await talk.next()
    if first is None:
        notice("nothing was said, so nothing was begun")
        return CONVERGED

    async def start(host: Host, config: MissionConfig) -> Run:
        return await host.submit(await begun.spec(first, config), config, id=begun.setting.run_id)

    return await _converse(begun.setting, begun.toolbox, talk, start, accept_changes=False)


async def _go_on(found: Found, place: Place, choices: Choices, talk: _Talk, *, accept_changes: bool) -> int:
    """Go on with a conversation; one that was interrupted is taken to the end of its turn first."""
    setting, toolbox = await setting_of(place, found, choices)
    notice(f"going on with run {found.run_id} after event {found.tip}, with {setting.model}")
    if found.status.terminal:
        return await _converse(setting, toolbox, talk, None, accept_changes=accept_changes)

    async def start(host: Host, config: MissionConfig) -> Run:
        return await _unless_changed(
            partial(host.resume, found.run_id, config, accept_changes=accept_changes)
        )

    return await _converse(setting, toolbox, talk, start, accept_changes=accept_changes)


async def _converse(
    setting: Setting, toolbox: Toolbox, talk: _Talk, start: Start | None, *, accept_changes: bool
) -> int:
    """Take turns until nothing more is said, or one of them is stopped."""
    code = CONVERGED
    async with open_engine(setting, toolbox) as engine:
        while True:
            if start is not None:
                talk.lines.forget_typed()
                code = await engine.drive(setting, start, is_brief=True)
                if code in _STOPPED:
                    return code
            said = await _heard(setting, talk)
            if said is _INTERRUPT:
                return INTERRUPTED
            if said is None:
                break
            tip = await _tip(engine, setting)
            setting = replace(setting, after=tip)
            start = partial(_say, setting, str(said), talk.who, accept_changes=accept_changes)
    await _part(setting, talk)
    return code


_INTERRUPT: Final = object()


async def _heard(setting: Setting, talk: _Talk) -> object:
    """Return what is said next, None at the end of it, `_INTERRUPT` for a person who pressed Ctrl-C instead."""
    words = f"To go on with the conversation:\n{_again(setting)}"
    async with open_interrupts(lambda name: f"{name}: {words}", lambda: words) as interrupts:
        with interrupts.scope:
            return await talk.next()
    return _INTERRUPT


async def _say(
    setting: Setting, text: str, who: str, host: Host, config: MissionConfig, *, accept_changes: bool
) -> Run:
    return await _unless_changed(
        partial(host.say, setting.run_id, config, text, principal=who, accept_changes=accept_changes)
    )


async def _unless_changed(begin: Callable[[], Awaitable[Run]]) -> Run:
    try:
        return await begin()
    except ResumeRefused as error:
        raise UsageError(f"{error} (--accept-changes does)") from error


async def _tip(engine: Engine, setting: Setting) -> int:
    info = await engine.log.info(setting.run_id)
    return info.tip if info is not None else 0


def _again(setting: Setting) -> str:
    return setting.line("chat")


async def _part(setting: Setting, talk: _Talk) -> None:
    """Say how the record is handed over and how the conversation is gone on with."""
    found = await find(setting.place, setting.run_id)
    lines = (*handover_lines(setting.place, found.run_id, found.events), "To go on with it:", _again(setting))
    output = Output()
    for line in lines:
        if talk.as_json:
            notice(line)
        else:
            await output.line(line)
