"""Checks: what a host or a policy declares to find out whether a run did what it claims. Values; a mission runs them.

A check asks the world and not the model. Its verdict is recorded only if it came to one: a check that was refused, ran out of
time or crashed leaves none, and no success is claimed on it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from affidavit.actors.errors import ActorError, ConfigurationError

CHECK_PREFIX: Final = "check."
DEFAULT_CHECK_SECONDS: Final = 120.0
# As the policy file has it.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict of a check.

    Attributes:
        passed: Whether what it checks is so.
        detail: What it saw, for people and for the record.
    """

    passed: bool
    detail: str = ""


class CheckNotRun(ActorError):
    """A check came to no verdict, and says why.

    Attributes:
        code: A short machine-readable reason, such as `command_not_run`.
    """

    def __init__(self, message: str, code: str = "check_not_run") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Check:
    """Something that backs a success.

    Attributes:
        name: What it checks; its action is named `check.` and this.
        run: Finds out, or raises `CheckNotRun`. Cancelled, it must leave nothing running.
        seconds: How long it may take.
        idempotent: Whether it may be run again after an interruption.
        means: What it runs, as part of the configuration's digest; a change of it is a change of the run's rules.

    Raises:
        ConfigurationError: The name or the time is none.
    """

    name: str
    run: Callable[[], Awaitable[CheckResult]]
    seconds: float = DEFAULT_CHECK_SECONDS
    idempotent: bool = False
    means: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the name and the time."""
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                "a check's name is 1 to 64 letters, digits, spaces, '_', '.' or '-', and begins with a letter or a digit, "
                f"not {self.name[:80]!r}"
            )
        if not 0 < self.seconds < float("inf"):
            raise ConfigurationError(
                f"the check {self.name!r} needs a time limit above 0, not {self.seconds:g} s"
            )

    @property
    def action(self) -> str:
        """The name of the action that it is."""
        return f"{CHECK_PREFIX}{self.name}"


def require_distinct(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks, in order.

    Raises:
        ConfigurationError: Two have the same name, so that nobody could tell whose a verdict is.
    """
    found: dict[str, Check] = {}
    for check in checks:
        if check.name in found:
            raise ConfigurationError(f"two checks are named {check.name!r}")
        found[check.name] = check
    return tuple(found.values())
