"""The levels of containment, in order, and the least that each level of trust asks for. Pure; nothing is ever lowered here."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from affidavit.actors.events import Trust


class Level(StrEnum):
    """How strongly a command is held; compare two with `meets`, since as strings they order by their letters."""

    NONE = "none"
    KERNEL = "kernel"
    MICRO_VM = "micro-vm"


_ORDER: Final = (Level.NONE, Level.KERNEL, Level.MICRO_VM)
_REQUIRED: Final = {
    Trust.TRUSTED.value: Level.NONE,
    Trust.SEMI_TRUSTED.value: Level.KERNEL,
    Trust.UNTRUSTED.value: Level.MICRO_VM,
}


def required(trust: str) -> Level:
    """Return the least containment for work of this trust; a word that is no level of trust asks for the most."""
    return _REQUIRED.get(trust, Level.MICRO_VM)


def meets(have: Level, need: Level) -> bool:
    """Tell whether containment `have` is at least `need`."""
    return _ORDER.index(have) >= _ORDER.index(need)


def strongest(*levels: Level) -> Level:
    """Return the strongest of some levels; `none` where there is none."""
    return max(levels, key=_ORDER.index, default=Level.NONE)
