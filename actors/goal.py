"""What a run is asked to do, and how far it has come. Shared words of sessions and runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum

DEFAULT_MAX_STEPS = 16


class Phase(StrEnum):
    """Where a goal stands. It only moves forward, and the last two are terminal."""

    PENDING = "pending"
    RUNNING = "running"
    CONVERGED = "converged"
    STALLED = "stalled"

    @property
    def terminal(self) -> bool:
        """Whether nothing follows it."""
        return self in (Phase.CONVERGED, Phase.STALLED)

    @classmethod
    def read(cls, value: object) -> Phase | None:
        """Return the phase a payload value names, or None if it names none."""
        return next((phase for phase in cls if phase == value), None)


@dataclass(frozen=True, slots=True)
class GoalSpec:
    """A goal as its owner states it; it stands whole on session.started.

    Attributes:
        objective: What is to be done, in words.
        system: The system prompt the model is given; empty for none.
        tools: The tools the run is granted, by name; None grants every tool it was given.
        max_steps: The most model turns it may take.
        max_tokens: The most tokens (input and output together) its model calls may use; 0 for no limit.
        max_output_tokens: The most tokens one turn may write.
        self_checks: How often the model is asked, once it says it is done, to check its own answer against the objective. Each is
            a turn like any other, and the last one's words are the answer.
        name: The goal's name. `Session.submit` sets it to the session's id.
        profile: The agent profile that a goal which work was handed to was begun with; empty for none.
    """

    objective: str
    system: str = ""
    tools: tuple[str, ...] | None = None
    max_steps: int = DEFAULT_MAX_STEPS
    max_tokens: int = 0
    max_output_tokens: int = 1024
    self_checks: int = 0
    name: str = ""
    profile: str = ""

    def as_detail(self) -> dict[str, object]:
        """Return the spec as a payload value."""
        stated = {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()
        }
        return stated if self.profile else {key: value for key, value in stated.items() if key != "profile"}

    @classmethod
    def from_detail(cls, detail: Mapping[str, object]) -> GoalSpec:
        """Read a spec back from a payload value; unknown keys are left aside.

        Raises:
            ValueError: There is no objective in it, or a value is of the wrong type.
        """
        values = {item.name: detail[item.name] for item in fields(cls) if item.name in detail}
        tools = values.get("tools")
        if isinstance(tools, list) and all(isinstance(tool, str) for tool in tools):
            values["tools"] = tuple(tools)
        wrong = [name for name, value in values.items() if not isinstance(value, _TYPES[name])]
        if wrong or "objective" not in values:
            raise ValueError(f"not a goal: {', '.join(wrong) or 'no objective'}")
        return cls(**values)  # type: ignore[arg-type]  # each value's type was checked against the table


_TYPES: dict[str, tuple[type, ...]] = {
    "objective": (str,),
    "system": (str,),
    "tools": (tuple, type(None)),
    "max_steps": (int,),
    "max_tokens": (int,),
    "max_output_tokens": (int,),
    "self_checks": (int,),
    "name": (str,),
    "profile": (str,),
}


@dataclass(frozen=True, slots=True)
class GoalKey:
    """Names a goal within a runtime. The root goal of a run is named after the run.

    Attributes:
        name: The goal's name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class GoalStatus:
    """How a goal stands.

    Attributes:
        phase: Its phase.
        message: The final answer once converged, the reason once stalled.
        steps: Model turns taken.
        error_class: Fault class of a stall.
        active: Whether something is driving it now. A goal that is neither terminal nor active waits to be resumed.
        error_code: A finer code of a stall, where there is one.
    """

    phase: Phase
    message: str = ""
    steps: int = 0
    error_class: str = ""
    active: bool = True
    error_code: str = ""
