"""The options of `affidavit run` that say what the goal is held to: its limits, its grant, its system prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.goal import GoalSpec

_DEFAULTS: Final = GoalSpec("")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class GoalOptions:
    """As they stand on the command line.

    Attributes:
        tools: The tools that are granted, as `a,b`; None for all.
        max_steps: The most model turns.
        max_tokens: The most tokens of the whole run; 0 for no limit.
        max_output_tokens: The most tokens of one turn.
        self_checks: How often the model checks its own answer.
        system: The system prompt; None for a default.
    """

    tools: Annotated[
        str | None,
        Parameter(name="--tools", help="Grant only these tools, as a,b. A call of any other is refused."),
    ] = None
    max_steps: Annotated[
        int, Parameter(name="--max-steps", validator=Number(gte=1), help="The most model turns.")
    ] = _DEFAULTS.max_steps
    max_tokens: Annotated[
        int,
        Parameter(
            name="--max-tokens", validator=Number(gte=0), help="The most tokens in all; 0 for no limit."
        ),
    ] = _DEFAULTS.max_tokens
    max_output_tokens: Annotated[
        int,
        Parameter(name="--max-output-tokens", validator=Number(gte=1), help="The most tokens of one turn."),
    ] = _DEFAULTS.max_output_tokens
    self_checks: Annotated[
        int,
        Parameter(
            name="--self-checks",
            validator=Number(gte=0),
            help="How often the model is asked to check its own answer before it counts.",
        ),
    ] = _DEFAULTS.self_checks
    system: Annotated[
        str | None, Parameter(name="--system", help="The system prompt, instead of the default one.")
    ] = None

    @property
    def granted(self) -> tuple[str, ...] | None:
        """The names of the tools that are granted; None for all that there are."""
        if self.tools is None:
            return None
        return tuple(name.strip() for name in self.tools.split(",") if name.strip())

    def spec(self, objective: str, system: str) -> GoalSpec:
        """Return the goal."""
        return GoalSpec(
            objective,
            system=system,
            tools=self.granted,
            max_steps=self.max_steps,
            max_tokens=self.max_tokens,
            max_output_tokens=self.max_output_tokens,
            self_checks=self.self_checks,
        )


NO_GOAL_OPTIONS: Final = GoalOptions()
