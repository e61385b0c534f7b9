"""Which checks have come to a verdict about the answer that stands, as a fold of the run's events. Judges nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from affidavit.actors.checks import CHECK_PREFIX
from affidavit.actors.events import Event, Kind


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found.

    Attributes:
        call: The check's id, which is its call.
        passed: Whether it passed.
        detail: What it saw.
    """

    call: int
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The end of a check that came to no verdict.

    Attributes:
        error_class: Its fault class.
        error_code: A finer code.
    """

    error_class: str
    error_code: str


@final
@dataclass(slots=True)
class Verdicts:
    """The checks of the answer that stands. A further answer of the model makes all of them void.

    Attributes:
        found: The verdicts, by the check's name.
        lost: Checks whose last attempt ended without one, by name.
    """

    found: dict[str, Verdict] = field(default_factory=dict)
    lost: dict[str, Lost] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Fold one event of the goal."""
        if event.kind == Kind.ASSISTANT:
            self.found.clear()
            self.lost.clear()
        elif event.kind == Kind.CHECK:
            self._verdict(event)
        elif event.action.startswith(CHECK_PREFIX) and not event.tool_use_id:
            # With a toolUseID it is a tool that the model asked for, whatever name it wrote.
            name = event.action.removeprefix(CHECK_PREFIX)
            if event.kind == Kind.ACTION_ADMITTED:
                self.lost.pop(name, None)
            elif event.kind == Kind.ACTION_COMPLETED and event.error_class:
                self.lost[name] = Lost(event.error_class, event.error_code)

    def _verdict(self, event: Event) -> None:
        call, name, detail = (event.detail.get(key) for key in ("check", "name", "detail"))
        if isinstance(call, int) and isinstance(name, str):
            passed = event.detail.get("passed") is True
            self.found[name] = Verdict(call, passed, detail if isinstance(detail, str) else "")
