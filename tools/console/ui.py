"""What a person has done to the view: panels folded, tools unfolded, how far it is scrolled, what is being asked or typed.

A frozen value beside the view model: it changes by keys alone, and nothing of it comes from the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from affidavit.tools.console.pending import Pending

# How far a key goes that goes to an end, in lines.
FAR: Final = 1_000_000


class Mode(StrEnum):
    """What the keys mean just now."""

    LOOK = "look"
    APPROVE = "approve"
    REFUSE = "refuse"
    STOP = "stop"
    HELP = "help"


@dataclass(frozen=True, slots=True)
class Typed:
    """A line that is being typed.

    Attributes:
        text: The line.
        at: Where the next character goes.
    """

    text: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """How much of what is being decided about has been on the screen.

    Attributes:
        width: The columns it was laid out for.
        lines: How many of its lines have been shown, from the first one without a gap.
        is_whole: Whether all of it has been shown.
    """

    width: int = 0
    lines: int = 0
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where the transcript ends on the screen while it is scrolled back.

    Attributes:
        place: The entry whose line is the last one.
        hidden: How many of that entry's lines lie below.
    """

    place: tuple[int, int]
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Ui:
    """The state of the view that is a person's own.

    Attributes:
        mode: What the keys mean.
        governance: Whether the governance panel is unfolded.
        fanout: Whether the fan-out panel is unfolded.
        tools: Whether tool calls are unfolded.
        anchor: Where the transcript is held; None for its end.
        asked: What is being decided about.
        page: How far what is being decided about is scrolled.
        read: How much of it has been shown; nobody approves what was not.
        typed: The line that is being typed.
        notice: The last thing a person was told.
        can_decide: Whether this process may decide about calls.
        owns: Whether stopping parks the run, and does not only end the watching.
    """

    mode: Mode = Mode.LOOK
    governance: bool = True
    fanout: bool = True
    tools: bool = False
    anchor: Anchor | None = None
    asked: Pending | None = None
    page: int = 0
    read: Read = Read()
    typed: Typed = Typed()
    notice: str = ""
    can_decide: bool = False
    owns: bool = False
