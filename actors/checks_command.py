"""Checks that are commands: run in the run's place, trusted as the operator who named them, bounded, and gone with their call.

Ended with 0 is passed, with any other code failed. A command that a signal or a limit ended, or that could not be started, has
come to no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from affidavit.actors.checks import DEFAULT_CHECK_SECONDS, Check, CheckNotRun, CheckResult
from affidavit.actors.containment.none import NoContainment
from affidavit.actors.containment.port import ContainmentFailed, Limits
from affidavit.actors.toolbox.run_command import report

# The call's own limit ends the command first; this one is for whatever that leaves undone.
_BACKSTOP_SECONDS: Final = 60.0
_KEPT_BYTES: Final = 16 * 1024
_PROCESSORS: Final = 64
# As a shell tells that there is no such program, or that it is none.
_NOT_STARTED: Final = frozenset({126, 127})


def command_check(
    name: str,
    command: Sequence[str],
    place: str,
    *,
    seconds: float = DEFAULT_CHECK_SECONDS,
    idempotent: bool = False,
) -> Check:
    """Return a check that runs a command.

    Args:
        name: What it checks.
        command: The program and its arguments; no shell reads them.
        place: The directory it runs in.
        seconds: How long it may take.
        idempotent: Whether it may be run again after an interruption.

    Raises:
        ConfigurationError: The name or the time is none.
    """
    argv = tuple(command)
    run = partial(_run, argv, place, seconds)
    return Check(name, run, seconds=seconds, idempotent=idempotent, means=argv)


async def _run(command: tuple[str, ...], place: str, seconds: float) -> CheckResult:
    """Run the command to its end.

    Raises:
        CheckNotRun: It came to no verdict.

    Cancellation: all its processes are killed, and gone before this returns.
    """
    limits = Limits(
        wall_seconds=seconds + _BACKSTOP_SECONDS,
        cpu_seconds=math.ceil(seconds) * _PROCESSORS,
        kept_bytes=_KEPT_BYTES,
    )
    try:
        outcome = await NoContainment().run(command, limits=limits, workspace=place, environment={})
    except ContainmentFailed as error:
        raise CheckNotRun(f"the command was not run: {error}", "command_not_run") from error
    told = report(outcome, limits)
    if outcome.struck or outcome.exit_code is None:
        raise CheckNotRun(told, "command_ended")
    if outcome.exit_code in _NOT_STARTED:
        raise CheckNotRun(told, "command_not_run")
    return CheckResult(outcome.exit_code == 0, told)
